import{r as e}from"./rolldown-runtime.js";import{An as t,Ht as n,Mn as r,T as i,Tt as a,_ as o,xt as s,yt as c}from"./shared.js";import{a as l,i as u,n as d,r as f,t as p}from"./resource-page.js";import{i as m,r as h,t as g}from"./bounds.js";import{a as _,c as v,d as y,h as b,l as x,s as S}from"./fields.js";import{o as ee,s as C}from"./forms.js";import{S as w,T,c as E}from"./shell.js";import{c as D,p as O}from"./records.js";import{t as k}from"./peek.js";import{n as A,r as j,t as M}from"./sections.js";import{_ as N,s as P,t as F}from"./status.js";import{n as I}from"./code.js";import{i as L}from"./leave.js";import{o as R}from"./sheet.js";var te=n({node:[[`path`,{d:`M12 5v16`}],[`path`,{d:`M20.001 19A2 2 0 0022 17V5a2 2 0 00-1.999-2L16 3.002A5 5 0 0012 5a5 5 0 00-4-2H4a2 2 0 00-2 2v12a2 2 0 001.999 2H8a5 5 0 014 2 5 5 0 014-2z`}]]}),z=e(r(),1),B=t(),V=i(`
  mutation CreateSkill($orgId: Id!, $input: CreateSkillInput!) {
    createSkill(orgId: $orgId, input: $input) { id name }
  }
`);function H({onClose:e,onCreated:t}){let n=T(),r=ee(V),[i,a]=(0,z.useState)({name:``,description:``,content:``}),[o,s]=(0,z.useState)({}),[c,l]=(0,z.useState)(null),u=e=>a({...i,...e});return(0,B.jsxs)(C,{title:`New skill`,width:`lg`,action:`Create the skill`,busy:r.pending,onSubmit:async()=>{let e={...i,description:i.description||null},a=m(`CreateSkillInput`,e);if(s(a),Object.keys(a).length>0)return;let{data:o,error:c}=await r({orgId:n.id,input:e},{quiet:!0,said:`Created ${i.name}`});if(o?.createSkill)return t(o.createSkill.id);let u=b(c,[`name`,`description`,`content`]);s(u.errors),l(u.problem)},onClose:e,children:[(0,B.jsx)(y,{label:`Name`,hint:`Also the name of its folder, without slashes: tone-of-voice, for example.`,error:o.name,liveError:h(i.name,g(`CreateSkillInput.name`)),children:(0,B.jsx)(x,{value:i.name,onValue:e=>u({name:e}),autoComplete:`off`,spellCheck:!1})}),(0,B.jsx)(y,{label:`What it is for`,hint:`Agents read this to know when they need it.`,optional:!0,error:o.description,children:(0,B.jsx)(x,{value:i.description,onValue:e=>u({description:e})})}),(0,B.jsx)(y,{label:`Text`,optional:!0,error:o.content,children:(0,B.jsx)(v,{rows:10,maxRows:20,value:i.content,onValue:e=>u({content:e})})}),c&&(0,B.jsx)(_,{children:c})]})}var U=i(`
  query SkillVersions($orgId: Id!, $skillId: Id!) {
    skillVersions(orgId: $orgId, skillId: $skillId, page: 1, limit: 20) {
      total
      data { id version createdAt authorKind authorName reason content }
    }
  }
`),W=i(`
  mutation RevertSkill($orgId: Id!, $id: Id!, $version: Int!, $reason: String!) {
    revertSkill(orgId: $orgId, id: $id, version: $version, reason: $reason) {
      id name description content effort model version revision
    }
  }
`);function G({skill:e}){let{id:t}=T(),[n,r]=(0,z.useState)(null),{data:i}=E({query:U,variables:{orgId:t,skillId:e.id},on:({kind:t,id:n})=>t===`SKILL`&&n===e.id}),o=i?.skillVersions;return o?(0,B.jsxs)(R,{title:`Versions`,children:[(0,B.jsx)(`ol`,{className:`divide-y divide-line rounded-card border border-line`,children:o.data.map(t=>(0,B.jsxs)(`li`,{className:`flex items-center gap-3 px-3 py-2`,children:[(0,B.jsxs)(`span`,{className:`min-w-0 grow`,children:[(0,B.jsxs)(`span`,{className:`block`,children:[t.version,`. `,t.reason?(0,B.jsx)(P,{text:t.reason}):`Edited`]}),(0,B.jsxs)(`span`,{className:`block text-sm text-muted`,children:[(0,B.jsx)(N,{at:t.createdAt}),` by `,F(t.authorKind,t.authorName)]})]}),t.version===e.version?(0,B.jsx)(`span`,{className:`text-sm text-muted`,children:`present`}):(0,B.jsx)(a,{size:`sm`,onClick:()=>r(t),children:`Look`})]},t.id))}),o.total>o.data.length&&(0,B.jsxs)(`p`,{className:`mt-2 text-sm text-muted`,children:[`The newest `,o.data.length,` of `,o.total,`.`]}),n&&(0,B.jsx)(K,{version:n,skill:e,onClose:()=>r(null)})]}):null}function K({version:e,skill:t,onClose:n}){let{id:r}=T(),i=o(W),s=(e,n)=>({orgId:r,id:t.id,version:e,reason:n});return(0,B.jsx)(L,{open:!0,onClose:n,width:`lg`,title:`Version ${e.version} of ${t.name}`,footer:(0,B.jsxs)(B.Fragment,{children:[(0,B.jsx)(a,{onClick:n,children:`Close`}),(0,B.jsx)(w,{on:t,may:`skill.edit`,children:(0,B.jsx)(a,{look:`primary`,busy:i.pending,onClick:async()=>{let r=t.version;await i(s(e.version,`Back to version ${e.version}`),{said:`Back to version ${e.version}`,undo:()=>i(s(r,`Back to version ${r}`),{said:`Undone`})}),n()},children:`Go back to this`})})]}),children:(0,B.jsx)(I,{text:q(e.content),label:`The text of this version`,maxHeight:`lg`})})}function q(e){let t=typeof e==`object`&&e&&!Array.isArray(e)?e.content:null;return typeof t==`string`?t:JSON.stringify(e,null,2)}var J=i(`
  query Skill($orgId: Id!, $id: Id!) {
    skill(orgId: $orgId, id: $id) {
      id name description content effort model version revision archivedAt viewerCan
      agents { id name avatarUrl }
    }
  }
`),Y=i(`
  mutation UpdateSkill($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateSkillInput!) {
    updateSkill(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description content effort model version revision
    }
  }
`),X=i(`
  mutation ArchiveSkill($orgId: Id!, $id: Id!) {
    archiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),Z=i(`
  mutation UnarchiveSkill($orgId: Id!, $id: Id!) {
    unarchiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),Q=[{value:`ANY`,label:`No preference`},{value:`LOW`,label:`Low`},{value:`MEDIUM`,label:`Medium`},{value:`HIGH`,label:`High`},{value:`MAX`,label:`Highest`}];function ne({id:e,onClose:t}){let{id:n}=T(),{data:r,error:i,loading:a,refetch:l}=E({query:J,variables:{orgId:n,id:e},on:({kind:t,id:n})=>t===`SKILL`&&n===e}),[u,d]=[o(X),o(Z)],f=r?.skill;return(0,B.jsx)(k,{title:f?.name??`Skill`,onClose:t,children:i&&!f?(0,B.jsx)(s,{error:i,retry:l}):a||!f?(0,B.jsx)(c,{}):(0,B.jsxs)(`div`,{className:`p-4`,children:[(0,B.jsx)(w,{on:f,may:`skill.edit`,children:(0,B.jsx)(re,{skill:f})}),(0,B.jsx)(D,{kind:`skill`,what:`this skill`,record:f,may:`skill.edit`}),(0,B.jsx)(G,{skill:f}),(0,B.jsx)(O,{what:`skill`,record:f,may:{archive:`skill.delete`,restore:`skill.edit`},onArchive:t=>u({orgId:n,id:e},t),onRestore:t=>d({orgId:n,id:e},t)})]})})}var $=({name:e,description:t,content:n,effort:r,model:i})=>({name:e,description:t,content:n,effort:r,model:i});function re({skill:e}){let{id:t}=T(),n=o(Y),r=M({stored:$(e),revision:e.revision,bounds:{name:`UpdateSkillInput.name`,description:`UpdateSkillInput.description`,content:`UpdateSkillInput.content`,model:`UpdateSkillInput.model`},save:(r,i)=>n({orgId:t,id:e.id,ifRevision:i,input:r},{quiet:!0}),ofCurrent:$});return(0,B.jsxs)(j,{title:`The skill`,form:r,children:[(0,B.jsx)(A,{form:r,name:`name`,label:`Name`,children:(0,B.jsx)(x,{value:r.values.name,onValue:e=>r.set(`name`,e),spellCheck:!1})}),(0,B.jsx)(A,{form:r,name:`description`,label:`What it is for`,optional:!0,children:(0,B.jsx)(x,{value:r.values.description??``,onValue:e=>r.set(`description`,e||null)})}),(0,B.jsx)(A,{form:r,name:`content`,label:`Text`,optional:!0,asText:e=>ie(String(e)),children:(0,B.jsx)(v,{rows:10,maxRows:28,className:`font-mono text-sm`,value:r.values.content,onValue:e=>r.set(`content`,e)})}),(0,B.jsxs)(`div`,{className:`grid gap-4 sm:grid-cols-2`,children:[(0,B.jsx)(A,{form:r,name:`effort`,label:`Preferred effort`,children:(0,B.jsx)(S,{value:r.values.effort??`ANY`,options:Q,onValue:e=>r.set(`effort`,e===`ANY`?null:e)})}),(0,B.jsx)(A,{form:r,name:`model`,label:`Preferred model`,optional:!0,children:(0,B.jsx)(x,{value:r.values.model??``,onValue:e=>r.set(`model`,e||null),spellCheck:!1})})]})]})}var ie=e=>e.length>600?`${e.slice(0,600)}…`:e,ae=i(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: $sort, includeArchived: $includeArchived) {
      total
      data { id name description version createdAt updatedAt archivedAt assignmentCount }
    }
  }
`),oe=[l(`2fr`),p,{id:`version`,head:`Version`,width:`5rem`,from:`md`,cell:({version:e})=>e},f,d];function se(){return(0,B.jsx)(u,{path:`skills`,title:`Skills`,about:`Instructions that agents read when they need them.`,doc:`tools.md#a-skill`,icon:te,names:[`skill`,`skills`],query:ae,pageOf:({skills:e})=>e,on:[`SKILL`],columns:oe,may:`skill.create`,hint:`Search for part of a name.`,empty:{title:`No skills yet`,about:`A skill is a text, such as how you answer complaints. Write it once and give it to the agents that need it; they get each change without a restart.`,command:e=>`mutation {\n  createSkill(orgId: ${e}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`},peek:e=>(0,B.jsx)(ne,{...e}),create:e=>(0,B.jsx)(H,{...e})})}export{se as SkillsPage};