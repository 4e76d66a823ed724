import{r as e}from"./rolldown-runtime.js";import{D as t,Dt as n,Et as r,F as i,Kt as a,jt as o,wt as s}from"./shared.js";import{i as c,n as l,r as u,t as d}from"./resource-page.js";import{I as f,P as p}from"./vendor.js";import{d as m,f as h,r as ee,u as g}from"./forms.js";import{r as _}from"./leave.js";import{C as v,E as y,V as b,b as x,g as S,i as C,t as te,u as w}from"./shell.js";import{a as T,i as E,n as D,r as O}from"./fields.js";import{b as k,c as A}from"./records.js";import{t as j}from"./peek.js";import{n as M,r as N,t as P}from"./sections.js";import{n as F}from"./code.js";var I={name:`book-open`,size:24,node:[[`path`,{d:`M12 5v16`,key:`1f6ucr`}],[`path`,{d:`M20.001 19A2 2 0 0022 17V5a2 2 0 00-1.999-2L16 3.002A5 5 0 0012 5a5 5 0 00-4-2H4a2 2 0 00-2 2v12a2 2 0 001.999 2H8a5 5 0 014 2 5 5 0 014-2z`,key:`1fyvmf`}]]};I.node;var L=a(I),R=e(f(),1),z=p(),B=i(`
  mutation CreateSkill($orgId: Id!, $input: CreateSkillInput!) {
    createSkill(orgId: $orgId, input: $input) { id name }
  }
`);function V({onClose:e,onCreated:t}){let n=x(),i=ee(B),[a,o]=(0,R.useState)({name:``,description:``,content:``}),[s,c]=(0,R.useState)({}),[l,u]=(0,R.useState)(null),d=e=>o({...a,...e});return(0,z.jsxs)(g,{title:`New skill`,width:`lg`,action:`Create the skill`,busy:i.pending,onSubmit:async()=>{let e=h(a.name,m(`CreateSkillInput.name`));if(e)return c({name:e});let r={...a,description:a.description||null},{data:o,error:s}=await i({orgId:n.id,input:r},{quiet:!0,said:`Created ${a.name}`});if(o?.createSkill)return t(o.createSkill.id);let l=_(s,[`name`,`description`,`content`]);c(l.errors),u(l.problem)},onClose:e,children:[(0,z.jsx)(T,{label:`Name`,hint:`Also the name of its folder: tone-of-voice, for example.`,error:s.name,children:(0,z.jsx)(E,{value:a.name,onValue:e=>d({name:e}),autoComplete:`off`,spellCheck:!1})}),(0,z.jsx)(T,{label:`What it is for`,hint:`Agents read this to know when they need it.`,error:s.description,children:(0,z.jsx)(E,{value:a.description,onValue:e=>d({description:e})})}),(0,z.jsx)(T,{label:`Text`,error:s.content,children:(0,z.jsx)(O,{rows:10,maxRows:20,value:a.content,onValue:e=>d({content:e})})}),l&&(0,z.jsx)(r,{children:l})]})}var H=i(`
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
`);function W({skill:e}){let{id:t}=x(),[n,r]=(0,R.useState)(null),{data:i}=y({query:H,variables:{orgId:t,skillId:e.id},on:({kind:t,id:n})=>t===`SKILL`&&n===e.id}),a=i?.skillVersions;return a?(0,z.jsxs)(w,{title:`Versions`,children:[(0,z.jsx)(`ol`,{className:`divide-y divide-line rounded-card border border-line`,children:a.data.map(t=>(0,z.jsxs)(`li`,{className:`flex items-center gap-3 px-3 py-2`,children:[(0,z.jsxs)(`span`,{className:`min-w-0 grow`,children:[(0,z.jsxs)(`span`,{className:`block`,children:[t.version,`. `,t.reason?(0,z.jsx)(C,{text:t.reason}):`Edited`]}),(0,z.jsxs)(`span`,{className:`block text-sm text-muted`,children:[(0,z.jsx)(v,{at:t.createdAt}),` by `,te(t.authorKind,t.authorName)]})]}),t.version===e.version?(0,z.jsx)(`span`,{className:`text-sm text-muted`,children:`present`}):(0,z.jsx)(o,{size:`sm`,onClick:()=>r(t),children:`Look`})]},t.id))}),a.total>a.data.length&&(0,z.jsxs)(`p`,{className:`mt-2 text-sm text-muted`,children:[`The newest `,a.data.length,` of `,a.total,`.`]}),n&&(0,z.jsx)(G,{version:n,skill:e,onClose:()=>r(null)})]}):null}function G({version:e,skill:n,onClose:r}){let{id:i}=x(),a=t(U),s=(e,t)=>({orgId:i,id:n.id,version:e,reason:t});return(0,z.jsx)(b,{open:!0,onClose:r,width:`lg`,title:`Version ${e.version} of ${n.name}`,footer:(0,z.jsxs)(z.Fragment,{children:[(0,z.jsx)(o,{onClick:r,children:`Close`}),(0,z.jsx)(S,{on:n,may:`skill.edit`,children:(0,z.jsx)(o,{look:`primary`,busy:a.pending,onClick:async()=>{let t=n.version;await a(s(e.version,`Back to version ${e.version}`),{said:`Back to version ${e.version}`,undo:()=>a(s(t,`Back to version ${t}`),{said:`Undone`})}),r()},children:`Go back to this`})})]}),children:(0,z.jsx)(F,{text:K(e.content),label:`The text of this version`,maxHeight:`lg`})})}function K(e){let t=typeof e==`object`&&e&&!Array.isArray(e)?e.content:null;return typeof t==`string`?t:JSON.stringify(e,null,2)}var q=i(`
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
`),Z=[{value:`ANY`,label:`No preference`},{value:`LOW`,label:`Low`},{value:`MEDIUM`,label:`Medium`},{value:`HIGH`,label:`High`},{value:`MAX`,label:`Highest`}];function Q({id:e,onClose:r}){let{id:i}=x(),{data:a,error:o,loading:c,refetch:l}=y({query:q,variables:{orgId:i,id:e},on:({kind:t,id:n})=>t===`SKILL`&&n===e}),[u,d]=[t(Y),t(X)],f=a?.skill;return(0,z.jsx)(j,{title:f?.name??`Skill`,onClose:r,children:o&&!f?(0,z.jsx)(n,{error:o,retry:l}):c||!f?(0,z.jsx)(s,{}):(0,z.jsxs)(`div`,{className:`p-4`,children:[(0,z.jsx)(S,{on:f,may:`skill.edit`,children:(0,z.jsx)(ne,{skill:f})}),(0,z.jsx)(A,{kind:`skill`,what:`this skill`,record:f,may:`skill.edit`}),(0,z.jsx)(W,{skill:f}),(0,z.jsx)(k,{what:`skill`,record:f,may:{archive:`skill.delete`,restore:`skill.edit`},onArchive:t=>u({orgId:i,id:e},t),onRestore:t=>d({orgId:i,id:e},t)})]})})}var $=({name:e,description:t,content:n,effort:r,model:i})=>({name:e,description:t,content:n,effort:r,model:i});function ne({skill:e}){let{id:n}=x(),r=t(J),i=P({stored:$(e),revision:e.revision,bounds:{name:`UpdateSkillInput.name`,description:`UpdateSkillInput.description`,content:`UpdateSkillInput.content`,model:`UpdateSkillInput.model`},save:(t,i)=>r({orgId:n,id:e.id,ifRevision:i,input:t},{quiet:!0}),ofCurrent:$});return(0,z.jsxs)(N,{title:`The skill`,form:i,children:[(0,z.jsx)(M,{form:i,name:`name`,label:`Name`,children:(0,z.jsx)(E,{value:i.values.name,onValue:e=>i.set(`name`,e),spellCheck:!1})}),(0,z.jsx)(M,{form:i,name:`description`,label:`What it is for`,optional:!0,children:(0,z.jsx)(E,{value:i.values.description??``,onValue:e=>i.set(`description`,e||null)})}),(0,z.jsx)(M,{form:i,name:`content`,label:`Text`,asText:e=>re(String(e)),children:(0,z.jsx)(O,{rows:10,maxRows:28,className:`font-mono text-sm`,value:i.values.content,onValue:e=>i.set(`content`,e)})}),(0,z.jsxs)(`div`,{className:`grid gap-4 sm:grid-cols-2`,children:[(0,z.jsx)(M,{form:i,name:`effort`,label:`Effort it prefers`,children:(0,z.jsx)(D,{value:i.values.effort??`ANY`,options:Z,onValue:e=>i.set(`effort`,e===`ANY`?null:e)})}),(0,z.jsx)(M,{form:i,name:`model`,label:`Model it prefers`,optional:!0,children:(0,z.jsx)(E,{value:i.values.model??``,onValue:e=>i.set(`model`,e||null),spellCheck:!1})})]})]})}var re=e=>e.length>600?`${e.slice(0,600)}…`:e,ie=i(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME, includeArchived: $includeArchived) {
      total
      data { id name description version updatedAt archivedAt assignmentCount }
    }
  }
`),ae=[c(`2fr`),d,{id:`version`,head:`Version`,width:`5rem`,from:`md`,cell:({version:e})=>e},l];function oe(){return(0,z.jsx)(u,{path:`skills`,title:`Skills`,about:`Instructions that agents read when they need them.`,icon:L,names:[`skill`,`skills`],query:ie,pageOf:({skills:e})=>e,on:[`SKILL`],columns:ae,may:`skill.create`,hint:`Search for part of a name.`,empty:{title:`No skills yet`,about:`A skill is a text, such as how you answer complaints. Write it once and give it to the agents that need it; they get each change without a restart.`,command:e=>`mutation {\n  createSkill(orgId: ${e}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`},peek:e=>(0,z.jsx)(Q,{...e}),create:({open:e,...t})=>e&&(0,z.jsx)(V,{...t})})}export{oe as SkillsPage};