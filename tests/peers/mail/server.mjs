// A mail server for tests. The argument is JSON:
//   tls: "none", "starttls" or "tls" (with cert and key as PEM);  user, password: who may send, if anybody has to say;
//   refuse: the replies to the first mails, such as [451, 550]; later ones are taken.
// Prints `listening PORT`, then a line of JSON for each mail that was taken, and `refused CODE` for one that was not.
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'

const options = JSON.parse(process.argv[2] ?? '{}')
const refusals = [...(options.refuse ?? [])]

const server = new SMTPServer({
  secure: options.tls === 'tls',
  cert: options.cert,
  key: options.key,
  hideSTARTTLS: options.tls !== 'starttls',
  authOptional: options.user === undefined,
  allowInsecureAuth: true,
  logger: false,
  onAuth(auth, _session, done) {
    const good = auth.username === options.user && auth.password === options.password
    done(good ? null : new Error('who?'), good ? { user: auth.username } : undefined)
  },
  onData(stream, session, done) {
    const chunks = []
    stream.on('data', (chunk) => chunks.push(chunk))
    stream.on('end', async () => {
      const code = refusals.shift()
      if (code !== undefined) {
        console.log(`refused ${code}`)
        return done(Object.assign(new Error('not now'), { responseCode: code }))
      }
      const mail = await PostalMime.parse(Buffer.concat(chunks))
      const headers = Object.fromEntries(mail.headers.map(({ key, value }) => [key, value]))
      const envelope = {
        from: session.envelope.mailFrom.address,
        to: session.envelope.rcptTo.map(({ address }) => address),
      }
      const { subject, from, to, text, html } = mail
      console.log(JSON.stringify({ envelope, headers, subject, from, to, text, html, secure: session.secure }))
      done()
    })
  },
})

server.on('error', () => {})
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.server.address().port}`))
