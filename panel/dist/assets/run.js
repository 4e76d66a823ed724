import{r as e}from"./rolldown-runtime.js";import{b as t,c as n,x as r,y as i}from"./icons.js";import{An as a,C as o,Et as s,Mn as c,T as l,_ as u,pt as d,ut as f,zt as p}from"./shared.js";import{u as m,y as h}from"./status.js";import{S as g,T as _,w as v}from"./shell.js";import{b as y}from"./records.js";import{a as b}from"./forms.js";var x=e(c(),1);function S(e){let t=e?.trim()??``,[n=``]=/^(?:its? |the host's )[^\n]*/.exec(t)??[],[,r,i]=/\((code|signal) (-?\d+)\)$/.exec(n)??[];return{exit:r?`${r===`code`?`Exit code`:`Signal`} ${i}`:null,more:t.slice(n.length).trim()||null}}function C(e,t){switch(e){case`STOPPED`:case`ERROR`:return[`start`];case`SPAWNING`:return[`stop`];case`RUNNING`:return[`pause`,`stop`];case`PAUSED`:return[`resume`,`stop`];case`STOPPING`:return t===`RESTARTING`?[`stop`]:[];default:return[]}}var w={start:`SPAWNING`,stop:`STOPPING`,pause:`PAUSED`,resume:`RUNNING`,restart:`STOPPING`},T=({createdAt:e},t)=>`Turn of ${h(Date.parse(e),t)}`,E={AGENT:`Another agent`,API:`A program`,CHANNEL:`A channel`,PANEL:`The panel`,SCHEDULE:`A schedule`,SYSTEM:`Muster`},D=(e,t=0)=>`${[...e].length.toLocaleString()} of ${t.toLocaleString()} characters.`,O={ask:40,block:90};function k(e,t){if(e===null)return`Nothing set: the default of ${O[t]} applies.`;if(Number.isNaN(e))return``;if(e===0)return t===`ask`?`Asks before every action.`:`Every action is blocked.`;if(e>=100)return t===`ask`?`Asks only at the highest risk.`:`Only the highest risk is blocked.`;let n=e<=20?`small`:e<=50?`medium`:e<=80?`high`:`very high`;return t===`ask`?`Asks if the risk is ${n} or higher.`:`Blocks actions if the risk is ${n} or higher.`}var A=a(),j=l(`
  mutation StartAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason restart { attempts nextAt } }
  }
`),M=l(`
  mutation StopAgent($orgId: Id!, $id: Id!) {
    stopAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restart { attempts nextAt } }
  }
`),N=l(`
  mutation PauseAgent($orgId: Id!, $id: Id!) {
    pauseAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),P=l(`
  mutation ResumeAgent($orgId: Id!, $id: Id!) {
    resumeAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),F=l(`
  mutation RestartAgent($orgId: Id!, $id: Id!) {
    restartAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason }
  }
`),I=l(`
  query StopEnds($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) { id waitingRequests runningTurns { id } }
  }
`),L={start:{label:`Start`,icon:n,tip:`Starts the agent on its server`},stop:{label:`Stop`,icon:i,tip:`Ends the agent’s work and its program`},pause:{label:`Pause`,icon:r,tip:`The agent stays up; new work waits`},resume:{label:`Resume`,icon:t,tip:`Continues with waiting work`}};function R(e){let{id:t}=_(),n={start:u(j),stop:u(M),pause:u(N),resume:u(P),restart:u(F)},r=d(),[i,a]=(0,x.useState)(null),[s,c]=(0,x.useState)(null),[l,h]=(0,x.useState)(!1),g=async r=>{c(null),i||(a(r),await n[r]({orgId:t,id:e.id}),a(null))},v=async n=>{if(i||l)return;if(n!==`stop`&&n!==`restart`)return g(n);h(!0);let{data:a,error:s}=await f(r,I,{orgId:t,id:e.id});if(h(!1),s||!a?.agent)return o(p(s));let u=m(a.agent.runningTurns.length,a.agent.waitingRequests);if(u===null)return g(n);c({step:n,ends:u})},y=s?.step===`restart`?`Restart`:`Stop`;return{status:i?w[i]:e.status,busy:i!==null||l,step:e=>void v(e),question:s&&(0,A.jsxs)(b,{open:!0,onClose:()=>c(null),title:`${y} ${e.name}?`,action:y,other:e.status===`RUNNING`?{label:`Pause instead`,run:()=>void g(`pause`)}:void 0,onConfirm:()=>g(s.step),children:[`This `,s.ends,`. Approvals and conversations say that it was you.`]})}}function z({agent:e,run:t}){let n=v(`agent.edit`,e),r=C(t.status,e.statusReason).map(r=>(0,A.jsx)(y,{look:r===`start`||r===`resume`?`primary`:`secondary`,icon:L[r].icon,tip:L[r].tip,busy:t.busy,action:{id:`agent.${r}.${e.id}`,label:`${L[r].label} the agent`,group:`Agent`,refused:n,run:()=>t.step(r)},children:L[r].label},r));return(0,A.jsxs)(A.Fragment,{children:[r,t.question]})}function B({agent:e,run:t}){let n=C(t.status,e.statusReason),r=n.includes(`stop`)&&!n.includes(`resume`)?`stop`:n[0];return r?(0,A.jsxs)(g,{on:e,may:`agent.edit`,children:[(0,A.jsx)(s,{size:`sm`,icon:L[r].icon,label:`${L[r].label} ${e.name}`,busy:t.busy,onClick:()=>t.step(r)}),t.question]}):null}export{O as a,k as c,E as i,T as l,B as n,D as o,R as r,S as s,z as t};