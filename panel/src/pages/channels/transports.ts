// The settings of each transport, as grouped fields for creating and editing channels.
import type { BoundsKey } from '../../api/bounds'

export type Transport =
  | 'TELEGRAM'
  | 'SLACK'
  | 'DISCORD'
  | 'EMAIL'
  | 'WEBHOOK'
  | 'CODE_HOST'
  | 'DRIVE'
  | 'CALENDAR'
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
    | { kind: 'text' | 'lines' | 'flag' | 'secret' }
    | { kind: 'number'; unit?: string; initial?: number }
    | { kind: 'choice'; options: readonly { value: string; label: string }[] }
  )
export interface Group {
  title: string
  about?: string
  fields: FieldSpec[]
  /** Not needed for channels with only this direction. */
  notFor?: Direction
}

const bot = (hint?: string): Group[] => [
  { title: 'Bot', fields: [{ kind: 'secret', path: 'botToken', label: 'Bot token', hint }] },
]

const MAIL: Group[] = [
  {
    title: 'Fetching mail',
    about: 'The IMAP mailbox that people write to.',
    notFor: 'OUTBOUND',
    fields: [
      {
        kind: 'text',
        path: 'email.imap.host',
        label: 'IMAP host',
        placeholder: 'imap.example.com',
        bounds: 'ChannelImapInput.host',
      },
      {
        kind: 'number',
        path: 'email.imap.port',
        label: 'IMAP port',
        initial: 993,
        bounds: 'ChannelImapInput.port',
      },
      { kind: 'text', path: 'email.imap.user', label: 'IMAP user', bounds: 'ChannelImapInput.user' },
      { kind: 'secret', path: 'email.imap.pass', label: 'IMAP password' },
      { kind: 'flag', path: 'email.imap.tls', label: 'The connection must be encrypted (TLS)' },
      {
        kind: 'text',
        path: 'email.authservId',
        label: 'Server that verifies senders',
        hint: 'The name that the mailbox’s server writes into “Authentication-Results”. Mails whose sender it does not verify are refused. Without it, anyone can forge a sender.',
        placeholder: 'mx.example.com',
        optional: true,
        bounds: 'ChannelEmailInput.authservId',
      },
    ],
  },
  {
    title: 'Sending mail',
    about: 'The SMTP server that sends the answers.',
    notFor: 'INBOUND',
    fields: [
      {
        kind: 'text',
        path: 'email.smtp.host',
        label: 'SMTP host',
        placeholder: 'smtp.example.com',
        bounds: 'ChannelSmtpInput.host',
      },
      {
        kind: 'number',
        path: 'email.smtp.port',
        label: 'SMTP port',
        initial: 587,
        bounds: 'ChannelSmtpInput.port',
      },
      {
        kind: 'text',
        path: 'email.smtp.from',
        label: 'Sender',
        placeholder: 'help@example.com',
        bounds: 'ChannelSmtpInput.from',
      },
      {
        kind: 'text',
        path: 'email.smtp.user',
        label: 'SMTP user',
        optional: true,
        hint: 'A relay may not need one.',
        bounds: 'ChannelSmtpInput.user',
      },
      { kind: 'secret', path: 'email.smtp.pass', label: 'SMTP password', optional: true },
    ],
  },
]

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
        optional: true,
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
        label: 'Another header for the signature',
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
        hint: 'Without it nothing comes in. What begins with whsec_ is decoded from base64.',
        optional: true,
      },
      {
        kind: 'lines',
        path: 'webhook.echoFilter.selfIds',
        label: 'Ids of the channel itself',
        hint: 'One per line. Messages from these senders are its own, and are dropped.',
        optional: true,
        bounds: 'ChannelEchoFilterInput.selfIds',
      },
      {
        kind: 'lines',
        path: 'webhook.echoFilter.actorPaths',
        label: 'Where a message names its sender',
        hint: 'Dotted paths into the message, one per line.',
        placeholder: 'event.user.id',
        optional: true,
        bounds: 'ChannelEchoFilterInput.actorPaths',
      },
    ],
  },
]

const CODE_HOST: Group[] = [
  {
    title: 'Code host',
    fields: [
      {
        kind: 'number',
        path: 'codeHost.installationId',
        label: 'Installation',
        hint: 'The number of the app’s installation, as the code host shows it.',
        bounds: 'ChannelCodeHostInput.installationId',
      },
      {
        kind: 'lines',
        path: 'codeHost.repos',
        label: 'Repositories',
        hint: 'One per line.',
        placeholder: 'owner/name',
        optional: true,
        bounds: 'ChannelCodeHostInput.repos',
      },
      {
        kind: 'lines',
        path: 'codeHost.events',
        label: 'Events',
        hint: 'One per line.',
        placeholder: 'issue_comment',
        optional: true,
        bounds: 'ChannelCodeHostInput.events',
      },
      {
        kind: 'choice',
        path: 'codeHost.listenScope',
        label: 'Which of them reach the agent',
        options: [
          { value: 'involved', label: 'Those that involve it' },
          { value: 'mentions', label: 'Those that mention it' },
          { value: 'all', label: 'All' },
        ],
      },
      { kind: 'flag', path: 'codeHost.rawPayload', label: 'The agent gets the whole event' },
    ],
  },
]

const DRIVE: Group[] = [
  {
    title: 'Folder',
    fields: [
      { kind: 'text', path: 'drive.folderId', label: 'Folder id', bounds: 'ChannelDriveInput.folderId' },
      {
        kind: 'text',
        path: 'drive.folderName',
        label: 'Folder name',
        optional: true,
        bounds: 'ChannelDriveInput.folderName',
      },
    ],
  },
]

const CALENDAR: Group[] = [
  {
    title: 'Calendars',
    fields: [
      {
        kind: 'lines',
        path: 'calendar.calendarWhitelist',
        label: 'Calendars that the agent sees',
        hint: 'One per line: its id, then a comma and a name if you like.',
        placeholder: 'team@example.com, Team',
        optional: true,
      },
      {
        kind: 'number',
        path: 'calendar.reminderLeadMinutes',
        label: 'Remind the agent before an event',
        unit: 'minutes',
        optional: true,
        bounds: 'ChannelCalendarInput.reminderLeadMinutes',
      },
    ],
  },
]

interface TransportWords {
  label: string
  groups: Group[]
  /** Not implemented yet: the channel keeps its settings but is inactive. */
  isSilent?: boolean
}

export const TRANSPORTS: Record<Transport, TransportWords> = {
  TELEGRAM: { label: 'Telegram', groups: bot('As @BotFather gives it: 123456789:AA…') },
  SLACK: { label: 'Slack', groups: bot('The bot’s token, a space, and the app’s: xoxb-… xapp-…') },
  EMAIL: { label: 'E-mail', groups: MAIL },
  WEBHOOK: { label: 'Webhook', groups: WEBHOOK },
  DISCORD: { label: 'Discord', groups: bot(), isSilent: true },
  CODE_HOST: { label: 'Code host', groups: CODE_HOST, isSilent: true },
  DRIVE: { label: 'Shared drive', groups: DRIVE, isSilent: true },
  CALENDAR: { label: 'Calendar', groups: CALENDAR, isSilent: true },
}

export const TRANSPORT_OPTIONS = Object.entries(TRANSPORTS).map(([value, { label }]) => ({
  value: value as Transport,
  label,
}))

const NAMES: Record<string, TransportWords | undefined> = TRANSPORTS
export const transportName = (transport: string) => NAMES[transport]?.label ?? 'Panel'
/** Whether Muster does not support this transport yet. */
export const isSilent = (transport: string) => NAMES[transport]?.isSilent ?? false
export const groupsOf = (transport: string): Group[] => NAMES[transport]?.groups ?? []

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
