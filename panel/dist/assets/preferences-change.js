import{Kt as e,S as t,Y as n,_ as r,ot as i,x as a}from"./shared.js";var o=n(`
  query ShellPreferences { viewer { preferences } }
`),s=n(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),c=t(),l=(t,n)=>c(async()=>{let c=await t.query(o,{},{requestPolicy:`network-only`}).toPromise();if(!c.data?.viewer)return void i(e(c.error));let l=r(c.data.viewer.preferences),u={...l,...n(l)},{error:d}=await t.mutation(s,{preferences:u},a()).toPromise();d&&i(e(d))});export{l as changePreferences};