import{C as e,S as t,T as n,ut as r,zt as i}from"./shared.js";import{r as a,t as o}from"./deciding.js";import{n as s}from"./sheet.js";import{i as c}from"./record.js";function l(e,t,n){return e===`md`?d(t,n):u(t,n)}function u(e,t){let{id:n,ref:r,title:i,status:a,agent:o,contactName:s,channelName:c,createdAt:l}=e,u={id:n,ref:r,title:i,status:a,agent:o?.name??null,contactName:s,channelName:c,createdAt:l};return`${JSON.stringify({conversation:u,messages:t},(e,t)=>e===`__typename`?void 0:t,2)}\n`}function d(e,t){let n=e.agent?.name??`Agent`,{ref:r,contactName:i,channelName:a}=e,o=[r,n,i,a].filter(Boolean).join(` · `),s=t.map(e=>`## ${e.authorName??f[e.role]??n}, ${e.createdAt}\n\n${p(e)}`);return`${[`# ${c(e)}`,o,...s].join(`

`)}\n`}var f={SYSTEM:`Muster`,TOOL:`Tool`,USER:`Someone`};function p({kind:e,content:t,attachments:n}){let{text:r,subject:i,tool:o,input:s,output:c,isError:l,approvalId:u,event:d,code:f}=a(t),p=n.map(({filename:e,mimeType:t,sizeBytes:n})=>`- ${e} (${t}, ${n} bytes)`);return[(()=>{switch(e){case`THINKING`:return r.replaceAll(/^/gm,`> `);case`TOOL_CALL`:return`Called ${o??`a tool`}:\n\n${m(s)}`;case`TOOL_RESULT`:return`${l?`Failed`:`Result`}:\n\n${m(c)}`;case`APPROVAL`:return`Asked for a decision${u?` (approval ${u})`:``}.`;case`EVENT`:return`*${r||d}*`;case`ERROR`:return`**${f??`Error`}**: ${r}`;default:return[i&&i!==r?`**${i}**`:``,r].filter(Boolean).join(`

`)}})(),p.join(`
`)].filter(Boolean).join(`

`)}function m(e){let t=typeof e==`string`?e:JSON.stringify(e??null,null,2),n=Math.max(2,...(t.match(/`+/g)??[]).map(({length:e})=>e)),r="`".repeat(n+1);return`${r}\n${t}\n${r}`}function h({ref:e,id:t,title:n},r){let i=(n??``).replaceAll(/[^\p{L}\p{N}]+/gu,`-`).replaceAll(/^-|-$/g,``).slice(0,60);return`${[e??t,i].filter(Boolean).join(`-`)}.${r}`}var g=n(`
    query ExportedMessages($orgId: Id!, $conversationId: Id!, $afterSeq: Int) {
      messages(orgId: $orgId, conversationId: $conversationId, afterSeq: $afterSeq, limit: 200) {
        data { ...MessageFields }
        hasAfter
      }
    }
  `,[o]),_={md:`text/markdown`,json:`application/json`};async function v(n,a,o,c){let u=[];for(let t=!0;t;){let s={orgId:a,conversationId:o.id,afterSeq:u.at(-1)?.seq??0},{data:c,error:l}=await r(n,g,s);if(!c?.messages){e(i(l));return}u.push(...c.messages.data.toSorted((e,t)=>e.seq-t.seq)),t=c.messages.hasAfter&&c.messages.data.length>0}s(l(c,o,u),_[c],h(o,c)),t(`Exported ${u.length.toLocaleString()} messages: see the downloads`)}export{v as exportConversation};