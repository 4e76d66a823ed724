import{r as e}from"./rolldown-runtime.js";import{d as t,f as n,u as r}from"./status.js";import{t as i}from"./play.js";import{I as a,P as o,a as s}from"./vendor.js";import{Gt as c,I as l,Nt as u,O as d,P as f,vt as p}from"./shared.js";import{S as m,m as h,v as g,y as _}from"./shell.js";import{T as v}from"./records.js";import{p as y}from"./forms.js";var b=e(a(),1);function x(e,t){switch(e){case`STOPPED`:case`ERROR`:return[`start`];case`SPAWNING`:return[`stop`];case`RUNNING`:return[`pause`,`stop`];case`PAUSED`:return[`resume`,`stop`];case`STOPPING`:return t===`RESTARTING`?[`stop`]:[];default:return[]}}var S={start:`SPAWNING`,stop:`STOPPING`,pause:`PAUSED`,resume:`RUNNING`,restart:`STOPPING`},C={AGENT:`Another agent`,API:`A program`,CHANNEL:`A channel`,PANEL:`The panel`,SCHEDULE:`A schedule`,SYSTEM:`Muster`};function w(e){if(e==null)return null;let t=Number(e)/1e6;return Number.isFinite(t)?t.toLocaleString(void 0,{minimumFractionDigits:2,maximumFractionDigits:t<1?4:2}):null}var T={ask:40,block:90};function E(e,t){let n=t===`ask`?`asks`:`is blocked`;return e===null?`Nothing set: the default of ${T[t]} applies.`:Number.isNaN(e)?``:e===0?t===`ask`?`Asks before every action.`:`Every action is blocked.`:e>=100?t===`ask`?`Asks only at the highest risk.`:`Only the highest risk is blocked.`:`From a ${e<=20?`small`:e<=50?`medium`:e<=80?`high`:`very high`} risk on it ${n}.`}var D=o(),O=l(`
  mutation StartAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason restart { attempts nextAt } }
  }
`),k=l(`
  mutation StopAgent($orgId: Id!, $id: Id!) {
    stopAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restart { attempts nextAt } }
  }
`),A=l(`
  mutation PauseAgent($orgId: Id!, $id: Id!) {
    pauseAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),j=l(`
  mutation ResumeAgent($orgId: Id!, $id: Id!) {
    resumeAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),M=l(`
  mutation RestartAgent($orgId: Id!, $id: Id!) {
    restartAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason }
  }
`),N=l(`
  query StopEnds($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) { id waitingRequests runningTurns { id } }
  }
`),P={start:{label:`Start`,icon:i,tip:`Launches it on its server`},stop:{label:`Stop`,icon:r,tip:`Ends its work and its program`},pause:{label:`Pause`,icon:n,tip:`Keeps it up; new work waits`},resume:{label:`Resume`,icon:t,tip:`Continues with waiting work`}};function F(e){let{id:t}=m(),n={start:d(O),stop:d(k),pause:d(A),resume:d(j),restart:d(M)},r=s(),[i,a]=(0,b.useState)(null),[o,l]=(0,b.useState)(null),[u,g]=(0,b.useState)(!1),_=async r=>{l(null),i||(a(r),await n[r]({orgId:t,id:e.id}),a(null))},v=async n=>{if(i||u)return;if(n!==`stop`&&n!==`restart`)return _(n);g(!0);let{data:a,error:o}=await p(r,N,{orgId:t,id:e.id});if(g(!1),o||!a?.agent)return f(c(o));let s=h(a.agent.runningTurns.length,a.agent.waitingRequests);if(s===null)return _(n);l({step:n,ends:s})},x=o?.step===`restart`?`Restart`:`Stop`;return{status:i?S[i]:e.status,busy:i!==null||u,step:e=>void v(e),question:o&&(0,D.jsxs)(y,{open:!0,onClose:()=>l(null),title:`${x} ${e.name}?`,action:x,other:e.status===`RUNNING`?{label:`Pause instead`,run:()=>void _(`pause`)}:void 0,onConfirm:()=>_(o.step),children:[`This `,o.ends,`. Approvals and conversations say that it was you.`]})}}function I({agent:e,run:t}){let n=_(`agent.edit`,e),r=x(t.status,e.statusReason).map(e=>(0,D.jsx)(v,{look:e===`start`||e===`resume`?`primary`:`secondary`,icon:P[e].icon,tip:P[e].tip,busy:t.busy,action:{id:`agent.${e}`,label:`${P[e].label} the agent`,group:`Agent`,refused:n,run:()=>t.step(e)},children:P[e].label},e));return(0,D.jsxs)(D.Fragment,{children:[r,t.question]})}function L({agent:e,run:t}){let n=x(t.status,e.statusReason),r=n.includes(`stop`)&&!n.includes(`resume`)?`stop`:n[0];return r?(0,D.jsxs)(g,{on:e,may:`agent.edit`,children:[(0,D.jsx)(u,{size:`sm`,icon:P[r].icon,label:`${P[r].label} ${e.name}`,busy:t.busy,onClick:()=>t.step(r)}),t.question]}):null}export{T as a,C as i,L as n,w as o,F as r,E as s,I as t};