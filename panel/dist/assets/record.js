import{P as e}from"./vendor.js";import{I as t,qt as n}from"./shared.js";import{a as r,o as i}from"./shell.js";var a={name:`hand`,size:24,node:[[`path`,{d:`M18 11V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2`,key:`1fvzgz`}],[`path`,{d:`M14 10V4a2 2 0 0 0-2-2a2 2 0 0 0-2 2v2`,key:`1kc0my`}],[`path`,{d:`M10 10.5V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2v8`,key:`10h0bg`}],[`path`,{d:`M18 8a2 2 0 1 1 4 0v6a8 8 0 0 1-8 8h-2c-2.8 0-4.5-.86-5.99-2.34l-3.6-3.6a2 2 0 0 1 2.83-2.82L7 15`,key:`1s1gnw`}]]};a.node;var o=n(a),s={name:`message-square`,size:24,node:[[`path`,{d:`M22 17a2 2 0 0 1-2 2H6.828a2 2 0 0 0-1.414.586l-2.202 2.202A.71.71 0 0 1 2 21.286V5a2 2 0 0 1 2-2h16a2 2 0 0 1 2 2z`,key:`18887p`}]]};s.node;var c=n(s);function l(e,t){let n=[...e],r=[],i=0,a=(e,t)=>{e>i&&r.push({text:n.slice(i,e).join(``),isHit:t,from:i}),i=Math.max(i,e)};for(let[e=0,r=0]of[...t].sort((e,t)=>(e[0]??0)-(t[0]??0)))a(Math.min(e,n.length),!1),a(Math.min(r,n.length),!0);return a(n.length,!1),r}var u=e();function d({text:e,ranges:t}){return l(e,t).map(({text:e,isHit:t,from:n})=>t?(0,u.jsx)(`mark`,{className:`rounded bg-warn-soft font-medium text-warn-text`,children:(0,u.jsx)(i,{text:e})},n):(0,u.jsx)(i,{text:e},n))}var f=t(`
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
`),p=t(`
    fragment ConversationFields on Conversation @_unmask {
      ...ConversationRow
      agentId
      agentDetails { id status statusReason }
      channelId
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
  `,[f]),m=t(`
    query ConversationShown($orgId: Id!, $id: Id!) {
      conversation(orgId: $orgId, id: $id) { ...ConversationFields }
    }
  `,[p]);function h(e){return r(e)}export{d as a,h as i,m as n,c as o,f as r,o as s,p as t};