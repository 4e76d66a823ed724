import{n as e}from"./rolldown-runtime.js";import{D as t,P as n}from"./vendor.js";import{t as r}from"./octagon-x.js";import{t as i}from"./rocket.js";import{At as a,Ft as o,I as s,Mt as c,Ot as l,Pt as u,Tt as d,kt as f,wt as p}from"./shared.js";import{C as m,O as h,S as g,_,d as v,u as y,v as b}from"./shell.js";var x=s(`
  fragment AttentionApproval on Approval {
    id title severity risk expiresAt createdAt assigneeName
    agent { id name avatarUrl }
  }
`),S=s(`
  fragment AttentionAgent on Agent {
    id name avatarUrl status statusReason lastActionAt
  }
`),C=s(`
  fragment AttentionConversation on Conversation {
    id ref title unread lastActivityAt contactName
    agent { id name avatarUrl }
    lastMessage { seq preview }
  }
`),w=n();function T({overview:e}){let t=g(),{pendingApprovals:n,agents:r,servers:i,channelsInactive:a}=e,{openConversations:o,unreadConversations:s,undeliveredConversations:c}=e,l=e=>r?.find(t=>t.status===e)?.count??0;return(0,w.jsxs)(`div`,{className:`mb-8 space-y-2`,children:[(0,w.jsxs)(`dl`,{className:`grid grid-cols-2 gap-px overflow-hidden rounded-card border border-line bg-line lg:grid-cols-4`,children:[n&&(0,w.jsxs)(D,{name:`Approvals`,value:n.total,to:`approvals`,children:[n.nextExpiresAt&&(0,w.jsx)(O,{to:`approvals`,search:{sort:`EXPIRES`},marked:!0,children:(0,w.jsx)(m,{to:n.nextExpiresAt,before:`next expires in `,over:`one expires now`})}),n.mine>0&&(0,w.jsxs)(O,{to:`approvals`,search:{mine:!0},children:[n.mine,` assigned to you`]}),n.total===0&&`none waiting`]}),r&&(0,w.jsxs)(D,{name:`Agents running`,value:l(`RUNNING`),of:r.reduce((e,{count:t})=>e+t,0),to:`agents`,search:{status:[`RUNNING`]},children:[t.stopped&&`on hold`,l(`ERROR`)>0&&(0,w.jsxs)(O,{to:`agents`,search:{status:[`ERROR`]},marked:!0,children:[l(`ERROR`),` failed`]}),l(`ERROR`)===0&&!t.stopped&&`none failed`]}),o!==null&&(0,w.jsxs)(D,{name:`Open conversations`,value:o,to:`conversations`,search:{status:[`OPEN`,`PENDING`]},children:[!!c&&(0,w.jsxs)(O,{to:`conversations`,search:{undelivered:!0},marked:!0,children:[c,` not delivered`]}),(0,w.jsxs)(O,{to:`conversations`,search:{unread:!0},children:[s??0,` unread`]})]}),i&&(0,w.jsxs)(D,{name:`Servers online`,value:i.total-i.offline-i.pending,of:i.total||void 0,to:`servers`,children:[i.offline>0&&(0,w.jsxs)(O,{to:`servers`,search:{status:`OFFLINE`},marked:!0,children:[i.offline,` offline`]}),i.pending>0&&(0,w.jsxs)(O,{to:`servers`,search:{status:`PENDING`},children:[i.pending,` waiting to join`]}),i.total===0&&`none yet`,i.total>0&&i.offline+i.pending===0&&`all reachable`]})]}),!!a&&(0,w.jsx)(O,{to:`channels`,search:{inactive:!0},marked:!0,children:a===1?`1 channel inactive`:`${a} channels inactive`})]})}function E({to:e,search:t={}}){return{to:`/o/$org/${e}`,params:{org:g().id},search:t}}function D({name:e,value:n,of:r,children:i,...a}){return(0,w.jsxs)(`div`,{className:`relative bg-canvas p-4 hover:bg-hover`,children:[(0,w.jsx)(`dt`,{className:`text-sm text-muted`,children:(0,w.jsx)(t,{...E(a),className:`after:absolute after:inset-0`,children:e})}),(0,w.jsxs)(`dd`,{children:[(0,w.jsx)(`span`,{className:`text-2xl font-semibold tabular-nums`,children:n}),r!==void 0&&(0,w.jsxs)(`span`,{className:`text-muted tabular-nums`,children:[` of `,r]}),(0,w.jsx)(`span`,{className:`flex flex-wrap gap-x-3 text-sm text-muted`,children:i})]})]})}function O({marked:e,children:n,...r}){return(0,w.jsx)(t,{...E(r),className:o(`relative z-1 text-sm hover:underline`,e?`font-medium text-danger-text`:`text-muted`),children:n})}var k=e({OverviewPage:()=>M}),A=p(()=>a(()=>import(`./overview-lines.js`),[]),`Attention`);A.preload();var j=s(`
  query Overview($orgId: Id!) {
    overview(orgId: $orgId) {
      pendingApprovals { total mine nextExpiresAt bySeverity { severity count } }
      agents { status count }
      servers { total offline pending }
      channelsInactive
      openConversations
      unreadConversations
      undeliveredConversations
    }
    approvalFeed(orgId: $orgId, status: [PENDING], snoozed: false, sort: RISK, limit: 6) {
      data { id ...AttentionApproval }
    }
    agentFeed(orgId: $orgId, status: [ERROR], sort: ACTIVITY, limit: 6) {
      data { id ...AttentionAgent }
    }
    conversationFeed(orgId: $orgId, unread: true, status: [OPEN, PENDING], limit: 6) {
      data { id ...AttentionConversation }
    }
  }
`,[x,S,C]);function M(){let e=g(),t=_(),{data:n,error:i,loading:a,refetch:o}=h({query:j,variables:{orgId:e.id},on:[`APPROVAL`,`AGENT`,`CONVERSATION`,`SERVER`,`CHANNEL`]}),s=n?.overview,u=s&&P(s.agents)===0;return(0,w.jsxs)(w.Fragment,{children:[(0,w.jsx)(v,{title:`Overview`,actions:!e.stopped&&(0,w.jsx)(b,{may:`organization.stop`,children:(0,w.jsx)(c,{icon:r,onClick:t,tip:`Stops all agents of the organization at once`,children:`Stop all agents`})})}),(0,w.jsx)(y,{children:(0,w.jsxs)(`div`,{className:`mx-auto w-full max-w-4xl px-4 py-6 sm:px-6`,children:[a&&(0,w.jsx)(d,{}),!s&&i&&(0,w.jsx)(l,{error:i,retry:o}),s&&(0,w.jsxs)(w.Fragment,{children:[(0,w.jsx)(T,{overview:s}),(0,w.jsx)(A,{approvals:n.approvalFeed?.data??[],waiting:s.pendingApprovals?.total,failed:n.agentFeed?.data??[],unread:n.conversationFeed?.data??[],children:u&&(0,w.jsx)(N,{})})]})]})})]})}function N(){let{id:e,can:n}=g();return n(`agent.create`)?(0,w.jsx)(f,{icon:i,title:`Start your first agent`,action:(0,w.jsx)(t,{to:`/o/$org/start`,params:{org:e},className:u(`primary`),children:`Get started`}),children:`An agent runs on a server of yours. Connect a server, start an agent, and ask it something: three steps, each checked as you go.`}):(0,w.jsx)(f,{icon:i,title:`No agents yet`,children:`An owner or an administrator connects a server and starts the first one. What agents do and ask then appears here.`})}function P(e){return(e??[]).reduce((e,t)=>e+t.count,0)}export{M as OverviewPage,C as i,S as n,x as r,k as t};