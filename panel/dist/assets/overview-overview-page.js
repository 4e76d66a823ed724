import{n as e}from"./rolldown-runtime.js";import{t}from"./octagon-x.js";import{C as n,Ct as r,On as i,_t as a,gt as o,xt as s,yt as c}from"./shared.js";import{S as l,n as u,o as d,t as f,u as p,w as m}from"./shell.js";var h=n(`
  fragment AttentionApproval on Approval {
    id title severity risk expiresAt createdAt assigneeName
    agent { id name avatarUrl }
  }
`),g=n(`
  fragment AttentionAgent on Agent {
    id name avatarUrl status statusReason lastActionAt
  }
`),_=n(`
  fragment AttentionConversation on Conversation {
    id ref title unread lastActivityAt contactName
    agent { id name avatarUrl }
    lastMessage { seq kind preview }
  }
`),v=e({OverviewPage:()=>S}),y=i(),b=o(()=>s(()=>import(`./overview-lines.js`),[],import.meta.url),`Attention`);b.preload();var x=n(`
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
`,[h,g,_]);function S(){let e=m(),n=d(),{data:i,error:o,loading:s,refetch:h}=p({query:x,variables:{orgId:e.id},on:[`APPROVAL`,`AGENT`,`CONVERSATION`,`SERVER`,`CHANNEL`]}),g=i?.overview;return(0,y.jsxs)(y.Fragment,{children:[(0,y.jsx)(u,{title:`Overview`,doc:`panel.md#pages`,actions:!e.stopped&&(0,y.jsx)(l,{may:`organization.stop`,children:(0,y.jsx)(r,{icon:t,onClick:n,tip:`Stops all agents of the organization at once`,children:`Stop all agents`})})}),(0,y.jsx)(f,{children:(0,y.jsxs)(`div`,{className:`w-full max-w-4xl px-4 py-6 sm:px-6`,children:[s&&(0,y.jsx)(a,{}),!g&&o&&(0,y.jsx)(c,{error:o,retry:h}),g&&(0,y.jsx)(b,{overview:g,approvals:i.approvalFeed?.data??[],failed:i.agentFeed?.data??[],unread:i.conversationFeed?.data??[]})]})})]})}export{S as OverviewPage,_ as i,g as n,h as r,v as t};