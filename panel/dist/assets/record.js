import{An as e,Ht as t,T as n}from"./shared.js";import{a as r,o as i,s as a}from"./status.js";var o=t({node:[[`path`,{d:`M18 11V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2`}],[`path`,{d:`M14 10V4a2 2 0 0 0-2-2a2 2 0 0 0-2 2v2`}],[`path`,{d:`M10 10.5V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2v8`}],[`path`,{d:`M18 8a2 2 0 1 1 4 0v6a8 8 0 0 1-8 8h-2c-2.8 0-4.5-.86-5.99-2.34l-3.6-3.6a2 2 0 0 1 2.83-2.82L7 15`}]]}),s=t({node:[[`path`,{d:`M22 17a2 2 0 0 1-2 2H6.828a2 2 0 0 0-1.414.586l-2.202 2.202A.71.71 0 0 1 2 21.286V5a2 2 0 0 1 2-2h16a2 2 0 0 1 2 2z`}]]});function c(e,t){let n=[...e],r=[],i=0,a=(e,t)=>{e>i&&r.push({text:n.slice(i,e).join(``),isHit:t,from:i}),i=Math.max(i,e)};for(let[e=0,r=0]of[...t].sort((e,t)=>(e[0]??0)-(t[0]??0)))a(Math.min(e,n.length),!1),a(Math.min(r,n.length),!0);return a(n.length,!1),r}function l(e,t,n){let r=i(e,t),a=e===`ERROR`?t.length-r.length:0;return{text:r,ranges:a===0?n:n.flatMap(([e=0,t=0])=>t>a?[[Math.max(0,e-a),t-a]]:[])}}var u=e();function d({hit:e}){let{text:t,ranges:n}=l(e.kind,e.snippet,e.ranges);return c(t,n).map(({text:e,isHit:t,from:n})=>t?(0,u.jsx)(`mark`,{className:`rounded bg-warn-soft font-medium text-warn-text`,children:(0,u.jsx)(a,{text:e})},n):(0,u.jsx)(a,{text:e},n))}var f=n(`
  fragment ConversationRow on Conversation @_unmask {
    id
    ref
    title
    status
    contactName
    channelName
    transport
    lastActivityAt
    lastSeq
    unread
    readSeq
    pendingApprovals
    takenOverBy
    takenOverByName
    agent { id name avatarUrl }
    lastMessage { seq role kind preview createdAt }
    openTurns { id state createdAt startedAt }
  }
`),p=n(`
    fragment ConversationFields on Conversation @_unmask {
      ...ConversationRow
      agentId
      agentDetails { id status statusReason viewerCan restart { nextAt } }
      channelId
      channel { id direction isActive inactiveReason }
      contactId
      contextTokens
      model
      createdAt
      messageCount
      takenOverAt
      watching
      revision
      viewerCan
      archivedAt
    }
  `,[f]),m=n(`
    query ConversationShown($orgId: Id!, $id: Id!) {
      conversation(orgId: $orgId, id: $id) { ...ConversationFields }
    }
  `,[p]);function h(e){return r(e)}export{d as a,h as i,m as n,s as o,f as r,o as s,p as t};