import{C as e,M as t,P as n,Ut as r,gt as i,w as a}from"./shared.js";import{N as o}from"./shell.js";var s=n(`
  query ShellPreferences { viewer { preferences } }
`),c=n(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=a(),u=(n,a)=>l(async()=>{let l=await i(n,s,{});if(!l.data?.viewer)return void t(r(l.error));let u=o(l.data.viewer.preferences),d={...u,...a(u)},{error:f}=await n.mutation(c,{preferences:d},e()).toPromise();f&&t(r(f))});export{u as changePreferences};