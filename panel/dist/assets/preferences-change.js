import{C as e,Lt as t,ct as n,f as r,p as i,x as a}from"./shared.js";import{_ as o}from"./shell.js";var s=e(`
  query ShellPreferences { viewer { preferences } }
`),c=e(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=i(),u=(e,i)=>l(async()=>{let l=await n(e,s,{});if(!l.data?.viewer)return void a(t(l.error));let u=o(l.data.viewer.preferences),d={...u,...i(u)},{error:f}=await e.mutation(c,{preferences:d},r()).toPromise();f&&a(t(f))});export{u as changePreferences};