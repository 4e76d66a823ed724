// The settings of a code host.
import type { Group } from './transports'

const SCOPES = [
  { value: 'involved', label: 'Where the agent takes part or is asked' },
  { value: 'mentions', label: 'Mentions of the agent' },
  { value: 'all', label: 'All events' },
] as const

export const CODE_HOST: Group[] = [
  {
    title: 'Code host',
    about: 'GitHub by the installation of a GitHub App, or an account at a host that the operator names.',
    fields: [
      {
        kind: 'text',
        path: 'codeHost.host',
        label: 'Host',
        hint: 'Leave it empty for GitHub. It can’t be changed later.',
        placeholder: 'gitlab.com',
        optional: true,
        bounds: 'ChannelCodeHostInput.host',
      },
      {
        kind: 'number',
        path: 'codeHost.installationId',
        label: 'Installation',
        hint: 'GitHub only: the number at the end of the address when you configure the installed app.',
        optional: true,
      },
      {
        kind: 'secret',
        path: 'botToken',
        label: 'Access token',
        hint: 'Other hosts only: the token of the agent’s account there.',
        optional: true,
      },
    ],
  },
  {
    title: 'Events',
    fields: [
      {
        kind: 'lines',
        path: 'codeHost.repos',
        label: 'Repositories',
        hint: 'owner/name, one per line. At GitHub, an empty list means all that the installation has.',
        placeholder: 'acme/shop',
        optional: true,
        bounds: 'ChannelCodeHostInput.repos',
      },
      { kind: 'choice', path: 'codeHost.listenScope', label: 'Reaching the agent', options: SCOPES },
      {
        kind: 'lines',
        path: 'codeHost.events',
        label: 'Events',
        hint: 'Names such as issues or issues.opened, one per line. An empty list means all that say something.',
        optional: true,
        bounds: 'ChannelCodeHostInput.events',
      },
      { kind: 'flag', path: 'codeHost.rawPayload', label: 'Attach the complete event as a file' },
    ],
  },
]
