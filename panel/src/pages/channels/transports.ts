// The settings of each transport, as grouped fields for creating and editing channels.
import type { BoundsKey } from '../../api/bounds'
import { CALENDAR } from './calendar'
import { CODE_HOST } from './code-host'
import { DRIVE } from './drive'
import { EMAIL } from './email'
import type { SecretPart } from './tokens'

export type Transport =
  | 'TELEGRAM'
  | 'DISCORD'
  | 'SLACK'
  | 'EMAIL'
  | 'CODE_HOST'
  | 'CALENDAR'
  | 'DRIVE'
  | 'WEBHOOK'
export type Direction = 'BIDIRECTIONAL' | 'INBOUND' | 'OUTBOUND'

interface Spec {
  /** The path in the input and in the record: `email.imap.host`. */
  path: string
  label: string
  hint?: string
  placeholder?: string
  optional?: boolean
  bounds?: BoundsKey
}
export type FieldSpec = Spec &
  (
    | { kind: 'text' | 'lines' | 'flag' }
    | { kind: 'secret'; parts?: readonly SecretPart[] }
    | { kind: 'number'; initial?: number }
    | { kind: 'choice'; options: readonly { value: string; label: string }[] }
  )
export interface Group {
  title: string
  about?: string
  fields: FieldSpec[]
  /** Not needed for channels with only this direction. */
  notFor?: Direction
}

const WEBHOOK: Group[] = [
  {
    title: 'Sending',
    notFor: 'INBOUND',
    fields: [
      {
        kind: 'text',
        path: 'webhook.outboundUrl',
        label: 'Address for outgoing messages',
        placeholder: 'https://example.com/hook',
        bounds: 'ChannelWebhookInput.outboundUrl',
      },
      {
        kind: 'secret',
        path: 'webhook.outboundSecret',
        label: 'Secret for outgoing messages',
        optional: true,
      },
      {
        kind: 'text',
        path: 'webhook.signatureHeader',
        label: 'Additional signature header',
        optional: true,
        placeholder: 'X-Signature',
        bounds: 'ChannelWebhookInput.signatureHeader',
      },
    ],
  },
  {
    title: 'Receiving',
    notFor: 'OUTBOUND',
    fields: [
      {
        kind: 'secret',
        path: 'webhook.inboundSecret',
        label: 'Secret for incoming messages',
        hint: 'Senders sign with it. A secret that begins with whsec_ is decoded from base64.',
      },
      {
        kind: 'lines',
        path: 'webhook.echoFilter.selfIds',
        label: 'Ids of the channel itself',
        hint: 'One per line. Messages from these senders are the agent’s own, and are dropped.',
        optional: true,
        bounds: 'ChannelEchoFilterInput.selfIds',
      },
      {
        kind: 'lines',
        path: 'webhook.echoFilter.actorPaths',
        label: 'Paths of the sender',
        hint: 'Where a message names its sender: dotted paths, one per line.',
        placeholder: 'event.user.id',
        optional: true,
        bounds: 'ChannelEchoFilterInput.actorPaths',
      },
    ],
  },
]

interface TransportWords {
  label: string
  groups: Group[]
  /** Its labels, if its messages have any. */
  labels?: string
  /** Its groups, if people there also write to others than the agent. */
  places?: string
  /** Three steps at the vendor before connecting. */
  setup: readonly string[]
  /** The documentation of its channels. */
  guide: string
}

export const TRANSPORTS: Record<Transport, TransportWords> = {
  TELEGRAM: {
    label: 'Telegram',
    places: 'Ids of groups, such as -1001234567890.',
    guide: '/docs/channels/telegram.md',
    setup: [
      'In Telegram, write /newbot to @BotFather and choose a name.',
      'Copy the token from the answer: 123456789:AA…',
      'For groups, write /setprivacy and choose Disable before you add the bot.',
    ],
    groups: [{ title: 'Bot', fields: [{ kind: 'secret', path: 'botToken', label: 'Bot token' }] }],
  },
  DISCORD: {
    label: 'Discord',
    guide: '/docs/channels/discord.md',
    setup: [
      'At discord.com/developers/applications, create an application. On its page Bot, reset the token and copy it.',
      'On the same page, switch on Message Content Intent, and save.',
      'After connecting, follow “Add the bot to a group” on the channel’s page to add it to your server.',
    ],
    groups: [{ title: 'Bot', fields: [{ kind: 'secret', path: 'botToken', label: 'Bot token' }] }],
  },
  SLACK: {
    label: 'Slack',
    places: 'Ids of channels, such as C024BE91L.',
    guide: '/docs/channels/slack.md',
    setup: [
      'At api.slack.com/apps, create an app from the manifest in the guide.',
      'Under Basic Information, generate an app-level token with the scope connections:write.',
      'Install the app to your workspace, and copy its bot user OAuth token.',
    ],
    groups: [
      {
        title: 'App',
        fields: [
          {
            kind: 'secret',
            path: 'botToken',
            label: 'Tokens',
            parts: [
              { label: 'Bot token', hint: 'Begins with xoxb-.' },
              { label: 'App token', hint: 'Begins with xapp-.' },
            ],
          },
        ],
      },
    ],
  },
  EMAIL: {
    label: 'E-mail',
    labels: 'IMAP keywords.',
    guide: '/docs/channels/email.md',
    setup: [
      'Create a mailbox for the agent alone: Muster marks the mails in it as seen.',
      'Allow IMAP and SMTP for it. Some providers need an app password.',
      'Enter both servers below.',
    ],
    groups: EMAIL,
  },
  CODE_HOST: {
    label: 'Code host',
    labels: 'Labels of issues and pull requests. Adding one of them asks the agent.',
    places: 'Repositories, such as acme/shop.',
    guide: '/docs/channels/code-host.md',
    setup: [
      'At GitHub, install the operator’s app for your repositories. At another host, create an account and a token for the agent.',
      'Name the host, or the installation, and the repositories below.',
      'For GitHub, authorize the channel on its page after connecting, and switch it on.',
    ],
    groups: CODE_HOST,
  },
  CALENDAR: {
    label: 'Calendar',
    labels: 'Categories of events, at CalDAV servers.',
    guide: '/docs/channels/calendar.md',
    setup: [
      'Create an account for the agent alone, and share with it the calendars that it is to see.',
      'At a CalDAV server, enter its address and the account below. Some servers need an app password.',
      'After connecting the channel, connect the Google account if you use Google, and choose the calendars on the channel’s page.',
    ],
    groups: CALENDAR,
  },
  DRIVE: {
    label: 'Shared drive',
    places: '“folder” for all comments in the folder.',
    guide: '/docs/channels/drive.md',
    setup: [
      'Share the folder with an account of the agent’s own: a user of your server, a Google account, or a service account.',
      'Enter the server’s address and an app password below, or leave them empty for Google.',
      'After connecting, add “folder” to those who may write, and connect the Google account.',
    ],
    groups: DRIVE,
  },
  WEBHOOK: {
    label: 'Webhook',
    labels: 'The “labels” of a message.',
    guide: '/docs/channels/webhook.md',
    setup: [
      'Choose a secret for each direction, for example with “openssl rand -base64 32”.',
      'Give your program the same secrets: it signs its messages, and verifies the agent’s.',
      'After connecting, the channel shows the address for incoming messages.',
    ],
    groups: WEBHOOK,
  },
}

export const TRANSPORT_NAMES = Object.entries(TRANSPORTS).map(([value, { label }]) => ({ value, label }))

const KNOWN: Record<string, TransportWords | undefined> = TRANSPORTS
export const transportName = (transport: string) => KNOWN[transport]?.label ?? 'Panel'
export const guideOf = (transport: string): string | undefined => KNOWN[transport]?.guide
export const labelsOf = (transport: string): string | undefined => KNOWN[transport]?.labels
export const placesOf = (transport: string): string | undefined => KNOWN[transport]?.places
/** The settings that a channel with this direction needs. */
export const groupsOf = (transport: string, direction: Direction): Group[] =>
  (KNOWN[transport]?.groups ?? []).filter(({ notFor }) => notFor !== direction)

export const DIRECTIONS = [
  { value: 'BIDIRECTIONAL', label: 'Both ways' },
  { value: 'INBOUND', label: 'To the agent only' },
  { value: 'OUTBOUND', label: 'From the agent only' },
] as const
export const SCOPES = [
  { value: 'EXTERNAL', label: 'People outside the organization' },
  { value: 'INTERNAL', label: 'Members' },
] as const
export const labelOf = (options: readonly { value: string; label: string }[], value: string) =>
  options.find((option) => option.value === value)?.label ?? value
