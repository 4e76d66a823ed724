import{F as e,N as t,T as n,Wt as r,_t as i,w as a}from"./shared.js";import{N as o}from"./shell.js";var s=e(`
  query ShellPreferences { viewer { preferences } }
`),c=e(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=n(),u=(e,n)=>l(async()=>{let l=await i(e,s,{});if(!l.data?.viewer)return void t(r(l.error));let u=o(l.data.viewer.preferences),d={...u,...n(u)},{error:f}=await e.mutation(c,{preferences:d},a()).toPromise();f&&t(r(f))});export{u as changePreferences};