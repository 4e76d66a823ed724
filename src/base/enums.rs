//! The vocabulary: every enumeration that is stored or spoken, each defined once.
//!
//! A value has one spelling, its wire text, in the database (TEXT with a CHECK), in JSON and in the schema. A new
//! value needs a line here and a migration that widens the CHECK (`migrations/README.md`).

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};

#[macro_use]
mod define;

pub use self::define::UnknownValue;

text_enum! {
    /// A kind of record, as events and the audit log name it.
    pub RecordKind {
        Agent = "AGENT": "An agent.",
        Approval = "APPROVAL": "An approval.",
        Attachment = "ATTACHMENT": "A file of a conversation.",
        Channel = "CHANNEL": "A channel.",
        Contact = "CONTACT": "A contact.",
        Conversation = "CONVERSATION": "A conversation.",
        Credential = "CREDENTIAL": "A credential.",
        Image = "IMAGE": "An image that agents run from.",
        Invitation = "INVITATION": "An invitation.",
        McpServer = "MCP_SERVER": "An MCP server.",
        Member = "MEMBER": "A member; the id is the person's.",
        Message = "MESSAGE": "A message of a conversation.",
        Organization = "ORGANIZATION": "The organization itself.",
        Policy = "POLICY": "The organization's policy; the id is a version's.",
        Server = "SERVER": "A server.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
        Skill = "SKILL": "A skill.",
    }
}

impl RecordKind {
    /// The name in the audit log: `mcp_server`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approval => "approval",
            Self::Attachment => "attachment",
            Self::Channel => "channel",
            Self::Contact => "contact",
            Self::Conversation => "conversation",
            Self::Credential => "credential",
            Self::Image => "image",
            Self::Invitation => "invitation",
            Self::McpServer => "mcp_server",
            Self::Member => "member",
            Self::Message => "message",
            Self::Organization => "organization",
            Self::Policy => "policy",
            Self::Server => "server",
            Self::ServiceToken => "service_token",
            Self::Skill => "skill",
        }
    }
}

text_enum! {
    /// What happened to a record.
    pub ChangeOp {
        Created = "CREATED": "It is new.",
        Updated = "UPDATED": "It is another than before; archived, or brought back, too.",
        Deleted = "DELETED": "It is gone.",
        Resync = "RESYNC": "Changes may have been missed: read again what matters.",
    }
}

text_enum! {
    /// A server's state.
    pub ServerStatus {
        Pending = "PENDING": "Never connected.",
        Online = "ONLINE": "Its host is connected.",
        Degraded = "DEGRADED": "Connected, but its protocol differs from ours.",
        Offline = "OFFLINE": "Was connected, and is not.",
    }
}

text_enum! {
    /// What runs agents on a server.
    pub Runtime {
        Docker = "DOCKER": "Docker Engine.",
        Podman = "PODMAN": "Podman.",
        Process = "PROCESS": "No container engine: plain processes.",
    }
}

text_enum! {
    /// An agent's lifecycle state.
    pub AgentStatus {
        Stopped = "STOPPED": "Not running.",
        Spawning = "SPAWNING": "Being launched.",
        Running = "RUNNING": "Up, and takes turns.",
        Paused = "PAUSED": "Kept in memory, takes no turns.",
        Stopping = "STOPPING": "Being stopped.",
        Error = "ERROR": "Failed; last_action says how.",
    }
}

text_enum! {
    /// What the caller may do with an agent. Computed, never stored.
    pub ViewerAccess {
        None = "NONE": "Nothing.",
        View = "VIEW": "Read.",
        Interact = "INTERACT": "Read, and talk to it.",
        Manage = "MANAGE": "Everything.",
    }
}

text_enum! {
    /// How an agent signs in to its model.
    pub ModelCredentialType {
        Oauth = "OAUTH": "Through OAuth.",
        ApiKey = "API_KEY": "With a key.",
    }
}

text_enum! {
    /// Whose model credential an agent uses.
    pub CredentialChoice {
        Inherit = "INHERIT": "The organization's.",
        Own = "OWN": "Its own.",
        None = "NONE": "None at all.",
    }
}

text_enum! {
    /// How much a model thinks.
    pub Effort {
        Low = "LOW": "Little.",
        Medium = "MEDIUM": "Some.",
        High = "HIGH": "Much.",
        Max = "MAX": "As much as it can.",
    }
}

text_enum! {
    /// How an agent words its answers.
    pub ResponseStyle {
        Default = "DEFAULT": "The model's own way.",
        Concise = "CONCISE": "Short.",
        Detailed = "DETAILED": "At length.",
        Formal = "FORMAL": "Formal.",
        Friendly = "FRIENDLY": "Friendly.",
    }
}

text_enum! {
    /// How an agent lays out its answers.
    pub ResponseFormat {
        Prose = "PROSE": "Paragraphs.",
        Markdown = "MARKDOWN": "Markdown.",
        Plain = "PLAIN": "Plain text.",
        Structured = "STRUCTURED": "Headings and lists.",
    }
}

text_enum! {
    /// When an agent is backed up.
    pub BackupSchedule {
        Inherit = "INHERIT": "As the organization says.",
        Off = "OFF": "Never.",
        Daily = "DAILY": "Every day.",
        Weekly = "WEEKLY": "Every week.",
        Cron = "CRON": "By a cron expression of its own.",
    }
}

text_enum! {
    /// Whether an agent follows the organization's rule or has its own.
    pub OverrideMode {
        Inherit = "INHERIT": "The organization's rule.",
        Off = "OFF": "No rule.",
        Custom = "CUSTOM": "A rule of its own.",
    }
}

text_enum! {
    /// What happens when an agent spends too much.
    pub CostGuardAction {
        Notify = "NOTIFY": "Somebody is told.",
        Pause = "PAUSE": "The agent is paused.",
        Stop = "STOP": "The agent is stopped.",
    }
}

text_enum! {
    /// What a model's provider says of the use so far.
    pub UsageStatus {
        Allowed = "ALLOWED": "Within the limit.",
        AllowedWarning = "ALLOWED_WARNING": "Near the limit.",
        Rejected = "REJECTED": "Over the limit.",
    }
}

text_enum! {
    /// A messaging transport.
    pub Transport {
        Telegram = "TELEGRAM": "Telegram.",
        Discord = "DISCORD": "Discord.",
        Slack = "SLACK": "Slack.",
        Email = "EMAIL": "Mail.",
        CodeHost = "CODE_HOST": "A code host.",
        Webhook = "WEBHOOK": "Webhooks.",
        Drive = "DRIVE": "A shared drive.",
        Calendar = "CALENDAR": "A calendar.",
        Internal = "INTERNAL": "The panel. Never created by hand.",
    }
}

text_enum! {
    /// Who a channel is for.
    pub ChannelScope {
        External = "EXTERNAL": "People outside the organization.",
        Internal = "INTERNAL": "Members.",
    }
}

text_enum! {
    /// Which way messages go.
    pub ChannelDirection {
        Inbound = "INBOUND": "To the agent.",
        Outbound = "OUTBOUND": "From the agent.",
        Bidirectional = "BIDIRECTIONAL": "Both ways.",
    }
}

text_enum! {
    /// Which events of a code host reach the agent.
    pub ListenScope {
        Involved = "involved": "Where it is involved.",
        Mentions = "mentions": "Where it is mentioned.",
        All = "all": "All.",
    }
}

text_enum! {
    /// Why a channel is inactive.
    pub InactiveReason {
        Manual = "MANUAL": "A person switched it off.",
        AuthFailed = "AUTH_FAILED": "The vendor refused its credential.",
        Gone = "GONE": "The receiver said that it is gone.",
        DeliveryFailing = "DELIVERY_FAILING": "Deliveries have failed for days.",
        AgentArchived = "AGENT_ARCHIVED": "Its agent was deleted.",
        PlanLimit = "PLAN_LIMIT": "The plan allows fewer channels.",
    }
}

text_enum! {
    /// A conversation's state.
    pub ConversationStatus {
        Open = "OPEN": "Under way.",
        Pending = "PENDING": "The agent waits for a person.",
        Resolved = "RESOLVED": "Settled; an inbound message opens it again.",
        Archived = "ARCHIVED": "Put away; an inbound message starts a new one.",
    }
}

text_enum! {
    /// By what a list of conversations is ordered.
    pub ConversationSort {
        Activity = "activity": "When something last happened.",
        Created = "created": "When it was created.",
        Contact = "contact": "The contact's name.",
        Agent = "agent": "The agent's name.",
        Channel = "channel": "The channel's name.",
        Model = "model": "The model last observed.",
        Status = "status": "The lifecycle state, by its name.",
    }
}

text_enum! {
    /// Which way a list is ordered.
    pub SortOrder {
        Asc = "asc": "The smallest first.",
        Desc = "desc": "The largest first.",
    }
}

text_enum! {
    /// How the text of a message is meant.
    pub TextFormat {
        Markdown = "markdown": "Markdown.",
        Plain = "plain": "As it stands.",
    }
}

text_enum! {
    /// Who speaks.
    pub MessageRole {
        User = "USER": "A person.",
        Assistant = "ASSISTANT": "The agent.",
        System = "SYSTEM": "The service.",
        Tool = "TOOL": "A tool.",
    }
}

text_enum! {
    /// What a message holds.
    pub MessageKind {
        Text = "TEXT": "Words.",
        Thinking = "THINKING": "The model's reasoning.",
        ToolCall = "TOOL_CALL": "A call of a tool.",
        ToolResult = "TOOL_RESULT": "What a tool answered.",
        File = "FILE": "A file.",
        Voice = "VOICE": "A recording.",
        Approval = "APPROVAL": "A decision that is asked for.",
        Event = "EVENT": "Something that happened.",
        Error = "ERROR": "Something that went wrong.",
    }
}

text_enum! {
    /// Whether a message reached the agent or the conversation.
    pub MessageStatus {
        Pending = "PENDING": "Not yet.",
        Delivered = "DELIVERED": "It did.",
        Failed = "FAILED": "It did not.",
        Cancelled = "CANCELLED": "It was withdrawn.",
    }
}

text_enum! {
    /// How far a message got outside.
    pub DeliveryStatus {
        Pending = "PENDING": "Waits to be sent.",
        Sending = "SENDING": "Is being sent.",
        Sent = "SENT": "The vendor took it.",
        Delivered = "DELIVERED": "The vendor delivered it.",
        Read = "READ": "Somebody read it.",
        Failed = "FAILED": "It can't be sent.",
        Skipped = "SKIPPED": "Nothing to send: inactive, wrong direction, or an echo.",
    }
}

text_enum! {
    /// An approval's state.
    pub ApprovalStatus {
        Pending = "PENDING": "Waits for a decision.",
        Resolved = "RESOLVED": "Decided.",
        Dismissed = "DISMISSED": "No longer applies.",
        Expired = "EXPIRED": "Nobody decided in time.",
    }
}

text_enum! {
    /// How an approval ended.
    pub ApprovalOutcome {
        Manual = "MANUAL": "Marked as resolved.",
        Answered = "ANSWERED": "The question was answered.",
        Approved = "APPROVED": "The action was allowed.",
        Denied = "DENIED": "The action was refused.",
        Dismissed = "DISMISSED": "Dismissed.",
        Expired = "EXPIRED": "Expired.",
        Withdrawn = "WITHDRAWN": "The agent withdrew it.",
    }
}

text_enum! {
    /// What an approval is about.
    pub ApprovalKind {
        Question = "QUESTION": "The agent asks something.",
        Action = "ACTION": "The agent wants to do something.",
        AuthRequired = "AUTH_REQUIRED": "Somebody has to sign in.",
        CostGuard = "COST_GUARD": "The agent spent too much.",
        ChannelError = "CHANNEL_ERROR": "A channel failed.",
        AccessRequest = "ACCESS_REQUEST": "Somebody unknown wrote.",
        ServerAlert = "SERVER_ALERT": "A server is overloaded or away.",
    }
}

text_enum! {
    /// How grave it is.
    pub Severity {
        Low = "LOW": "Can wait.",
        Medium = "MEDIUM": "Soon.",
        High = "HIGH": "Today.",
        Critical = "CRITICAL": "Now.",
    }
}

text_enum! {
    /// Through what a decision came.
    pub DecidedVia {
        Graphql = "GRAPHQL": "The panel, or another GraphQL client.",
        Rest = "REST": "The REST interface.",
        Channel = "CHANNEL": "A channel.",
        System = "SYSTEM": "The service itself.",
    }
}

text_enum! {
    /// How an MCP server is reached.
    pub McpTransport {
        Stdio = "STDIO": "A command on the agent's host.",
        Http = "HTTP": "Streamable HTTP.",
        Sse = "SSE": "HTTP with server-sent events.",
    }
}

text_enum! {
    /// What a credential is: `api-key`, `bearer-token`, `basic-auth`, `oauth2`, `ssh-key`, `certificate`,
    /// `connection-string` or `custom`. A scalar, because names in GraphQL have no hyphens.
    pub scalar CredentialKind {
        ApiKey = "api-key": "One key.",
        BearerToken = "bearer-token": "A bearer token.",
        BasicAuth = "basic-auth": "A user name and a password.",
        Oauth2 = "oauth2": "An OAuth 2 client.",
        SshKey = "ssh-key": "An SSH key.",
        Certificate = "certificate": "A certificate.",
        ConnectionString = "connection-string": "A connection string.",
        Custom = "custom": "Anything else.",
    }
}

text_enum! {
    /// What a credential's field holds.
    pub FieldType {
        Text = "text": "A line that is no secret in itself.",
        Secret = "secret": "A secret line.",
        Multiline = "multiline": "Several lines.",
        Url = "url": "An address.",
        Number = "number": "A number.",
        Boolean = "boolean": "Yes or no.",
        Json = "json": "A JSON document.",
    }
}

text_enum! {
    /// An organization's plan.
    pub Plan {
        Free = "FREE": "Free.",
        Starter = "STARTER": "Starter.",
        Pro = "PRO": "Pro.",
        Business = "BUSINESS": "Business.",
        Enterprise = "ENTERPRISE": "Enterprise.",
    }
}

text_enum! {
    /// Who an organization is to the tax office.
    pub CustomerType {
        Business = "BUSINESS": "A business.",
        Individual = "INDIVIDUAL": "A person.",
    }
}

text_enum! {
    /// Which versions of a file are kept.
    pub VersionRetention {
        Spread = "SPREAD": "Many recent ones, few old ones.",
        Latest = "LATEST": "The latest ones.",
        All = "ALL": "All.",
    }
}

text_enum! {
    /// Who acted.
    pub ActorKind {
        User = "USER": "A person.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
        System = "SYSTEM": "The service itself.",
        Anonymous = "ANONYMOUS": "Nobody that we know.",
    }
}

text_enum! {
    /// What an actor showed to be who they are.
    pub CredentialUsed {
        Session = "SESSION": "A session's access token.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
    }
}

text_enum! {
    /// Who stored a version of an organization's rules.
    pub PolicyAuthor {
        User = "USER": "A member, through the schema.",
        Operator = "OPERATOR": "The installation's operator, at the command line.",
    }
}

text_enum! {
    /// How an operation ended.
    pub AuditOutcome {
        Allowed = "ALLOWED": "It was done.",
        Refused = "REFUSED": "It was not permitted.",
        Failed = "FAILED": "It was permitted, and failed.",
    }
}

text_enum! {
    /// What waits in the outbox: what a host is told to do, and what the service sends itself.
    pub OutboxKind {
        Launch = "LAUNCH": "Launch an agent.",
        Stop = "STOP": "Stop an agent.",
        Pause = "PAUSE": "Pause an agent.",
        Resume = "RESUME": "Resume an agent.",
        Turn = "TURN": "Hand an agent a message.",
        Answer = "ANSWER": "Hand an agent a decision.",
        Sync = "SYNC": "Bring an agent's skills, servers and credentials up to date.",
        Mail = "MAIL": "Send a mail.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_back_from_its_wire_text() {
        for &value in AgentStatus::ALL {
            assert_eq!(value.as_str().parse(), Ok(value));
        }
        for &value in CredentialKind::ALL {
            assert_eq!(
                serde_json::from_value::<CredentialKind>(serde_json::json!(value.as_str())).unwrap(),
                value
            );
        }
    }

    #[test]
    fn an_unknown_text_is_refused_by_name() {
        let refused = "running".parse::<AgentStatus>().unwrap_err().to_string();
        assert_eq!(refused, "`running` is not one of STOPPED, SPAWNING, RUNNING, PAUSED, STOPPING, ERROR");
    }
}
