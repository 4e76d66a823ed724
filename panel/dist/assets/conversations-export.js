import{C as e,Lt as t,b as n,ct as r,x as i}from"./shared.js";import{r as a,t as o}from"./deciding.js";import{i as s}from"./record.js";function c(e,t,n){return e===`md`?u(t,n):l(t,n)}function l(e,t){let{id:n,ref:r,title:i,status:a,agent:o,contactName:s,channelName:c,createdAt:l}=e,u={id:n,ref:r,title:i,status:a,agent:o?.name??null,contactName:s,channelName:c,createdAt:l};return`${JSON.stringify({conversation:u,messages:t},(e,t)=>e===`__typename`?void 0:t,2)}\n`}function u(e,t){let n=e.agent?.name??`Agent`,{ref:r,contactName:i,channelName:a}=e,o=[r,n,i,a].filter(Boolean).join(` · `),c=t.map(e=>`## ${e.authorName??d[e.role]??n}, ${e.createdAt}\n\n${f(e)}`);return`${[`# ${s(e)}`,o,...c].join(`

`)}\n`}var d={SYSTEM:`Muster`,TOOL:`Tool`,USER:`Someone`};function f({kind:e,content:t,attachments:n}){let{text:r,subject:i,tool:o,input:s,output:c,isError:l,approvalId:u,event:d,code:f}=a(t),m=n.map(({filename:e,mimeType:t,sizeBytes:n})=>`- ${e} (${t}, ${n} bytes)`);return[(()=>{switch(e){case`THINKING`:return r.replaceAll(/^/gm,`> `);case`TOOL_CALL`:return`Called ${o??`a tool`}:\n\n${p(s)}`;case`TOOL_RESULT`:return`${l?`Failed`:`Result`}:\n\n${p(c)}`;case`APPROVAL`:return`Asked for a decision${u?` (approval ${u})`:``}.`;case`EVENT`:return`*${r||d}*`;case`ERROR`:return`**${f??`Error`}**: ${r}`;default:return[i&&i!==r?`**${i}**`:``,r].filter(Boolean).join(`

`)}})(),m.join(`
`)].filter(Boolean).join(`

`)}function p(e){let t=typeof e==`string`?e:JSON.stringify(e??null,null,2),n=Math.max(2,...(t.match(/`+/g)??[]).map(({length:e})=>e)),r="`".repeat(n+1);return`${r}\n${t}\n${r}`}function m({ref:e,id:t,title:n},r){let i=(n??``).replaceAll(/[^\p{L}\p{N}]+/gu,`-`).replaceAll(/^-|-$/g,``).slice(0,60);return`${[e??t,i].filter(Boolean).join(`-`)}.${r}`}var h=e(`
    query ExportedMessages($orgId: Id!, $conversationId: Id!, $afterSeq: Int) {
      messages(orgId: $orgId, conversationId: $conversationId, afterSeq: $afterSeq, limit: 200) {
        data { ...MessageFields }
        hasAfter
      }
    }
  `,[o]),g={md:`text/markdown`,json:`application/json`};async function _(e,a,o,s){let l=[];for(let n=!0;n;){let s={orgId:a,conversationId:o.id,afterSeq:l.at(-1)?.seq??0},{data:c,error:u}=await r(e,h,s);if(!c?.messages){i(t(u));return}l.push(...c.messages.data.toSorted((e,t)=>e.seq-t.seq)),n=c.messages.hasAfter&&c.messages.data.length>0}v(m(o,s),g[s],c(s,o,l)),n(`Exported ${l.length.toLocaleString()} messages: see the downloads`)}function v(e,t,n){let r=document.createElement(`a`);r.href=URL.createObjectURL(new Blob([n],{type:t})),r.download=e,r.click(),setTimeout(()=>URL.revokeObjectURL(r.href),6e4)}export{_ as exportConversation};