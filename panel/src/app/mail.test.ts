import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as words from './mail'

test('without mail nothing is said to have been mailed', () => {
  for (const way of ['OFF', 'LOGGED', null] as const) {
    const {
      mailed,
      inviteAbout,
      notNotified,
      notificationsAbout,
      askedWhere,
      chatsAbout,
      watchAbout,
      invitedHow,
    } = words
    const said = [
      mailed(way, 'A link', 'ada@example.org'),
      inviteAbout(way),
      notNotified(way, 'ada@example.org'),
      askedWhere(way),
      chatsAbout(way),
      watchAbout(way) ?? '',
      invitedHow(way),
      ...(way ? [notificationsAbout(way), words.alertAbout(way), words.resetAbout(way)] : []),
    ]
    for (const text of said)
      expect(text).not.toMatch(/on its way|by mail|We mail|What Muster mails|^They get a mail|get mail/)
  }
  expect(words.mailed('LOGGED', 'A link', 'ada@example.org')).toBe(
    'The demo printed a link for ada@example.org on its terminal',
  )
  expect(words.mailed('SENT', 'A link', 'ada@example.org')).toBe('A link is on its way to ada@example.org')
  expect(words.resetAsked('LOGGED')).not.toMatch(/spam|on its way/)
})

// Mail of channels, and settings for what mails contain, claim nothing. This list only shrinks.
const OTHER_MAIL = [
  'pages/channels/channels-page.tsx',
  'pages/channels/email.ts',
  'pages/channels/refused.tsx',
  'pages/channels/skipped.tsx',
  'pages/channels/transports.ts',
  'pages/conversations/conversations-page.tsx',
  'pages/conversations/thread/message.tsx',
  'pages/settings/general.tsx',
  'pages/settings/safety.tsx',
  'pages/sign-in/link-pages.tsx',
  'pages/sign-in/link.tsx',
]

test('what is said about mail of Muster’s own is said in one file', () => {
  const source = new URL('../', import.meta.url)
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  const talking = files
    .filter((path) => /\.tsx?$/.test(path) && !/\.test\.|\.d\.ts$|^app\/mail\.ts$/.test(path))
    .filter((path) => {
      const text = readFileSync(new URL(path, source), 'utf8')
      const said = text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|^import .*$/gm, '')
      return /link is on its way|(?<![-A-Za-z'"/$])(mails?|mailed|mailbox|spam)(?![-A-Za-z'"(/=:}])/i.test(
        said,
      )
    })
  expect(talking.toSorted()).toEqual(OTHER_MAIL.toSorted())
})
