//! The vocabulary: every enumeration that is stored or sent, each defined once.
//!
//! A value is spelled the same everywhere: in the database (TEXT with a CHECK), in JSON and in the schema. A new value
//! needs a line here and a migration that widens the CHECK (`migrations/README.md`).

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
        Member = "MEMBER": "A member, identified by the id of the user.",
        Message = "MESSAGE": "A message of a conversation.",
        Organization = "ORGANIZATION": "The organization itself.",
        Policy = "POLICY": "The organization's policy, identified by the id of a version.",
        Server = "SERVER": "A server.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
        Skill = "SKILL": "A skill.",
        Turn = "TURN": "A turn of an agent.",
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
            Self::Turn => "turn",
        }
    }
}

text_enum! {
    /// What happened to a record.
    pub ChangeOp {
        Created = "CREATED": "The record was created.",
        Updated = "UPDATED": "The record changed, or was archived or restored.",
        Deleted = "DELETED": "The record was deleted.",
        Resync = "RESYNC": "Changes may have been missed: read again whatever you show.",
    }
}

text_enum! {
    /// A server's state.
    pub ServerStatus {
        Pending = "PENDING": "Never connected.",
        Online = "ONLINE": "Its host is connected.",
        Degraded = "DEGRADED": "Its host is connected, but the machine's load is above a threshold of the organization.",
        Offline = "OFFLINE": "Its host was connected before, but is not now.",
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
        Running = "RUNNING": "Running, and taking turns.",
        Paused = "PAUSED": "Kept in memory, but not taking turns.",
        Stopping = "STOPPING": "Being stopped.",
        Error = "ERROR": "Failed; the reason of its status says how.",
    }
}

text_enum! {
    /// Why an agent waits or has failed.
    pub StatusReason {
        HostAway = "HOST_AWAY": "Its host is not connected. The agent goes on meanwhile.",
        WaitingForHost = "WAITING_FOR_HOST": "No host is connected that could launch it.",
        ImageNotFound = "IMAGE_NOT_FOUND": "The host does not know its image, or can't find it.",
        OutOfMemory = "OUT_OF_MEMORY": "It ran out of memory.",
        ShimLost = "SHIM_LOST": "The program that kept it is gone and left no record of its end.",
        Exited = "EXITED": "It ended by itself.",
        Killed = "KILLED": "It was ended by a signal that did not come from its host.",
        SpawnFailed = "SPAWN_FAILED": "Its program could not be started.",
        NoProtocol = "NO_PROTOCOL": "It does not speak the Agent Client Protocol, or did not in time.",
        LineTooLong = "LINE_TOO_LONG": "It wrote a line that is too long.",
        DiskFull = "DISK_FULL": "The disk of its host is full.",
        StartTimeout = "START_TIMEOUT": "It was not up in time.",
        AuthRequired = "AUTH_REQUIRED": "Its model refuses its credential.",
        OrganizationStopped = "ORGANIZATION_STOPPED": "The organization is stopped.",
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
    /// How an agent authenticates to its model.
    pub ModelCredentialType {
        Oauth = "OAUTH": "With OAuth.",
        ApiKey = "API_KEY": "With an API key.",
    }
}

text_enum! {
    /// Which model credential an agent uses.
    pub CredentialChoice {
        Inherit = "INHERIT": "The organization's.",
        Own = "OWN": "Its own.",
        None = "NONE": "No credential.",
    }
}

text_enum! {
    /// How much reasoning effort a model spends.
    pub Effort {
        Low = "LOW": "Low.",
        Medium = "MEDIUM": "Medium.",
        High = "HIGH": "High.",
        Max = "MAX": "The model's maximum.",
    }
}

text_enum! {
    /// The tone of an agent's answers.
    pub ResponseStyle {
        Default = "DEFAULT": "The model's default.",
        Concise = "CONCISE": "Short.",
        Detailed = "DETAILED": "Detailed.",
        Formal = "FORMAL": "Formal.",
        Friendly = "FRIENDLY": "Friendly.",
    }
}

text_enum! {
    /// How an agent formats its answers.
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
        Inherit = "INHERIT": "The organization's schedule.",
        Off = "OFF": "Never.",
        Daily = "DAILY": "Every day.",
        Weekly = "WEEKLY": "Every week.",
        Cron = "CRON": "A cron expression of its own.",
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
        Notify = "NOTIFY": "Send a notification.",
        Pause = "PAUSE": "Pause the agent.",
        Stop = "STOP": "Stop the agent.",
    }
}

text_enum! {
    /// What the model's provider reports about usage so far.
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
        Internal = "INTERNAL": "The panel. Created automatically.",
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
        Involved = "involved": "Events that involve it.",
        Mentions = "mentions": "Events that mention it.",
        All = "all": "All events.",
    }
}

text_enum! {
    /// Why a channel is inactive.
    pub InactiveReason {
        Manual = "MANUAL": "A person switched it off.",
        AuthFailed = "AUTH_FAILED": "The vendor refused its credential.",
        Gone = "GONE": "The receiving end no longer exists.",
        DeliveryFailing = "DELIVERY_FAILING": "Deliveries have failed for days.",
        AgentArchived = "AGENT_ARCHIVED": "Its agent was deleted.",
        PlanLimit = "PLAN_LIMIT": "The plan allows fewer channels.",
    }
}

text_enum! {
    /// A conversation's state.
    pub ConversationStatus {
        Open = "OPEN": "In progress.",
        Pending = "PENDING": "The agent is waiting for a person.",
        Resolved = "RESOLVED": "Resolved; an inbound message reopens it.",
        Archived = "ARCHIVED": "Archived; an inbound message starts a new conversation.",
    }
}

text_enum! {
    /// The sort key of a list of conversations.
    pub ConversationSort {
        Activity = "activity": "The time of the last activity.",
        Created = "created": "The time of creation.",
        Contact = "contact": "The contact's name.",
        Agent = "agent": "The agent's name.",
        Channel = "channel": "The channel's name.",
        Model = "model": "The last model observed.",
        Status = "status": "The name of the status.",
    }
}

text_enum! {
    /// The direction of a sort.
    pub SortOrder {
        Asc = "asc": "Ascending.",
        Desc = "desc": "Descending.",
    }
}

text_enum! {
    /// The format of a message's text.
    pub TextFormat {
        Markdown = "markdown": "Markdown.",
        Plain = "plain": "Plain text.",
    }
}

text_enum! {
    /// Who wrote a message.
    pub MessageRole {
        User = "USER": "A person.",
        Assistant = "ASSISTANT": "The agent.",
        System = "SYSTEM": "The service.",
        Tool = "TOOL": "A tool.",
    }
}

text_enum! {
    /// What a message contains.
    pub MessageKind {
        Text = "TEXT": "Text.",
        Thinking = "THINKING": "The model's reasoning.",
        ToolCall = "TOOL_CALL": "A tool call.",
        ToolResult = "TOOL_RESULT": "A tool's result.",
        File = "FILE": "A file.",
        Voice = "VOICE": "A recording.",
        Approval = "APPROVAL": "A request for a decision.",
        Event = "EVENT": "An event.",
        Error = "ERROR": "An error.",
    }
}

text_enum! {
    /// A turn's state.
    pub TurnState {
        Queued = "QUEUED": "Waiting for the agent.",
        Running = "RUNNING": "The agent works on it.",
        WaitingApproval = "WAITING_APPROVAL": "The agent waits for a person.",
        WaitingLimit = "WAITING_LIMIT": "The agent waits for a limit of its model to end.",
        Done = "DONE": "Done.",
        Failed = "FAILED": "It could not be finished; `error` says why.",
        Cancelled = "CANCELLED": "Cancelled.",
        Interrupted = "INTERRUPTED": "The agent ended in the middle of it. It is not run again by itself.",
    }
}

text_enum! {
    /// What caused a turn.
    pub TurnCause {
        Panel = "PANEL": "A person wrote in the panel.",
        Channel = "CHANNEL": "A message came in through a channel.",
        Api = "API": "An integration wrote.",
        Schedule = "SCHEDULE": "A schedule.",
        Agent = "AGENT": "Another agent.",
        System = "SYSTEM": "The service itself.",
    }
}

text_enum! {
    /// How far the decision on an agent's request has come.
    pub AnswerDelivery {
        Sent = "SENT": "It is on its way to whoever waits for it.",
        Direct = "DIRECT": "What waited for it has got it.",
        Turn = "TURN": "Nothing waited any more: the agent is told in a turn.",
        None = "NONE": "Nothing waited any more, and there is nothing to tell.",
    }
}

text_enum! {
    /// Whether a message reached the agent or the conversation.
    pub MessageStatus {
        Pending = "PENDING": "Not delivered yet.",
        Delivered = "DELIVERED": "Delivered.",
        Failed = "FAILED": "Delivery failed.",
        Cancelled = "CANCELLED": "Withdrawn.",
    }
}

text_enum! {
    /// How far the delivery of a message to the outside has progressed.
    pub DeliveryStatus {
        Pending = "PENDING": "Waiting to be sent.",
        Sending = "SENDING": "Being sent.",
        Sent = "SENT": "The vendor accepted it.",
        Delivered = "DELIVERED": "The vendor delivered it.",
        Read = "READ": "The recipient read it.",
        Failed = "FAILED": "It could not be sent.",
        Skipped = "SKIPPED": "Not sent: the channel is inactive, goes the other way, or the message is an echo.",
    }
}

text_enum! {
    /// An approval's state.
    pub ApprovalStatus {
        Pending = "PENDING": "Waiting for a decision.",
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
        Question = "QUESTION": "The agent asks a question.",
        Action = "ACTION": "The agent wants to do something.",
        AuthRequired = "AUTH_REQUIRED": "Someone needs to sign in.",
        CostGuard = "COST_GUARD": "The agent spent too much.",
        ChannelError = "CHANNEL_ERROR": "A channel failed.",
        AccessRequest = "ACCESS_REQUEST": "A message arrived from an unknown sender.",
        ServerAlert = "SERVER_ALERT": "A server is overloaded or offline.",
    }
}

text_enum! {
    /// How severe an approval is.
    pub Severity {
        Low = "LOW": "It can wait.",
        Medium = "MEDIUM": "It needs attention soon.",
        High = "HIGH": "It needs attention today.",
        Critical = "CRITICAL": "It needs attention now.",
    }
}

text_enum! {
    /// The route by which a decision arrived.
    pub DecidedVia {
        Graphql = "GRAPHQL": "The panel, or another GraphQL client.",
        Rest = "REST": "The REST API.",
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
    /// The kind of a credential: `api-key`, `bearer-token`, `basic-auth`, `oauth2`, `ssh-key`, `certificate`,
    /// `connection-string` or `custom`. A scalar, because GraphQL names can't contain hyphens.
    pub scalar CredentialKind {
        ApiKey = "api-key": "An API key.",
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
        Text = "text": "A single line that is not secret.",
        Secret = "secret": "A single secret line.",
        Multiline = "multiline": "Multiple lines.",
        Url = "url": "A URL.",
        Number = "number": "A number.",
        Boolean = "boolean": "True or false.",
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
    /// Whether a business or a person is billed.
    pub CustomerType {
        Business = "BUSINESS": "A business.",
        Individual = "INDIVIDUAL": "A person.",
    }
}

text_enum! {
    /// Which versions of a file are kept.
    pub VersionRetention {
        Spread = "SPREAD": "Many recent versions and a few old ones.",
        Latest = "LATEST": "The latest versions.",
        All = "ALL": "All versions.",
    }
}

text_enum! {
    /// Who acted.
    pub ActorKind {
        User = "USER": "A person.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
        System = "SYSTEM": "The service itself.",
        Anonymous = "ANONYMOUS": "An unauthenticated caller.",
    }
}

text_enum! {
    /// The credential an actor used.
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
        Allowed = "ALLOWED": "It was carried out.",
        Refused = "REFUSED": "It was refused.",
        Failed = "FAILED": "It was permitted, but failed.",
    }
}

text_enum! {
    /// The kinds of outbox entries: commands for hosts, and what the service sends itself.
    pub OutboxKind {
        Launch = "LAUNCH": "Launch an agent.",
        Stop = "STOP": "Stop an agent.",
        Pause = "PAUSE": "Pause an agent.",
        Resume = "RESUME": "Resume an agent.",
        Turn = "TURN": "Give an agent a turn.",
        Cancel = "CANCEL": "End a turn that is running.",
        Answer = "ANSWER": "Deliver a decision to an agent.",
        Verdict = "VERDICT": "Answer a request that no person has to decide.",
        Sync = "SYNC": "Bring an agent's skills, servers and credentials up to date.",
        Mail = "MAIL": "Send an email.",
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
