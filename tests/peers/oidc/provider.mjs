// An OpenID provider for tests. The argument is JSON:
//   redirect: the client's redirect URI;  accounts: { login: { email, email_verified, name } };
//   inIdToken: whether the address stands in the ID token (otherwise only at the userinfo endpoint);
//   host: the name of this machine in its addresses (127.0.0.1);
//   asGoogle: with the paths and the scopes of Google's server. Each refresh token counts once.
// Prints `issuer URL`. Signing in is the provider's own development form: POST prompt, login, password.
import { Provider } from 'oidc-provider'
import { createServer } from 'node:http'

const options = JSON.parse(process.argv[2])
const google = {
  routes: {
    authorization: '/o/oauth2/v2/auth',
    token: '/token',
    revocation: '/revoke',
    userinfo: '/oauth2/v3/userinfo',
  },
  scopes: ['calendar.events', 'calendar.calendarlist.readonly', 'drive'].map(
    (name) => `https://www.googleapis.com/auth/${name}`,
  ),
  features: { revocation: { enabled: true } },
  issueRefreshToken: async () => true,
  rotateRefreshToken: true,
}
const server = createServer()
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://${options.host ?? '127.0.0.1'}:${server.address().port}`
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'muster',
      client_secret: 'the client secret',
      redirect_uris: [options.redirect],
      ...(options.asGoogle && {
        token_endpoint_auth_method: 'client_secret_post',
        grant_types: ['authorization_code', 'refresh_token'],
      }),
    }],
    ...(options.asGoogle && google),
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: !options.inIdToken,
    pkce: { required: () => true },
    cookies: { keys: ['a key of this test'] },
    async findAccount(_, id) {
      const account = options.accounts[id]
      return account && { accountId: id, claims: async () => ({ sub: id, ...account }) }
    },
  })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    // The form's style would fetch a font from elsewhere.
    response.setHeader('content-security-policy', "style-src 'unsafe-inline'")
    answer(request, response)
  })
  console.log(`issuer ${issuer}`)
})
