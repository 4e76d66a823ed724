import{r as e}from"./rolldown-runtime.js";import{Dt as t,I as n,Mt as r,O as i,Ot as a,Tt as o,qt as s}from"./shared.js";import{i as c,n as l,r as u,t as d}from"./resource-page.js";import{I as f,P as p}from"./vendor.js";import{d as m,f as h,r as g,u as _}from"./forms.js";import{r as v}from"./leave.js";import{O as y,S as b,T as x,U as S,f as ee,o as C,r as te,v as w}from"./shell.js";import{a as T,i as E,n as D,r as O}from"./fields.js";import{b as k,c as A}from"./records.js";import{t as j}from"./peek.js";import{n as M,r as N,t as P}from"./sections.js";import{n as F}from"./code.js";var I={name:`book-open`,size:24,node:[[`path`,{d:`M12 5v16`,key:`1f6ucr`}],[`path`,{d:`M20.001 19A2 2 0 0022 17V5a2 2 0 00-1.999-2L16 3.002A5 5 0 0012 5a5 5 0 00-4-2H4a2 2 0 00-2 2v12a2 2 0 001.999 2H8a5 5 0 014 2 5 5 0 014-2z`,key:`1fyvmf`}]]};I.node;var L=s(I),R=e(f(),1),z=p(),B=n(`
  mutation CreateSkill($orgId: Id!, $input: CreateSkillInput!) {
    createSkill(orgId: $orgId, input: $input) { id name }
  }
`);function V({onClose:e,onCreated:n}){let r=b(),i=g(B),[a,o]=(0,R.useState)({name:``,description:``,content:``}),[s,c]=(0,R.useState)({}),[l,u]=(0,R.useState)(null),d=e=>o({...a,...e});return(0,z.jsxs)(_,{title:`New skill`,width:`lg`,action:`Create the skill`,busy:i.pending,onSubmit:async()=>{let e=h(a.name,m(`CreateSkillInput.name`));if(e)return c({name:e});let t={...a,description:a.description||null},{data:o,error:s}=await i({orgId:r.id,input:t},{quiet:!0,said:`Created ${a.name}`});if(o?.createSkill)return n(o.createSkill.id);let l=v(s,[`name`,`description`,`content`]);c(l.errors),u(l.problem)},onClose:e,children:[(0,z.jsx)(T,{label:`Name`,hint:`Also the name of its folder: tone-of-voice, for example.`,error:s.name,children:(0,z.jsx)(E,{value:a.name,onValue:e=>d({name:e}),autoComplete:`off`,spellCheck:!1})}),(0,z.jsx)(T,{label:`What it is for`,hint:`Agents read this to know when they need it.`,error:s.description,children:(0,z.jsx)(E,{value:a.description,onValue:e=>d({description:e})})}),(0,z.jsx)(T,{label:`Text`,error:s.content,children:(0,z.jsx)(O,{rows:10,maxRows:20,value:a.content,onValue:e=>d({content:e})})}),l&&(0,z.jsx)(t,{children:l})]})}var H=n(`
  query SkillVersions($orgId: Id!, $skillId: Id!) {
    skillVersions(orgId: $orgId, skillId: $skillId, page: 1, limit: 20) {
      total
      data { id version createdAt authorKind authorName reason content }
    }
  }
`),U=n(`
  mutation RevertSkill($orgId: Id!, $id: Id!, $version: Int!, $reason: String!) {
    revertSkill(orgId: $orgId, id: $id, version: $version, reason: $reason) {
      id name description content effort model version revision
    }
  }
`);function W({skill:e}){let{id:t}=b(),[n,i]=(0,R.useState)(null),{data:a}=y({query:H,variables:{orgId:t,skillId:e.id},on:({kind:t,id:n})=>t===`SKILL`&&n===e.id}),o=a?.skillVersions;return o?(0,z.jsxs)(ee,{title:`Versions`,children:[(0,z.jsx)(`ol`,{className:`divide-y divide-line rounded-card border border-line`,children:o.data.map(t=>(0,z.jsxs)(`li`,{className:`flex items-center gap-3 px-3 py-2`,children:[(0,z.jsxs)(`span`,{className:`min-w-0 grow`,children:[(0,z.jsxs)(`span`,{className:`block`,children:[t.version,`. `,t.reason?(0,z.jsx)(C,{text:t.reason}):`Edited`]}),(0,z.jsxs)(`span`,{className:`block text-sm text-muted`,children:[(0,z.jsx)(x,{at:t.createdAt}),` by `,te(t.authorKind,t.authorName)]})]}),t.version===e.version?(0,z.jsx)(`span`,{className:`text-sm text-muted`,children:`present`}):(0,z.jsx)(r,{size:`sm`,onClick:()=>i(t),children:`Look`})]},t.id))}),o.total>o.data.length&&(0,z.jsxs)(`p`,{className:`mt-2 text-sm text-muted`,children:[`The newest `,o.data.length,` of `,o.total,`.`]}),n&&(0,z.jsx)(G,{version:n,skill:e,onClose:()=>i(null)})]}):null}function G({version:e,skill:t,onClose:n}){let{id:a}=b(),o=i(U),s=(e,n)=>({orgId:a,id:t.id,version:e,reason:n});return(0,z.jsx)(S,{open:!0,onClose:n,width:`lg`,title:`Version ${e.version} of ${t.name}`,footer:(0,z.jsxs)(z.Fragment,{children:[(0,z.jsx)(r,{onClick:n,children:`Close`}),(0,z.jsx)(w,{on:t,may:`skill.edit`,children:(0,z.jsx)(r,{look:`primary`,busy:o.pending,onClick:async()=>{let r=t.version;await o(s(e.version,`Back to version ${e.version}`),{said:`Back to version ${e.version}`,undo:()=>o(s(r,`Back to version ${r}`),{said:`Undone`})}),n()},children:`Go back to this`})})]}),children:(0,z.jsx)(F,{text:K(e.content),label:`The text of this version`,maxHeight:`lg`})})}function K(e){let t=typeof e==`object`&&e&&!Array.isArray(e)?e.content:null;return typeof t==`string`?t:JSON.stringify(e,null,2)}var q=n(`
  query Skill($orgId: Id!, $id: Id!) {
    skill(orgId: $orgId, id: $id) {
      id name description content effort model version revision archivedAt viewerCan
      agents { id name avatarUrl }
    }
  }
`),J=n(`
  mutation UpdateSkill($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateSkillInput!) {
    updateSkill(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description content effort model version revision
    }
  }
`),Y=n(`
  mutation ArchiveSkill($orgId: Id!, $id: Id!) {
    archiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),X=n(`
  mutation UnarchiveSkill($orgId: Id!, $id: Id!) {
    unarchiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`),Z=[{value:`ANY`,label:`No preference`},{value:`LOW`,label:`Low`},{value:`MEDIUM`,label:`Medium`},{value:`HIGH`,label:`High`},{value:`MAX`,label:`Highest`}];function Q({id:e,onClose:t}){let{id:n}=b(),{data:r,error:s,loading:c,refetch:l}=y({query:q,variables:{orgId:n,id:e},on:({kind:t,id:n})=>t===`SKILL`&&n===e}),[u,d]=[i(Y),i(X)],f=r?.skill;return(0,z.jsx)(j,{title:f?.name??`Skill`,onClose:t,children:s&&!f?(0,z.jsx)(a,{error:s,retry:l}):c||!f?(0,z.jsx)(o,{}):(0,z.jsxs)(`div`,{className:`p-4`,children:[(0,z.jsx)(w,{on:f,may:`skill.edit`,children:(0,z.jsx)(ne,{skill:f})}),(0,z.jsx)(A,{kind:`skill`,what:`this skill`,record:f,may:`skill.edit`}),(0,z.jsx)(W,{skill:f}),(0,z.jsx)(k,{what:`skill`,record:f,may:{archive:`skill.delete`,restore:`skill.edit`},onArchive:t=>u({orgId:n,id:e},t),onRestore:t=>d({orgId:n,id:e},t)})]})})}var $=({name:e,description:t,content:n,effort:r,model:i})=>({name:e,description:t,content:n,effort:r,model:i});function ne({skill:e}){let{id:t}=b(),n=i(J),r=P({stored:$(e),revision:e.revision,bounds:{name:`UpdateSkillInput.name`,description:`UpdateSkillInput.description`,content:`UpdateSkillInput.content`,model:`UpdateSkillInput.model`},save:(r,i)=>n({orgId:t,id:e.id,ifRevision:i,input:r},{quiet:!0}),ofCurrent:$});return(0,z.jsxs)(N,{title:`The skill`,form:r,children:[(0,z.jsx)(M,{form:r,name:`name`,label:`Name`,children:(0,z.jsx)(E,{value:r.values.name,onValue:e=>r.set(`name`,e),spellCheck:!1})}),(0,z.jsx)(M,{form:r,name:`description`,label:`What it is for`,optional:!0,children:(0,z.jsx)(E,{value:r.values.description??``,onValue:e=>r.set(`description`,e||null)})}),(0,z.jsx)(M,{form:r,name:`content`,label:`Text`,asText:e=>re(String(e)),children:(0,z.jsx)(O,{rows:10,maxRows:28,className:`font-mono text-sm`,value:r.values.content,onValue:e=>r.set(`content`,e)})}),(0,z.jsxs)(`div`,{className:`grid gap-4 sm:grid-cols-2`,children:[(0,z.jsx)(M,{form:r,name:`effort`,label:`Effort it prefers`,children:(0,z.jsx)(D,{value:r.values.effort??`ANY`,options:Z,onValue:e=>r.set(`effort`,e===`ANY`?null:e)})}),(0,z.jsx)(M,{form:r,name:`model`,label:`Model it prefers`,optional:!0,children:(0,z.jsx)(E,{value:r.values.model??``,onValue:e=>r.set(`model`,e||null),spellCheck:!1})})]})]})}var re=e=>e.length>600?`${e.slice(0,600)}…`:e,ie=n(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME, includeArchived: $includeArchived) {
      total
      data { id name description version updatedAt archivedAt assignmentCount }
    }
  }
`),ae=[c(`2fr`),d,{id:`version`,head:`Version`,width:`5rem`,from:`md`,cell:({version:e})=>e},l];function oe(){return(0,z.jsx)(u,{path:`skills`,title:`Skills`,about:`Instructions that agents read when they need them.`,icon:L,names:[`skill`,`skills`],query:ie,pageOf:({skills:e})=>e,on:[`SKILL`],columns:ae,may:`skill.create`,hint:`Search for part of a name.`,empty:{title:`No skills yet`,about:`A skill is a text, such as how you answer complaints. Write it once and give it to the agents that need it; they get each change without a restart.`,command:e=>`mutation {\n  createSkill(orgId: ${e}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`},peek:e=>(0,z.jsx)(Q,{...e}),create:({open:e,...t})=>e&&(0,z.jsx)(V,{...t})})}export{oe as SkillsPage};