// The query for one channel, and its mutations.
import { graphql, type ResultOf } from '../../api/graphql'

export const ChannelFields = graphql(`
  fragment ChannelFields on Channel @_unmask {
    id name transport scope direction target botUsername hasToken instructions isActive inactiveReason inboundPath
    inviteUrl whitelist labelWhitelist mentionOff lastActivityAt createdAt alertRecipientUserIds revision viewerCan
    agentId warnings notifyConversationId
    notifyConversation { id ref title contactName status }
    link { state cause since }
    refused { originId originName reason count lastAt }
    skipped { vendorId subject reason skippedAt }
    webhook { outboundUrl hasOutboundSecret hasInboundSecret signatureHeader echoFilter { selfIds actorPaths } }
    email { authservId imap { host port user tls hasPass } smtp { host port user from hasPass } }
    providerAccount { connected providerEmail expiresAt }
    calendar { url user hasPass calendarWhitelist { id name } reminderLeadMinutes }
    codeHost { host installationId repos events listenScope rawPayload oauth { authorized userLogin expiresAt } }
  }
`)
export const ChannelQuery = graphql(
  `
  query Channel($orgId: Id!, $id: Id!) {
    channel(orgId: $orgId, id: $id) { id ...ChannelFields agent { id name avatarUrl } }
  }
`,
  [ChannelFields],
)
export const ChannelCalendars = graphql(`
  query ChannelCalendars($orgId: Id!, $id: Id!) { channelCalendars(orgId: $orgId, id: $id) { id name } }
`)
export const ChannelRepositories = graphql(`
  query ChannelRepositories($orgId: Id!, $id: Id!) { channelRepositories(orgId: $orgId, id: $id) }
`)
export const UpdateChannel = graphql(
  `
  mutation UpdateChannel($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateChannelInput!) {
    updateChannel(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) { id ...ChannelFields }
  }
`,
  [ChannelFields],
)
export const DeleteChannel = graphql(`
  mutation DeleteChannel($orgId: Id!, $id: Id!) { deleteChannel(orgId: $orgId, id: $id) }
`)
export const AuthorizeChannel = graphql(`
  mutation AuthorizeChannel($orgId: Id!, $id: Id!) { authorizeChannel(orgId: $orgId, id: $id) { url } }
`)
export const DisconnectChannel = graphql(
  `
  mutation DisconnectChannel($orgId: Id!, $id: Id!) {
    disconnectChannel(orgId: $orgId, id: $id) { id ...ChannelFields }
  }
`,
  [ChannelFields],
)
export const AddOrigin = graphql(`
  mutation AddWhitelistOrigin($orgId: Id!, $id: Id!, $originId: String!) {
    addWhitelistOrigin(orgId: $orgId, id: $id, input: { originId: $originId }) {
      id whitelist revision refused { originId originName reason count lastAt }
    }
  }
`)
export const RemoveOrigin = graphql(`
  mutation RemoveWhitelistOrigin($orgId: Id!, $id: Id!, $originId: String!) {
    removeWhitelistOrigin(orgId: $orgId, id: $id, originId: $originId) { id whitelist revision }
  }
`)

export const LinkedChats = graphql(`
  query LinkedChats($orgId: Id!) { linkedChats(orgId: $orgId) { channelId originId originName } }
`)
export const LinkChat = graphql(`
  mutation LinkChat($orgId: Id!, $channelId: Id!) {
    linkChat(orgId: $orgId, channelId: $channelId) { code expiresAt }
  }
`)
export const UnlinkChat = graphql(`
  mutation UnlinkChat($orgId: Id!, $channelId: Id!) { unlinkChat(orgId: $orgId, channelId: $channelId) }
`)

export type ChannelRecord = ResultOf<typeof ChannelFields>
export type Channel = NonNullable<ResultOf<typeof ChannelQuery>['channel']>

/** Whether the service has a secret at this path. */
export function hasSecret(channel: ChannelRecord, path: string): boolean {
  switch (path) {
    case 'botToken':
      return channel.hasToken
    case 'calendar.pass':
      return channel.calendar?.hasPass ?? false
    case 'email.imap.pass':
      return channel.email?.imap?.hasPass ?? false
    case 'email.smtp.pass':
      return channel.email?.smtp?.hasPass ?? false
    case 'webhook.outboundSecret':
      return channel.webhook?.hasOutboundSecret ?? false
    case 'webhook.inboundSecret':
      return channel.webhook?.hasInboundSecret ?? false
    default:
      return false
  }
}
