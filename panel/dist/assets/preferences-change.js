import{S as e,Y as t,_ as n,ot as r,qt as i,x as a}from"./shared.js";var o=t(`
  query ShellPreferences { viewer { preferences } }
`),s=t(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),c=e(),l=(e,t)=>c(async()=>{let c=await e.query(o,{},{requestPolicy:`network-only`}).toPromise();if(!c.data?.viewer)return void r(i(c.error));let l=n(c.data.viewer.preferences),u={...l,...t(l)},{error:d}=await e.mutation(s,{preferences:u},a()).toPromise();d&&r(i(d))});export{l as changePreferences};