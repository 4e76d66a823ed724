import{r as e}from"./rolldown-runtime.js";import{An as t,Ht as n,Mn as r,Tt as i,bt as a,g as o,vt as s,w as c,xt as l}from"./shared.js";import{a as u,i as d,n as f,r as p,t as m}from"./resource-page.js";import{r as h}from"./bounds.js";import{a as g,c as _,d as v,o as y,s as b}from"./fields.js";import{o as x,s as ee}from"./forms.js";import{A as S,D as te,O as C,a as w,f as T}from"./shell.js";import{c as E,p as D}from"./records.js";import{t as O}from"./peek.js";import{n as k,r as A,t as j}from"./sections.js";import{g as M,s as N,t as P}from"./status.js";import{n as F}from"./code.js";var I={node:[[`path`,{d:`M12 5v16`}],[`path`,{d:`M20.001 19A2 2 0 0022 17V5a2 2 0 00-1.999-2L16 3.002A5 5 0 0012 5a5 5 0 00-4-2H4a2 2 0 00-2 2v12a2 2 0 001.999 2H8a5 5 0 014 2 5 5 0 014-2z`}]]};I.node;var L=n(I),R=e(r(),1),z=t(),B=c(`
  mutation CreateSkill($orgId: Id!, $input: CreateSkillInput!) {
    createSkill(orgId: $orgId, input: $input) { id name }
  }
`);function V({onClose:e,onCreated:t}){let n=S(),r=x(B),[i,o]=(0,R.useState)({name:``,description:``,content:``}),[s,c]=(0,R.useState)({}),[l,u]=(0,R.useState)(null),d=e=>o({...i,...e});return(0,z.jsxs)(ee,{title:`New skill`,width:`lg`,action:`Create the skill`,busy:r.pending,onSubmit:async()=>{let e={...i,description:i.description||null},a=h(`CreateSkillInput`,e);if(c(a),Object.keys(a).length>0)return;let{data:o,error:s}=await r({orgId:n.id,input:e},{quiet:!0,said:`Created ${i.name}`});if(o?.createSkill)return t(o.createSkill.id);let l=v(s,[`name`,`description`,`content`]);c(l.errors),u(l.problem)},onClose:e,children:[(0,z.jsx)(_,{label:`Name`,hint:`Also the name of its folder, without slashes: tone-of-voice, for example.`,error:s.name,children:(0,z.jsx)(b,{value:i.name,onValue:e=>d({name:e}),autoComplete:`off`,spellCheck:!1})}),(0,z.jsx)(_,{label:`What it is for`,hint:`Agents read this to know when they need it.`,optional:!0,error:s.description,children:(0,z.jsx)(b,{value:i.description,onValue:e=>d({description:e})})}),(0,z.jsx)(_,{label:`Text`,optional:!0,error:s.content,children:(0,z.jsx)(y,{rows:10,maxRows:20,value:i.content,onValue:e=>d({content:e})})}),l&&(0,z.jsx)(a,{children:l})]})}var H=c(`
  query SkillVersions($orgId: Id!, $skillId: Id!) {
    skillVersions(orgId: $orgId, skillId: $skillId, page: 1, limit: 20) {
      total
      data { id version createdAt authorKind authorName reason content }
    }
  }
`),U=c(`
  mutation RevertSkill($orgId: Id!, $id: Id!, $version: Int!, $reason: String!) {
    revertSkill(orgId: $orgId, id: $id, version: $version, reason: $reason) {
      id name description content effort model version revision
    }
  }
`);function W({skill:e}){let{id:t}=S(),[n,r]=(0,R.useState)(null),{data:a}=T({query:H,variables:{orgId:t,skillId:e.id},on:({kind:t,id:n})=>t===`SKILL`&&n===e.id}),o=a?.skillVersions;return o?(0,z.jsxs)(w,{title:`Versions`,children:[(0,z.jsx)(`ol`,{className:`divide-y divide-line rounded-card border border-line`,children:o.data.map(t=>(0,z.jsxs)(`li`,{className:`flex items-center gap-3 px-3 py-2`,children:[(0,z.jsxs)(`span`,{className:`min-w-0 grow`,children:[(0,z.jsxs)(`span`,{className:`block`,children:[t.version,`. `,t.reason?(0,z.jsx)(N,{text:t.reason}):`Edited`]}),(0,z.jsxs)(`span`,{className:`block text-sm text-muted`,children:[(0,z.jsx)(M,{at:t.createdAt}),` by `,P(t.authorKind,t.authorName)]})]}),t.version===e.version?(0,z.jsx)(`span`,{className:`text-sm text-muted`,children:`present`}):(0,z.jsx)(i,{size:`sm`,onClick:()=>r(t),children:`Look`})]},t.id))}),o.total>o.data.length&&(0,z.jsxs)(`p`,{className:`mt-2 text-sm text-muted`,children:[`The newest `,o.data.length,` of `,o.total,`.`]}),n&&(0,z.jsx)(G,{version:n,skill:e,onClose:()=>r(null)})]}):null}function G({version:e,skill:t,onClose:n}){let{id:r}=S(),a=o(U),s=(e,n)=>({orgId:r,id:t.id,version:e,reason:n});return(0,z.jsx)(te,{open:!0,onClose:n,width:`lg`,title:`Version ${e.version} of ${t.name}`,footer:(0,z.jsxs)(z.Fragment,{children:[(0,z.jsx)(i,{onClick:n,children:`Close`}),(0,z.jsx)(C,{on:t,may:`skill.edit`,children:(0,z.jsx)(i,{look:`primary`,busy:a.pending,onClick:async()=>{let r=t.version;await a(s(e.version,`Back to version ${e.version}`),{said:`Back to version ${e.version}`,undo:()=>a(s(r,`Back to version ${r}`),{said:`Undone`})}),n()},children:`Go back to this`})})]}),children:(0,z.jsx)(F,{text:K(e.content),label:`The text of this version`,maxHeight:`lg`})})}function K(e){let t=typeof e==`object`&&e&&!Array.isArray(e)?e.content:null;return typeof t==`string`?t:JSON.stringify(e,null,2)}var q=c(`
  query Skill($orgId: Id!, $id: Id!) {
    skill(orgId: $orgId, id: $id) {
      id name description content effort model version revision archivedAt viewerCan
      agents { id name avatarUrl }
    }
  }
`),J=c(`
  mutation UpdateSkill($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateSkillInput!) {
    updateSkill(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description content effort model version revision
    }
  }
`),Y=c(`
  mutation ArchiveSkill($orgId: Id!, $id: Id!) {
    archiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),X=c(`
  mutation UnarchiveSkill($orgId: Id!, $id: Id!) {
    unarchiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),Z=[{value:`ANY`,label:`No preference`},{value:`LOW`,label:`Low`},{value:`MEDIUM`,label:`Medium`},{value:`HIGH`,label:`High`},{value:`MAX`,label:`Highest`}];function Q({id:e,onClose:t}){let{id:n}=S(),{data:r,error:i,loading:a,refetch:c}=T({query:q,variables:{orgId:n,id:e},on:({kind:t,id:n})=>t===`SKILL`&&n===e}),[u,d]=[o(Y),o(X)],f=r?.skill;return(0,z.jsx)(O,{title:f?.name??`Skill`,onClose:t,children:i&&!f?(0,z.jsx)(l,{error:i,retry:c}):a||!f?(0,z.jsx)(s,{}):(0,z.jsxs)(`div`,{className:`p-4`,children:[(0,z.jsx)(C,{on:f,may:`skill.edit`,children:(0,z.jsx)(ne,{skill:f})}),(0,z.jsx)(E,{kind:`skill`,what:`this skill`,record:f,may:`skill.edit`}),(0,z.jsx)(W,{skill:f}),(0,z.jsx)(D,{what:`skill`,record:f,may:{archive:`skill.delete`,restore:`skill.edit`},onArchive:t=>u({orgId:n,id:e},t),onRestore:t=>d({orgId:n,id:e},t)})]})})}var $=({name:e,description:t,content:n,effort:r,model:i})=>({name:e,description:t,content:n,effort:r,model:i});function ne({skill:e}){let{id:t}=S(),n=o(J),r=j({stored:$(e),revision:e.revision,bounds:{name:`UpdateSkillInput.name`,description:`UpdateSkillInput.description`,content:`UpdateSkillInput.content`,model:`UpdateSkillInput.model`},save:(r,i)=>n({orgId:t,id:e.id,ifRevision:i,input:r},{quiet:!0}),ofCurrent:$});return(0,z.jsxs)(A,{title:`The skill`,form:r,children:[(0,z.jsx)(k,{form:r,name:`name`,label:`Name`,children:(0,z.jsx)(b,{value:r.values.name,onValue:e=>r.set(`name`,e),spellCheck:!1})}),(0,z.jsx)(k,{form:r,name:`description`,label:`What it is for`,optional:!0,children:(0,z.jsx)(b,{value:r.values.description??``,onValue:e=>r.set(`description`,e||null)})}),(0,z.jsx)(k,{form:r,name:`content`,label:`Text`,optional:!0,asText:e=>re(String(e)),children:(0,z.jsx)(y,{rows:10,maxRows:28,className:`font-mono text-sm`,value:r.values.content,onValue:e=>r.set(`content`,e)})}),(0,z.jsxs)(`div`,{className:`grid gap-4 sm:grid-cols-2`,children:[(0,z.jsx)(k,{form:r,name:`effort`,label:`Effort it prefers`,children:(0,z.jsx)(g,{value:r.values.effort??`ANY`,options:Z,onValue:e=>r.set(`effort`,e===`ANY`?null:e)})}),(0,z.jsx)(k,{form:r,name:`model`,label:`Model it prefers`,optional:!0,children:(0,z.jsx)(b,{value:r.values.model??``,onValue:e=>r.set(`model`,e||null),spellCheck:!1})})]})]})}var re=e=>e.length>600?`${e.slice(0,600)}…`:e,ie=c(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: $sort, includeArchived: $includeArchived) {
      total
      data { id name description version createdAt updatedAt archivedAt assignmentCount }
    }
  }
`),ae=[u(`2fr`),m,{id:`version`,head:`Version`,width:`5rem`,from:`md`,cell:({version:e})=>e},p,f];function oe(){return(0,z.jsx)(d,{path:`skills`,title:`Skills`,about:`Instructions that agents read when they need them.`,doc:`tools.md#a-skill`,icon:L,names:[`skill`,`skills`],query:ie,pageOf:({skills:e})=>e,on:[`SKILL`],columns:ae,may:`skill.create`,hint:`Search for part of a name.`,empty:{title:`No skills yet`,about:`A skill is a text, such as how you answer complaints. Write it once and give it to the agents that need it; they get each change without a restart.`,command:e=>`mutation {\n  createSkill(orgId: ${e}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`},peek:e=>(0,z.jsx)(Q,{...e}),create:({open:e,...t})=>e&&(0,z.jsx)(V,{...t})})}export{oe as SkillsPage};