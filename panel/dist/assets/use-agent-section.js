import{T as e,_ as t}from"./shared.js";import{T as n}from"./shell.js";import{t as r}from"./sections.js";var i=e(`
  fragment SettingsFields on Agent @_unmask {
    id name role description instructions serverId imageId revision
    language responseFormat responseStyle noEmoji singleMessage
    modelOverride resolvedModel credentialChoice hasModelCredential modelCredentialProvider modelCredentialBaseUrl
    modeOverride modeProblem
    approvalAskThreshold approvalBlockThreshold approvalCategories approvalTimeoutMinutes notEnforced
    restartPolicy cpuOverride memoryMbOverride sessionResetMode sessionResetTokens
    monthlyBudgetMicro budgetAction costGuardMode costGuardAction costGuardTokensPerHour
    disabledToolGroups networkPrivileged
    timezone backupSchedule backupCron backupRetention backupFreeze
  }
`),a=e(`
  mutation UpdateAgent($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateAgentInput!) {
    updateAgent(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id ...SettingsFields restartPending restartReason syncPending
      server { id name status }
      image { id name reference }
    }
  }
`,[i]);function o(e,t){let{id:i}=n(),a=s(),o=e=>Object.fromEntries(t.map(t=>[t,e[t]]));return r({stored:o(e),revision:e.revision,bounds:Object.fromEntries(t.map(e=>[e,`UpdateAgentInput.${e}`])),save:(t,n)=>a({orgId:i,id:e.id,ifRevision:n,input:c(t)},{quiet:!0}),ofCurrent:o})}var s=()=>t(a);function c(e){return Object.fromEntries(Object.entries(e).map(([e,t])=>[e,t===``?null:t]))}export{s as n,i as r,o as t};