import{Y as e}from"./shared.js";var t=e(`
  mutation SignIn($email: String!, $password: SecretString!) {
    signIn(email: $email, password: $password, cookie: true) { user { id } challenge { token expiresAt } }
  }
`),n=e(`
  mutation CompleteSignIn($challenge: SecretString!, $code: SecretString, $recoveryCode: SecretString) {
    completeSignIn(challenge: $challenge, code: $code, recoveryCode: $recoveryCode, cookie: true) { user { id } challenge { token expiresAt } }
  }
`),r=e(`
  mutation ExchangeCode($code: SecretString!) {
    exchangeSignInCode(code: $code, cookie: true) { user { id } challenge { token expiresAt } }
  }
`),i=e(`
  query Providers { signInProviders { name label startPath } }
`),a=e(`
  mutation RequestReset($email: String!) { requestPasswordReset(email: $email) }
`),o=`muster.sign-in`;function s(e){let t=[...crypto.getRandomValues(new Uint8Array(16))].map(e=>e.toString(16).padStart(2,`0`)).join(``);return sessionStorage.setItem(o,JSON.stringify({state:t,next:e})),t}function c(){try{let e=JSON.parse(sessionStorage.getItem(o)??`{}`);return sessionStorage.removeItem(o),e}catch{return{}}}function l(e){let t=e.trim();return/^[0-9 ]{6,7}$/.test(t)?{code:t.replace(` `,``)}:{recoveryCode:t}}function u(e){return!e?.startsWith(`/`)||e.startsWith(`//`)||e.includes(`\\`)||e.startsWith(`/sign-in`)?`/`:e}var d={STATE_INVALID:`That took too long, or it was started in another browser. Try again.`,PROVIDER_FAILED:`The provider did not sign you in. Try again.`,EMAIL_NOT_VERIFIED:`The provider has not verified your e-mail address.`,EMAIL_NOT_CONFIRMED:`There is an account with your e-mail address, but the address has not been confirmed. Sign in to that account with its password, confirm the address, and try again.`,NO_ACCOUNT:`You have no account and no invitation. Ask an administrator to invite you.`};export{a,s as c,d as i,u as l,r as n,t as o,i as r,l as s,n as t,c as u};