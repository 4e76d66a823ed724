import{X as e,hn as t,r as n}from"./shared.js";var r={name:`hand`,size:24,node:[[`path`,{d:`M18 11V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2`,key:`1fvzgz`}],[`path`,{d:`M14 10V4a2 2 0 0 0-2-2a2 2 0 0 0-2 2v2`,key:`1kc0my`}],[`path`,{d:`M10 10.5V6a2 2 0 0 0-2-2a2 2 0 0 0-2 2v8`,key:`10h0bg`}],[`path`,{d:`M18 8a2 2 0 1 1 4 0v6a8 8 0 0 1-8 8h-2c-2.8 0-4.5-.86-5.99-2.34l-3.6-3.6a2 2 0 0 1 2.83-2.82L7 15`,key:`1s1gnw`}]]};r.node;var i=t(r),a={name:`message-square`,size:24,node:[[`path`,{d:`M22 17a2 2 0 0 1-2 2H6.828a2 2 0 0 0-1.414.586l-2.202 2.202A.71.71 0 0 1 2 21.286V5a2 2 0 0 1 2-2h16a2 2 0 0 1 2 2z`,key:`18887p`}]]};a.node;var o=t(a),s=e(`
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
`),c=e(`
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
  `,[s]),l=e(`
    query ConversationShown($orgId: Id!, $id: Id!) {
      conversation(orgId: $orgId, id: $id) { ...ConversationFields }
    }
  `,[c]);function u(e){return n(e)}export{o as a,u as i,l as n,i as o,s as r,c as t};