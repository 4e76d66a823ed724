// How the cache tells records apart: by `__typename` and `id`. Here is what differs. A test compares both lists with
// the schema, so that a new type is not forgotten.
import type { KeyingConfig } from '@urql/exchange-graphcache'

/** Types without an id, or whose `id` is not their identity: kept inside the record that shows them. */
export const EMBEDDED = `
  AcceptedInvitation AgentAssignment AgentBackupPage AgentFeed AgentLaunch AgentLimit AgentPage
  AgentRevisionPage AgentSpending AgentStatusCount ApprovalAnswer ApprovalDecider ApprovalFeed
  ApprovalOption ApprovalPage ApprovalQuestion ApprovalRequest ApprovalSpending AuditEntryPage AuditField
  AuditSeal Change ChannelCalendar ChannelCalendarChoice ChannelCodeHost ChannelCodeHostOauth ChannelDrive
  ChannelEchoFilter ChannelEmail ChannelFeed ChannelImap ChannelLink ChannelProviderAccount ChannelSmtp
  ChannelWebhook ChatCode ContactPage ConversationFeed ConversationPage CredentialField CredentialMember
  CredentialPage FoundMessage InvitationPage IssuedServiceToken LastMessage LinkedChat McpServerPage McpServerState MemberPage
  MessageDelivery MessageDelta MessageHit MessagePage MessageSearch MessagesFound ModelDay ModelDayPage ModelPrice
  Notifications NotifyConversation OfferedChoice OrganizationLimits OrganizationPolicy OrganizationSpending
  OrganizationStop OrganizationUse Overview PendingApprovals PermissionInfo PolicyCellChange PolicyExplanation PolicyFile
  PolicyFlip PolicyLine PolicyProblem PolicyProposal PolicyRemedy PolicySimulation PolicyVersionPage
  Profile ProvisionedServer RefusedDestination RefusedOrigin RolePermissions SearchHit ServerCounts
  ServerPage ServerRefusal ServiceTokenPage SeverityCount SignIn SignInChallenge SignInProvider
  SkillPage SkillVersionPage TotpEnrolment TurnPage ViewerPermission
`
  .trim()
  .split(/\s+/)

const text = (value: unknown) =>
  typeof value === 'number' || typeof value === 'string' ? String(value) : null

/** Types that are identified by something other than `id`. */
export const COMPOSED: KeyingConfig = {
  Member: ({ userId, organizationId }) =>
    text(userId) && text(organizationId) ? `${text(userId)}:${text(organizationId)}` : null,
  Membership: ({ organizationId }) => text(organizationId),
  // One for each cache: what a mutation answers of it is what every page shows.
  Viewer: () => 'viewer',
}

export const keys: KeyingConfig = {
  ...Object.fromEntries(EMBEDDED.map((name) => [name, () => null])),
  ...COMPOSED,
}
