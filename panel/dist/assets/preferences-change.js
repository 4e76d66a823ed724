import{Ct as e,S as t,Y as n,Yt as r,_ as i,ot as a,x as o}from"./shared.js";var s=n(`
  query ShellPreferences { viewer { preferences } }
`),c=n(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`),l=t(),u=(t,n)=>l(async()=>{let l=await e(t,s,{});if(!l.data?.viewer)return void a(r(l.error));let u=i(l.data.viewer.preferences),d={...u,...n(u)},{error:f}=await t.mutation(c,{preferences:d},o()).toPromise();f&&a(r(f))});export{u as changePreferences};