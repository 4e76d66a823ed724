import{An as e,T as t,Tt as n,W as r,bt as i,mt as a,zt as o}from"./shared.js";import{n as s}from"./code.js";import{i as c}from"./leave.js";import{a as l}from"./fields.js";import{p as u}from"./status.js";var d=e(),f=t(`
  query WhyNot($orgId: Id!, $permissions: [Permission!]!) {
    viewerCan(orgId: $orgId, permissions: $permissions) {
      permission
      allowed
      reason
      decidedBy { file line text }
      remedy { change file line text withinCeiling }
    }
    permissions { permission meaning }
    organization(orgId: $orgId) { id viewerRole }
  }
`);function p({why:{orgId:e,permission:t}}){let[{data:u,error:p}]=a({query:f,variables:{orgId:e,permissions:[t]},requestPolicy:`network-only`}),g=u?.viewerCan?.[0],_=u?.permissions?.find(e=>e.permission===t)?.meaning;return(0,d.jsxs)(c,{open:!0,onClose:r,title:`You may not do this`,about:m(t,_,u?.organization?.viewerRole),footer:(0,d.jsx)(n,{onClick:r,children:`Close`}),children:[p&&!g&&(0,d.jsx)(l,{children:o(p)}),!g&&!p&&(0,d.jsx)(i,{className:`w-3/4`}),g?.allowed&&(0,d.jsx)(l,{tone:`ok`,children:`By now you may. Close this and try again.`}),g&&!g.allowed&&(0,d.jsxs)(`div`,{className:`space-y-4 pb-2`,children:[!g.decidedBy&&(0,d.jsx)(`p`,{children:g.remedy?`No rule allows it.`:g.reason}),g.decidedBy&&(0,d.jsxs)(`div`,{children:[(0,d.jsxs)(`p`,{className:`mb-1 text-sm font-medium`,children:[`The rule, `,g.decidedBy.file,` line `,g.decidedBy.line]}),(0,d.jsx)(s,{text:g.decidedBy.text,label:`the rule`})]}),(0,d.jsx)(h,{remedy:g.remedy})]})]})}function m(e,t,n){let r=t?.replace(/\.$/,``);return(0,d.jsxs)(d.Fragment,{children:[n&&`Your role is ${u(n)}. `,`This needs the permission`,r&&` to ${r.charAt(0).toLowerCase()}${r.slice(1)}`,` (`,(0,d.jsx)(`code`,{children:e}),`).`]})}function h({remedy:e}){return e?(0,d.jsxs)(`div`,{children:[(0,d.jsx)(`p`,{className:`mb-1 text-sm font-medium`,children:e.withinCeiling?`Members who may edit the organization’s policy can change it: by default, an OWNER. Or ask for another role.`:`Only the operator of this installation can change it, in ${e.file}. Or ask for another role.`}),e.text&&(0,d.jsx)(s,{text:e.text,label:`the line`})]}):(0,d.jsx)(`p`,{className:`text-muted`,children:`Ask an administrator of the organization for another role.`})}export{p as default};