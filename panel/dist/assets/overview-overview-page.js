import{n as e}from"./rolldown-runtime.js";import{t}from"./octagon-x.js";import{An as n,Ct as r,T as i,Tt as a,vt as o,xt as s,yt as c}from"./shared.js";import{S as l,T as u,b as d,c as f,r as p,y as m}from"./shell.js";var h=i(`
  fragment AttentionApproval on Approval {
    id title severity risk expiresAt createdAt assigneeName
    agent { id name avatarUrl }
  }
`),g=i(`
  fragment AttentionAgent on Agent {
    id name avatarUrl status statusReason lastActionAt
  }
`),_=i(`
  fragment AttentionConversation on Conversation {
    id ref title unread lastActivityAt contactName
    agent { id name avatarUrl }
    lastMessage { seq kind preview }
  }
`),v=e({OverviewPage:()=>S}),y=n(),b=o(()=>r(()=>import(`./overview-lines.js`),[],import.meta.url),`Attention`);b.preload();var x=i(`
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
`,[h,g,_]);function S(){let e=u(),n=p(),{data:r,error:i,loading:o,refetch:h}=f({query:x,variables:{orgId:e.id},on:[`APPROVAL`,`AGENT`,`CONVERSATION`,`SERVER`,`CHANNEL`]}),g=r?.overview;return(0,y.jsxs)(y.Fragment,{children:[(0,y.jsx)(d,{title:`Overview`,doc:`panel.md#pages`,actions:!e.stopped&&(0,y.jsx)(l,{may:`organization.stop`,children:(0,y.jsx)(a,{icon:t,onClick:n,tip:`Stops all agents of the organization at once`,children:`Stop all agents`})})}),(0,y.jsx)(m,{children:(0,y.jsxs)(`div`,{className:`w-full max-w-4xl px-4 py-6 sm:px-6`,children:[o&&(0,y.jsx)(c,{}),!g&&i&&(0,y.jsx)(s,{error:i,retry:h}),g&&(0,y.jsx)(b,{overview:g,approvals:r.approvalFeed?.data??[],failed:r.agentFeed?.data??[],unread:r.conversationFeed?.data??[]})]})})]})}export{S as OverviewPage,_ as i,g as n,h as r,v as t};