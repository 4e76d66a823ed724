// @googleapis/calendar at a server: `google_calendar.mjs BASE TOKEN`. Prints a line of JSON for each call.
import { auth, calendar } from '@googleapis/calendar'

const [base, token] = process.argv.slice(2)
const print = (value) => console.log(JSON.stringify(value))
const client = (access_token) => {
  const account = new auth.OAuth2()
  account.setCredentials({ access_token })
  return calendar({ version: 'v3', auth: account, rootUrl: base, retry: false })
}
const google = client(token)
const calendarId = 'rota'
const refused = async (call) => {
  try {
    await call
    print({ refused: null })
  } catch (error) {
    print({ refused: Number(error.status ?? error.code) })
  }
}
const list = async (params) => {
  const items = []
  let page
  let pageToken
  do {
    page = (await google.events.list({ calendarId, ...params, pageToken })).data
    items.push(...page.items)
    pageToken = page.nextPageToken
  } while (pageToken)
  return { items, syncToken: page.nextSyncToken }
}

const { data } = await google.calendarList.list()
print({ calendars: data.items.map(({ id, summary }) => [id, summary]) })
const { items, syncToken } = await list({})
print({ events: items.map(({ id, summary }) => [id, summary]) })
const requestBody = {
  id: '0123456789abcdef',
  summary: 'Tea',
  start: { dateTime: '2026-12-01T09:00:00Z' },
  end: { dateTime: '2026-12-01T10:00:00Z' },
}
const made = (await google.events.insert({ calendarId, sendUpdates: 'none', requestBody })).data
print({ made: made.id, status: made.status })
await refused(google.events.insert({ calendarId, sendUpdates: 'none', requestBody }))
await google.events.patch(
  {
    calendarId,
    eventId: made.id,
    sendUpdates: 'none',
    requestBody: { start: { dateTime: '2026-12-01T11:00:00Z' }, end: { dateTime: '2026-12-01T12:00:00Z' } },
  },
  { headers: { 'If-Match': made.etag } },
)
await refused(
  google.events.patch(
    { calendarId, eventId: made.id, requestBody: { summary: 'Late' } },
    { headers: { 'If-Match': made.etag } },
  ),
)
const changed = await list({ syncToken })
print({ changed: changed.items.map(({ id, start }) => [id, start.dateTime]) })
const around = await list({
  timeMin: '2026-12-01T10:30:00Z',
  timeMax: '2026-12-01T11:30:00Z',
  singleEvents: true,
})
print({ around: around.items.map(({ id }) => id) })
await google.events.delete({ calendarId, eventId: made.id })
const removed = await list({ syncToken: changed.syncToken })
print({ removed: removed.items.map(({ id, status }) => [id, status]) })
await refused(google.events.list({ calendarId, syncToken: 's-0' }))
await refused(client('another').calendarList.list())
