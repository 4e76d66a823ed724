import{r as e}from"./rolldown-runtime.js";import{An as t,Ht as n,Mn as r,T as i,Tt as a,_ as o,xt as s,yt as c}from"./shared.js";import{a as l,i as u,n as d,r as f,t as p}from"./resource-page.js";import{r as m}from"./bounds.js";import{a as h,c as g,d as _,h as v,l as y,s as b}from"./fields.js";import{o as ee,s as x}from"./forms.js";import{S,T as C,c as w}from"./shell.js";import{c as T,p as E}from"./records.js";import{t as D}from"./peek.js";import{n as O,r as k,t as A}from"./sections.js";import{_ as j,s as M,t as N}from"./status.js";import{n as P}from"./code.js";import{i as F}from"./leave.js";import{o as I}from"./sheet.js";var L=n({node:[[`path`,{d:`M12 5v16`}],[`path`,{d:`M20.001 19A2 2 0 0022 17V5a2 2 0 00-1.999-2L16 3.002A5 5 0 0012 5a5 5 0 00-4-2H4a2 2 0 00-2 2v12a2 2 0 001.999 2H8a5 5 0 014 2 5 5 0 014-2z`}]]}),R=e(r(),1),z=t(),B=i(`
  mutation CreateSkill($orgId: Id!, $input: CreateSkillInput!) {
    createSkill(orgId: $orgId, input: $input) { id name }
  }
`);function V({onClose:e,onCreated:t}){let n=C(),r=ee(B),[i,a]=(0,R.useState)({name:``,description:``,content:``}),[o,s]=(0,R.useState)({}),[c,l]=(0,R.useState)(null),u=e=>a({...i,...e});return(0,z.jsxs)(x,{title:`New skill`,width:`lg`,action:`Create the skill`,busy:r.pending,onSubmit:async()=>{let e={...i,description:i.description||null},a=m(`CreateSkillInput`,e);if(s(a),Object.keys(a).length>0)return;let{data:o,error:c}=await r({orgId:n.id,input:e},{quiet:!0,said:`Created ${i.name}`});if(o?.createSkill)return t(o.createSkill.id);let u=v(c,[`name`,`description`,`content`]);s(u.errors),l(u.problem)},onClose:e,children:[(0,z.jsx)(_,{label:`Name`,hint:`Also the name of its folder, without slashes: tone-of-voice, for example.`,error:o.name,children:(0,z.jsx)(y,{value:i.name,onValue:e=>u({name:e}),autoComplete:`off`,spellCheck:!1})}),(0,z.jsx)(_,{label:`What it is for`,hint:`Agents read this to know when they need it.`,optional:!0,error:o.description,children:(0,z.jsx)(y,{value:i.description,onValue:e=>u({description:e})})}),(0,z.jsx)(_,{label:`Text`,optional:!0,error:o.content,children:(0,z.jsx)(g,{rows:10,maxRows:20,value:i.content,onValue:e=>u({content:e})})}),c&&(0,z.jsx)(h,{children:c})]})}var H=i(`
  query SkillVersions($orgId: Id!, $skillId: Id!) {
    skillVersions(orgId: $orgId, skillId: $skillId, page: 1, limit: 20) {
      total
      data { id version createdAt authorKind authorName reason content }
    }
  }
`),U=i(`
  mutation RevertSkill($orgId: Id!, $id: Id!, $version: Int!, $reason: String!) {
    revertSkill(orgId: $orgId, id: $id, version: $version, reason: $reason) {
      id name description content effort model version revision
    }
  }
`);function W({skill:e}){let{id:t}=C(),[n,r]=(0,R.useState)(null),{data:i}=w({query:H,variables:{orgId:t,skillId:e.id},on:({kind:t,id:n})=>t===`SKILL`&&n===e.id}),o=i?.skillVersions;return o?(0,z.jsxs)(I,{title:`Versions`,children:[(0,z.jsx)(`ol`,{className:`divide-y divide-line rounded-card border border-line`,children:o.data.map(t=>(0,z.jsxs)(`li`,{className:`flex items-center gap-3 px-3 py-2`,children:[(0,z.jsxs)(`span`,{className:`min-w-0 grow`,children:[(0,z.jsxs)(`span`,{className:`block`,children:[t.version,`. `,t.reason?(0,z.jsx)(M,{text:t.reason}):`Edited`]}),(0,z.jsxs)(`span`,{className:`block text-sm text-muted`,children:[(0,z.jsx)(j,{at:t.createdAt}),` by `,N(t.authorKind,t.authorName)]})]}),t.version===e.version?(0,z.jsx)(`span`,{className:`text-sm text-muted`,children:`present`}):(0,z.jsx)(a,{size:`sm`,onClick:()=>r(t),children:`Look`})]},t.id))}),o.total>o.data.length&&(0,z.jsxs)(`p`,{className:`mt-2 text-sm text-muted`,children:[`The newest `,o.data.length,` of `,o.total,`.`]}),n&&(0,z.jsx)(G,{version:n,skill:e,onClose:()=>r(null)})]}):null}function G({version:e,skill:t,onClose:n}){let{id:r}=C(),i=o(U),s=(e,n)=>({orgId:r,id:t.id,version:e,reason:n});return(0,z.jsx)(F,{open:!0,onClose:n,width:`lg`,title:`Version ${e.version} of ${t.name}`,footer:(0,z.jsxs)(z.Fragment,{children:[(0,z.jsx)(a,{onClick:n,children:`Close`}),(0,z.jsx)(S,{on:t,may:`skill.edit`,children:(0,z.jsx)(a,{look:`primary`,busy:i.pending,onClick:async()=>{let r=t.version;await i(s(e.version,`Back to version ${e.version}`),{said:`Back to version ${e.version}`,undo:()=>i(s(r,`Back to version ${r}`),{said:`Undone`})}),n()},children:`Go back to this`})})]}),children:(0,z.jsx)(P,{text:K(e.content),label:`The text of this version`,maxHeight:`lg`})})}function K(e){let t=typeof e==`object`&&e&&!Array.isArray(e)?e.content:null;return typeof t==`string`?t:JSON.stringify(e,null,2)}var q=i(`
  query Skill($orgId: Id!, $id: Id!) {
    skill(orgId: $orgId, id: $id) {
      id name description content effort model version revision archivedAt viewerCan
      agents { id name avatarUrl }
    }
  }
`),J=i(`
  mutation UpdateSkill($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateSkillInput!) {
    updateSkill(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description content effort model version revision
    }
  }
`),Y=i(`
  mutation ArchiveSkill($orgId: Id!, $id: Id!) {
    archiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),X=i(`
  mutation UnarchiveSkill($orgId: Id!, $id: Id!) {
    unarchiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),Z=[{value:`ANY`,label:`No preference`},{value:`LOW`,label:`Low`},{value:`MEDIUM`,label:`Medium`},{value:`HIGH`,label:`High`},{value:`MAX`,label:`Highest`}];function Q({id:e,onClose:t}){let{id:n}=C(),{data:r,error:i,loading:a,refetch:l}=w({query:q,variables:{orgId:n,id:e},on:({kind:t,id:n})=>t===`SKILL`&&n===e}),[u,d]=[o(Y),o(X)],f=r?.skill;return(0,z.jsx)(D,{title:f?.name??`Skill`,onClose:t,children:i&&!f?(0,z.jsx)(s,{error:i,retry:l}):a||!f?(0,z.jsx)(c,{}):(0,z.jsxs)(`div`,{className:`p-4`,children:[(0,z.jsx)(S,{on:f,may:`skill.edit`,children:(0,z.jsx)(te,{skill:f})}),(0,z.jsx)(T,{kind:`skill`,what:`this skill`,record:f,may:`skill.edit`}),(0,z.jsx)(W,{skill:f}),(0,z.jsx)(E,{what:`skill`,record:f,may:{archive:`skill.delete`,restore:`skill.edit`},onArchive:t=>u({orgId:n,id:e},t),onRestore:t=>d({orgId:n,id:e},t)})]})})}var $=({name:e,description:t,content:n,effort:r,model:i})=>({name:e,description:t,content:n,effort:r,model:i});function te({skill:e}){let{id:t}=C(),n=o(J),r=A({stored:$(e),revision:e.revision,bounds:{name:`UpdateSkillInput.name`,description:`UpdateSkillInput.description`,content:`UpdateSkillInput.content`,model:`UpdateSkillInput.model`},save:(r,i)=>n({orgId:t,id:e.id,ifRevision:i,input:r},{quiet:!0}),ofCurrent:$});return(0,z.jsxs)(k,{title:`The skill`,form:r,children:[(0,z.jsx)(O,{form:r,name:`name`,label:`Name`,children:(0,z.jsx)(y,{value:r.values.name,onValue:e=>r.set(`name`,e),spellCheck:!1})}),(0,z.jsx)(O,{form:r,name:`description`,label:`What it is for`,optional:!0,children:(0,z.jsx)(y,{value:r.values.description??``,onValue:e=>r.set(`description`,e||null)})}),(0,z.jsx)(O,{form:r,name:`content`,label:`Text`,optional:!0,asText:e=>ne(String(e)),children:(0,z.jsx)(g,{rows:10,maxRows:28,className:`font-mono text-sm`,value:r.values.content,onValue:e=>r.set(`content`,e)})}),(0,z.jsxs)(`div`,{className:`grid gap-4 sm:grid-cols-2`,children:[(0,z.jsx)(O,{form:r,name:`effort`,label:`Preferred effort`,children:(0,z.jsx)(b,{value:r.values.effort??`ANY`,options:Z,onValue:e=>r.set(`effort`,e===`ANY`?null:e)})}),(0,z.jsx)(O,{form:r,name:`model`,label:`Preferred model`,optional:!0,children:(0,z.jsx)(y,{value:r.values.model??``,onValue:e=>r.set(`model`,e||null),spellCheck:!1})})]})]})}var ne=e=>e.length>600?`${e.slice(0,600)}…`:e,re=i(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: $sort, includeArchived: $includeArchived) {
      total
      data { id name description version createdAt updatedAt archivedAt assignmentCount }
    }
  }
`),ie=[l(`2fr`),p,{id:`version`,head:`Version`,width:`5rem`,from:`md`,cell:({version:e})=>e},f,d];function ae(){return(0,z.jsx)(u,{path:`skills`,title:`Skills`,about:`Instructions that agents read when they need them.`,doc:`tools.md#a-skill`,icon:L,names:[`skill`,`skills`],query:re,pageOf:({skills:e})=>e,on:[`SKILL`],columns:ie,may:`skill.create`,hint:`Search for part of a name.`,empty:{title:`No skills yet`,about:`A skill is a text, such as how you answer complaints. Write it once and give it to the agents that need it; they get each change without a restart.`,command:e=>`mutation {\n  createSkill(orgId: ${e}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`},peek:e=>(0,z.jsx)(Q,{...e}),create:e=>(0,z.jsx)(V,{...e})})}export{ae as SkillsPage};