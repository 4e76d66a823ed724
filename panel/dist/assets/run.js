import{r as e}from"./rolldown-runtime.js";import{f as t,m as n,p as r}from"./status.js";import{t as i}from"./play.js";import{I as a,R as o}from"./vendor.js";import{A as s,Bt as c,T as l,X as u,h as d,m as f}from"./shared.js";import{w as p}from"./records.js";var m=e(o(),1);function h(e,t){switch(e){case`STOPPED`:case`ERROR`:return[`start`];case`SPAWNING`:return[`stop`];case`RUNNING`:return[`pause`,`stop`];case`PAUSED`:return[`resume`,`stop`];case`STOPPING`:return t===`RESTARTING`?[`stop`]:[];default:return[]}}var g={start:`SPAWNING`,stop:`STOPPING`,pause:`PAUSED`,resume:`RUNNING`,restart:`STOPPING`},_={AGENT:`Another agent`,API:`A program`,CHANNEL:`A channel`,PANEL:`The panel`,SCHEDULE:`A schedule`,SYSTEM:`Muster`};function v(e){if(e==null)return null;let t=Number(e)/1e6;return Number.isFinite(t)?t.toLocaleString(void 0,{minimumFractionDigits:2,maximumFractionDigits:t<1?4:2}):null}var y={ask:40,block:90};function b(e,t){let n=t===`ask`?`asks`:`is blocked`;return e===null?`Nothing set: the default of ${y[t]} applies.`:Number.isNaN(e)?``:e===0?t===`ask`?`Asks before every action.`:`Every action is blocked.`:e>=100?t===`ask`?`Asks only at the highest risk.`:`Only the highest risk is blocked.`:`From a ${e<=20?`small`:e<=50?`medium`:e<=80?`high`:`very high`} risk on it ${n}.`}var x=a(),S=u(`
  mutation StartAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason }
  }
`),C=u(`
  mutation StopAgent($orgId: Id!, $id: Id!) {
    stopAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),w=u(`
  mutation PauseAgent($orgId: Id!, $id: Id!) {
    pauseAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),T=u(`
  mutation ResumeAgent($orgId: Id!, $id: Id!) {
    resumeAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`),E=u(`
  mutation RestartAgent($orgId: Id!, $id: Id!) {
    restartAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason }
  }
`),D={start:{label:`Start`,icon:i,tip:`Launches it on its server`},stop:{label:`Stop`,icon:t,tip:`Ends its work and its program`},pause:{label:`Pause`,icon:n,tip:`Keeps it up; new work waits`},resume:{label:`Resume`,icon:r,tip:`Takes up what has waited`}};function O(e){let{id:t}=s(),n={start:l(S),stop:l(C),pause:l(w),resume:l(T),restart:l(E)},[r,i]=(0,m.useState)(null),a=async a=>{r||(i(a),await n[a]({orgId:t,id:e.id}),i(null))};return{status:r?g[r]:e.status,busy:r!==null,step:e=>void a(e)}}function k({agent:e,run:t}){let n=d(`agent.edit`,e);return h(t.status,e.statusReason).map(e=>(0,x.jsx)(p,{look:e===`start`||e===`resume`?`primary`:`secondary`,icon:D[e].icon,tip:D[e].tip,busy:t.busy,action:{id:`agent.${e}`,label:`${D[e].label} the agent`,group:`Agent`,refused:n,run:()=>t.step(e)},children:D[e].label},e))}function A({agent:e,run:t}){let n=h(t.status,e.statusReason),r=n.includes(`stop`)&&!n.includes(`resume`)?`stop`:n[0];return r?(0,x.jsx)(f,{on:e,may:`agent.edit`,children:(0,x.jsx)(c,{size:`sm`,icon:D[r].icon,label:`${D[r].label} ${e.name}`,busy:t.busy,onClick:()=>t.step(r)})}):null}export{y as a,_ as i,A as n,v as o,O as r,b as s,k as t};