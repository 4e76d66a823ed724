import{r as e}from"./rolldown-runtime.js";import{_ as t,s as n,v as r,y as i}from"./icons.js";import{Et as a,S as o,ft as s,g as c,jn as l,kn as u,lt as d,w as f,zt as p}from"./shared.js";import{u as m,v as h}from"./status.js";import{D as g,O as _,k as v}from"./shell.js";import{y}from"./records.js";import{a as b}from"./forms.js";var x=e(l(),1);function S(e){let t=e?.trim()??``,[n=``]=/^(?:its? |the host's )[^\n]*/.exec(t)??[],[,r,i]=/\((code|signal) (-?\d+)\)$/.exec(n)??[];return{exit:r?`${r===`code`?`Exit code`:`Signal`} ${i}`:null,more:t.slice(n.length).trim()||null}}function C(e,t){switch(e){case`STOPPED`:case`ERROR`:return[`start`];case`SPAWNING`:return[`stop`];case`RUNNING`:return[`pause`,`stop`];case`PAUSED`:return[`resume`,`stop`];case`STOPPING`:return t===`RESTARTING`?[`stop`]:[];default:return[]}}var w={start:`SPAWNING`,stop:`STOPPING`,pause:`PAUSED`,resume:`RUNNING`,restart:`STOPPING`},T=({createdAt:e},t)=>`Turn of ${h(Date.parse(e),t)}`,E={AGENT:`Another agent`,API:`A program`,CHANNEL:`A channel`,PANEL:`The panel`,SCHEDULE:`A schedule`,SYSTEM:`Muster`},D={ask:40,block:90};function O(e,t){if(e===null)return`Nothing set: the default of ${D[t]} applies.`;if(Number.isNaN(e))return``;if(e===0)return t===`ask`?`Asks before every action.`:`Every action is blocked.`;if(e>=100)return t===`ask`?`Asks only at the highest risk.`:`Only the highest risk is blocked.`;let n=e<=20?`small`:e<=50?`medium`:e<=80?`high`:`very high`;return t===`ask`?`Asks if the risk is ${n} or higher.`:`Blocks actions if the risk is ${n} or higher.`}var k=u(),A=f(`
  mutation StartAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason restart { attempts nextAt } }
  }
`),j=f(`
  mutation StopAgent($orgId: Id!, $id: Id!) {
    stopAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restart { attempts nextAt } }
  }
`),M=f(`
  mutation PauseAgent($orgId: Id!, $id: Id!) {
    pauseAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),N=f(`
  mutation ResumeAgent($orgId: Id!, $id: Id!) {
    resumeAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),P=f(`
  mutation RestartAgent($orgId: Id!, $id: Id!) {
    restartAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason }
  }
`),F=f(`
  query StopEnds($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) { id waitingRequests runningTurns { id } }
  }
`),I={start:{label:`Start`,icon:n,tip:`Starts the agent on its server`},stop:{label:`Stop`,icon:t,tip:`Ends the agent’s work and its program`},pause:{label:`Pause`,icon:i,tip:`The agent stays up; new work waits`},resume:{label:`Resume`,icon:r,tip:`Continues with waiting work`}};function L(e){let{id:t}=v(),n={start:c(A),stop:c(j),pause:c(M),resume:c(N),restart:c(P)},r=s(),[i,a]=(0,x.useState)(null),[l,u]=(0,x.useState)(null),[f,h]=(0,x.useState)(!1),g=async r=>{u(null),i||(a(r),await n[r]({orgId:t,id:e.id}),a(null))},_=async n=>{if(i||f)return;if(n!==`stop`&&n!==`restart`)return g(n);h(!0);let{data:a,error:s}=await d(r,F,{orgId:t,id:e.id});if(h(!1),s||!a?.agent)return o(p(s));let c=m(a.agent.runningTurns.length,a.agent.waitingRequests);if(c===null)return g(n);u({step:n,ends:c})},y=l?.step===`restart`?`Restart`:`Stop`;return{status:i?w[i]:e.status,busy:i!==null||f,step:e=>void _(e),question:l&&(0,k.jsxs)(b,{open:!0,onClose:()=>u(null),title:`${y} ${e.name}?`,action:y,other:e.status===`RUNNING`?{label:`Pause instead`,run:()=>void g(`pause`)}:void 0,onConfirm:()=>g(l.step),children:[`This `,l.ends,`. Approvals and conversations say that it was you.`]})}}function R({agent:e,run:t}){let n=_(`agent.edit`,e),r=C(t.status,e.statusReason).map(r=>(0,k.jsx)(y,{look:r===`start`||r===`resume`?`primary`:`secondary`,icon:I[r].icon,tip:I[r].tip,busy:t.busy,action:{id:`agent.${r}.${e.id}`,label:`${I[r].label} the agent`,group:`Agent`,refused:n,run:()=>t.step(r)},children:I[r].label},r));return(0,k.jsxs)(k.Fragment,{children:[r,t.question]})}function z({agent:e,run:t}){let n=C(t.status,e.statusReason),r=n.includes(`stop`)&&!n.includes(`resume`)?`stop`:n[0];return r?(0,k.jsxs)(g,{on:e,may:`agent.edit`,children:[(0,k.jsx)(a,{size:`sm`,icon:I[r].icon,label:`${I[r].label} ${e.name}`,busy:t.busy,onClick:()=>t.step(r)}),t.question]}):null}export{D as a,T as c,E as i,z as n,S as o,L as r,O as s,R as t};