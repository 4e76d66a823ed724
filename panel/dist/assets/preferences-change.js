import{S as e,lt as t,m as n,p as r,w as i,zt as a}from"./shared.js";import{y as o}from"./shell.js";var s=i(`
  query ShellPreferences { viewer { preferences } }
`),c=i(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=n(),u=(n,i)=>l(async()=>{let l=await t(n,s,{});if(!l.data?.viewer)return void e(a(l.error));let u=o(l.data.viewer.preferences),d={...u,...i(u)},{error:f}=await n.mutation(c,{preferences:d},r()).toPromise();f&&e(a(f))});export{u as changePreferences};