// The settings of a mailbox.
import type { Group } from './transports'

export const EMAIL: Group[] = [
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
