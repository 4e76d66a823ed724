// How the cache identifies records: by `__typename` and `id`, with these exceptions. A test compares both lists with
// the schema, so that no new type is forgotten.
import type { KeyingConfig } from '@urql/exchange-graphcache'

const names = (list: string) => list.trim().split(/\s+/)

/** Types whose `id` is not unique: cached inside the record that contains them. */
export const EMBEDDED = names(`
  AgentAssignment ApprovalDecider ApprovalOption Change ChannelCalendarChoice ChannelFolder CredentialField
  IssuedEventEndpoint IssuedServiceToken MessageHit NotifyConversation OfferedChoice ProvisionedServer SearchHit
`)

/** Types without an id are embedded by default. Only development checks need their names. */
export const WITHOUT_ID = import.meta.env.DEV
  ? names(`
  AcceptedInvitation AgentBackupPage AgentFeed AgentLaunch AgentLimit AgentLogBatch AgentLogLine AgentPage AgentRestart
  AgentRevisionPage AgentSpending AgentStatusCount ApprovalAnswer ApprovalFeed ApprovalPage ApprovalQuestion ApprovalRequest
  ApprovalSpending AuditEntryPage AuditField AuditSeal ChannelAuthorization ChannelCalendar ChannelCodeHost ChannelCodeHostOauth
  ChannelDrive ChannelEchoFilter ChannelEmail ChannelFeed ChannelImap ChannelLink ChannelProviderAccount
  ChannelSmtp ChannelTest ChannelWebhook ChatCode ContactPage ConversationFeed ConversationPage CredentialMember
  CredentialPage DailyUsage EventDeliveryFeed FirstStart FoundMessage InvitationOffer InvitationPage JoinedHost LastMessage LinkedChat McpServerPage
  McpServerState McpServerTool MemberPage MessageDelivery
  MessageDelta MessagePage MessageSearch MessagesFound ModelDay ModelDayPage ModelPrice Notifications
  OrganizationLimits OrganizationPolicy OrganizationSpending OrganizationStop OrganizationUse Overview
  PendingApprovals PermissionInfo PolicyCellChange PolicyCellUse PolicyExpectation PolicyExplanation PolicyFile
  PolicyFlip PolicyLine PolicyProblem PolicyProposal PolicyRemedy PolicySimulation PolicyVersionPage Profile RefusedDestination
  RefusedOrigin RolePermissions ServerCounts ServerLoad ServerPage ServerRefusal ServiceTokenPage SeverityCount SignIn
  SignInChallenge SignInProvider SkillPage SkillVersionPage SkippedMessage StartedAgents TotpEnrolment TurnPage ViewerPermission
`)
  : []

const text = (value: unknown) =>
  typeof value === 'number' || typeof value === 'string' ? String(value) : null

/** Types identified by something other than `id`. */
export const COMPOSED: KeyingConfig = {
  Member: ({ userId, organizationId }) =>
    text(userId) && text(organizationId) ? `${text(userId)}:${text(organizationId)}` : null,
  Membership: ({ organizationId }) => text(organizationId),
  // One per cache: a mutation's result updates every page.
  Viewer: () => 'viewer',
}

export const keys: KeyingConfig = {
  ...Object.fromEntries([...EMBEDDED, ...WITHOUT_ID].map((name) => [name, () => null])),
  ...COMPOSED,
}
