import{Kt as e,M as t,R as n,bt as r,q as i,yn as a,z as o}from"./shared.js";var s=r(`
  query ShellPreferences { viewer { preferences } }
`),c=r(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=o(),u=(r,o)=>l(async()=>{let l=await e(r,s,{});if(!l.data?.viewer)return void i(a(l.error));let u=t(l.data.viewer.preferences),d={...u,...o(u)},{error:f}=await r.mutation(c,{preferences:d},n()).toPromise();f&&i(a(f))});export{u as changePreferences};