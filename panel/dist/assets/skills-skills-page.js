import{r as e}from"./rolldown-runtime.js";import{Tt as t,Vt as n,bt as r,g as i,jn as a,kn as o,vt as s,w as c,xt as l}from"./shared.js";import{i as u,n as d,r as f,t as p}from"./resource-page.js";import{r as m}from"./bounds.js";import{a as h,c as g,d as _,o as v,s as y}from"./fields.js";import{o as b,s as x}from"./forms.js";import{D as S,E as C,a as w,d as T,k as E}from"./shell.js";import{c as D,p as O}from"./records.js";import{t as k}from"./peek.js";import{n as A,r as j,t as M}from"./sections.js";import{g as N,s as P,t as F}from"./status.js";import{n as I}from"./code.js";var L={node:[[`path`,{d:`M12 5v16`}],[`path`,{d:`M20.001 19A2 2 0 0022 17V5a2 2 0 00-1.999-2L16 3.002A5 5 0 0012 5a5 5 0 00-4-2H4a2 2 0 00-2 2v12a2 2 0 001.999 2H8a5 5 0 014 2 5 5 0 014-2z`}]]};L.node;var R=n(L),z=e(a(),1),B=o(),ee=c(`
  mutation CreateSkill($orgId: Id!, $input: CreateSkillInput!) {
    createSkill(orgId: $orgId, input: $input) { id name }
  }
`);function V({onClose:e,onCreated:t}){let n=E(),i=b(ee),[a,o]=(0,z.useState)({name:``,description:``,content:``}),[s,c]=(0,z.useState)({}),[l,u]=(0,z.useState)(null),d=e=>o({...a,...e});return(0,B.jsxs)(x,{title:`New skill`,width:`lg`,action:`Create the skill`,busy:i.pending,onSubmit:async()=>{let e={...a,description:a.description||null},r=m(`CreateSkillInput`,e);if(c(r),Object.keys(r).length>0)return;let{data:o,error:s}=await i({orgId:n.id,input:e},{quiet:!0,said:`Created ${a.name}`});if(o?.createSkill)return t(o.createSkill.id);let l=_(s,[`name`,`description`,`content`]);c(l.errors),u(l.problem)},onClose:e,children:[(0,B.jsx)(g,{label:`Name`,hint:`Also the name of its folder, without slashes: tone-of-voice, for example.`,error:s.name,children:(0,B.jsx)(y,{value:a.name,onValue:e=>d({name:e}),autoComplete:`off`,spellCheck:!1})}),(0,B.jsx)(g,{label:`What it is for`,hint:`Agents read this to know when they need it.`,optional:!0,error:s.description,children:(0,B.jsx)(y,{value:a.description,onValue:e=>d({description:e})})}),(0,B.jsx)(g,{label:`Text`,optional:!0,error:s.content,children:(0,B.jsx)(v,{rows:10,maxRows:20,value:a.content,onValue:e=>d({content:e})})}),l&&(0,B.jsx)(r,{children:l})]})}var H=c(`
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
`);function W({skill:e}){let{id:n}=E(),[r,i]=(0,z.useState)(null),{data:a}=T({query:H,variables:{orgId:n,skillId:e.id},on:({kind:t,id:n})=>t===`SKILL`&&n===e.id}),o=a?.skillVersions;return o?(0,B.jsxs)(w,{title:`Versions`,children:[(0,B.jsx)(`ol`,{className:`divide-y divide-line rounded-card border border-line`,children:o.data.map(n=>(0,B.jsxs)(`li`,{className:`flex items-center gap-3 px-3 py-2`,children:[(0,B.jsxs)(`span`,{className:`min-w-0 grow`,children:[(0,B.jsxs)(`span`,{className:`block`,children:[n.version,`. `,n.reason?(0,B.jsx)(P,{text:n.reason}):`Edited`]}),(0,B.jsxs)(`span`,{className:`block text-sm text-muted`,children:[(0,B.jsx)(N,{at:n.createdAt}),` by `,F(n.authorKind,n.authorName)]})]}),n.version===e.version?(0,B.jsx)(`span`,{className:`text-sm text-muted`,children:`present`}):(0,B.jsx)(t,{size:`sm`,onClick:()=>i(n),children:`Look`})]},n.id))}),o.total>o.data.length&&(0,B.jsxs)(`p`,{className:`mt-2 text-sm text-muted`,children:[`The newest `,o.data.length,` of `,o.total,`.`]}),r&&(0,B.jsx)(G,{version:r,skill:e,onClose:()=>i(null)})]}):null}function G({version:e,skill:n,onClose:r}){let{id:a}=E(),o=i(U),s=(e,t)=>({orgId:a,id:n.id,version:e,reason:t});return(0,B.jsx)(C,{open:!0,onClose:r,width:`lg`,title:`Version ${e.version} of ${n.name}`,footer:(0,B.jsxs)(B.Fragment,{children:[(0,B.jsx)(t,{onClick:r,children:`Close`}),(0,B.jsx)(S,{on:n,may:`skill.edit`,children:(0,B.jsx)(t,{look:`primary`,busy:o.pending,onClick:async()=>{let t=n.version;await o(s(e.version,`Back to version ${e.version}`),{said:`Back to version ${e.version}`,undo:()=>o(s(t,`Back to version ${t}`),{said:`Undone`})}),r()},children:`Go back to this`})})]}),children:(0,B.jsx)(I,{text:K(e.content),label:`The text of this version`,maxHeight:`lg`})})}function K(e){let t=typeof e==`object`&&e&&!Array.isArray(e)?e.content:null;return typeof t==`string`?t:JSON.stringify(e,null,2)}var q=c(`
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
`),Z=[{value:`ANY`,label:`No preference`},{value:`LOW`,label:`Low`},{value:`MEDIUM`,label:`Medium`},{value:`HIGH`,label:`High`},{value:`MAX`,label:`Highest`}];function Q({id:e,onClose:t}){let{id:n}=E(),{data:r,error:a,loading:o,refetch:c}=T({query:q,variables:{orgId:n,id:e},on:({kind:t,id:n})=>t===`SKILL`&&n===e}),[u,d]=[i(Y),i(X)],f=r?.skill;return(0,B.jsx)(k,{title:f?.name??`Skill`,onClose:t,children:a&&!f?(0,B.jsx)(l,{error:a,retry:c}):o||!f?(0,B.jsx)(s,{}):(0,B.jsxs)(`div`,{className:`p-4`,children:[(0,B.jsx)(S,{on:f,may:`skill.edit`,children:(0,B.jsx)(te,{skill:f})}),(0,B.jsx)(D,{kind:`skill`,what:`this skill`,record:f,may:`skill.edit`}),(0,B.jsx)(W,{skill:f}),(0,B.jsx)(O,{what:`skill`,record:f,may:{archive:`skill.delete`,restore:`skill.edit`},onArchive:t=>u({orgId:n,id:e},t),onRestore:t=>d({orgId:n,id:e},t)})]})})}var $=({name:e,description:t,content:n,effort:r,model:i})=>({name:e,description:t,content:n,effort:r,model:i});function te({skill:e}){let{id:t}=E(),n=i(J),r=M({stored:$(e),revision:e.revision,bounds:{name:`UpdateSkillInput.name`,description:`UpdateSkillInput.description`,content:`UpdateSkillInput.content`,model:`UpdateSkillInput.model`},save:(r,i)=>n({orgId:t,id:e.id,ifRevision:i,input:r},{quiet:!0}),ofCurrent:$});return(0,B.jsxs)(j,{title:`The skill`,form:r,children:[(0,B.jsx)(A,{form:r,name:`name`,label:`Name`,children:(0,B.jsx)(y,{value:r.values.name,onValue:e=>r.set(`name`,e),spellCheck:!1})}),(0,B.jsx)(A,{form:r,name:`description`,label:`What it is for`,optional:!0,children:(0,B.jsx)(y,{value:r.values.description??``,onValue:e=>r.set(`description`,e||null)})}),(0,B.jsx)(A,{form:r,name:`content`,label:`Text`,optional:!0,asText:e=>ne(String(e)),children:(0,B.jsx)(v,{rows:10,maxRows:28,className:`font-mono text-sm`,value:r.values.content,onValue:e=>r.set(`content`,e)})}),(0,B.jsxs)(`div`,{className:`grid gap-4 sm:grid-cols-2`,children:[(0,B.jsx)(A,{form:r,name:`effort`,label:`Effort it prefers`,children:(0,B.jsx)(h,{value:r.values.effort??`ANY`,options:Z,onValue:e=>r.set(`effort`,e===`ANY`?null:e)})}),(0,B.jsx)(A,{form:r,name:`model`,label:`Model it prefers`,optional:!0,children:(0,B.jsx)(y,{value:r.values.model??``,onValue:e=>r.set(`model`,e||null),spellCheck:!1})})]})]})}var ne=e=>e.length>600?`${e.slice(0,600)}…`:e,re=c(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME, includeArchived: $includeArchived) {
      total
      data { id name description version updatedAt archivedAt assignmentCount }
    }
  }
`),ie=[u(`2fr`),p,{id:`version`,head:`Version`,width:`5rem`,from:`md`,cell:({version:e})=>e},d];function ae(){return(0,B.jsx)(f,{path:`skills`,title:`Skills`,about:`Instructions that agents read when they need them.`,icon:R,names:[`skill`,`skills`],query:re,pageOf:({skills:e})=>e,on:[`SKILL`],columns:ie,may:`skill.create`,hint:`Search for part of a name.`,empty:{title:`No skills yet`,about:`A skill is a text, such as how you answer complaints. Write it once and give it to the agents that need it; they get each change without a restart.`,command:e=>`mutation {\n  createSkill(orgId: ${e}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`},peek:e=>(0,B.jsx)(Q,{...e}),create:({open:e,...t})=>e&&(0,B.jsx)(V,{...t})})}export{ae as SkillsPage};