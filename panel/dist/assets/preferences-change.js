import{C as e,T as t,h as n,m as r,ut as i,zt as a}from"./shared.js";import{h as o}from"./shell.js";var s=t(`
  query ShellPreferences { viewer { preferences } }
`),c=t(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=n(),u=(t,n)=>l(async()=>{let l=await i(t,s,{});if(!l.data?.viewer)return void e(a(l.error));let u=o(l.data.viewer.preferences),d={...u,...n(u)},{error:f}=await t.mutation(c,{preferences:d},r()).toPromise();f&&e(a(f))});export{u as changePreferences};