import{C as e,S as t,Tt as n,X as r,Zt as i,_ as a,st as o}from"./shared.js";var s=r(`
  query ShellPreferences { viewer { preferences } }
`),c=r(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=e(),u=(e,r)=>l(async()=>{let l=await n(e,s,{});if(!l.data?.viewer)return void o(i(l.error));let u=a(l.data.viewer.preferences),d={...u,...r(u)},{error:f}=await e.mutation(c,{preferences:d},t()).toPromise();f&&o(i(f))});export{u as changePreferences};