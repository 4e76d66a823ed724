import{Ct as e,Jt as t,S as n,Y as r,_ as i,ot as a,x as o}from"./shared.js";var s=r(`
  query ShellPreferences { viewer { preferences } }
`),c=r(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=n(),u=(n,r)=>l(async()=>{let l=await e(n,s,{});if(!l.data?.viewer)return void a(t(l.error));let u=i(l.data.viewer.preferences),d={...u,...r(u)},{error:f}=await n.mutation(c,{preferences:d},o()).toPromise();f&&a(t(f))});export{u as changePreferences};