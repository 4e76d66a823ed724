// All texts about Muster's own mail. Whether mail works is known only from the service, so no other text may claim it.
// Pure and tested; a test keeps such sentences out of other files.
import { useQuery } from 'urql'
import { graphql, type ResultOf } from '../api/graphql'

const MailWayQuery = graphql(`query MailWay { mailWay }`)

export type MailWay = NonNullable<ResultOf<typeof MailWayQuery>['mailWay']>

/** How this installation sends mail. Null until known. */
export function useMailWay(): MailWay | null {
  const [{ data }] = useQuery({ query: MailWayQuery, requestPolicy: 'cache-first' })
  return data?.mailWay ?? null
}

/** Explains where mail goes if it reaches no one. */
export const noMail = (way: MailWay | null): string | null =>
  way === 'OFF'
    ? 'This installation sends no mail.'
    : way === 'LOGGED'
      ? 'This is a demo: it writes its mail to its terminal and sends none.'
      : null

/** The confirmation after requesting a mail. */
export function mailed(way: MailWay | null, what: string, to: string): string {
  if (way === 'SENT') return `${what} is on its way to ${to}`
  if (way === 'LOGGED')
    return `The demo printed ${what.charAt(0).toLowerCase()}${what.slice(1)} for ${to} on its terminal`
  return `${what} was not mailed to ${to}. ${noMail('OFF')}`
}

/** The text of the forgotten-password page before the request. */
export const resetAbout = (way: MailWay | null): string =>
  way === 'OFF'
    ? 'This installation sends no mail. Ask your administrator for a link to set a new password.'
    : way === 'LOGGED'
      ? 'The demo writes a link for setting a new one to its terminal. It works for one hour.'
      : 'We mail you a link for setting a new one. It works for one hour.'

/** The text after the request. Never reveals whether the account exists. */
export const resetAsked = (way: MailWay | null): string =>
  way === 'LOGGED'
    ? 'If there is an account for that address, the link is on the demo’s terminal.'
    : 'If there is an account for that address, a link is on its way. If it does not arrive, look in your spam folder or ask an administrator.'

export const inviteAbout = (way: MailWay | null): string =>
  way === 'SENT'
    ? 'They get a link by mail. It works once, within a week.'
    : `${noMail(way) ?? ''} The list of invitations says how to get the link and hand it over.`.trim()

export const notNotified = (way: MailWay | null, email: string): string =>
  way === 'SENT'
    ? `No mail has gone to ${email} yet. It can take a minute.`
    : `${noMail(way) ?? ''} ${email} has not been notified.`.trim()

export const notificationsAbout = (way: MailWay | null): string => {
  const none = noMail(way)
  return none
    ? `${none} Your choice applies to linked chats, and to mail once it is set up.`
    : 'What Muster mails you. Mails only link to approvals; you decide here. “Collected” combines several events in one mail.'
}

export const askedWhere = (way: MailWay | null): string =>
  way === 'SENT' ? 'You are asked only here and by mail.' : 'You are asked only here.'

export const chatsAbout = (way: MailWay | null): string =>
  way === 'SENT'
    ? 'Requests that are mailed to you are sent there as well.'
    : 'Requests that need you are sent there.'

export const watchAbout = (way: MailWay | null): string | undefined =>
  way === 'SENT' ? 'You get mail when something is asked here.' : undefined

export const alertAbout = (way: MailWay | null): string =>
  noMail(way)
    ? `They would get a mail when this channel fails. ${noMail(way)}`
    : 'They get a mail when this channel fails.'

export const cancelAbout = (way: MailWay | null): string =>
  way === 'SENT'
    ? 'All owners get a mail, and can cancel it until then.'
    : 'All owners can cancel it until then.'

export const invitedHow = (way: MailWay | null): string =>
  way === 'SENT'
    ? 'Ask an administrator for an invitation; it comes by mail.'
    : 'Ask an administrator for an invitation.'
