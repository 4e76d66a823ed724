import{E as e,Gt as t,I as n,P as r,T as i,vt as a}from"./shared.js";import{F as o}from"./shell.js";var s=n(`
  query ShellPreferences { viewer { preferences } }
`),c=n(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=e(),u=(e,n)=>l(async()=>{let l=await a(e,s,{});if(!l.data?.viewer)return void r(t(l.error));let u=o(l.data.viewer.preferences),d={...u,...n(u)},{error:f}=await e.mutation(c,{preferences:d},i()).toPromise();f&&r(t(f))});export{u as changePreferences};