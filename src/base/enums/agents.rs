//! States and settings of agents, and of the servers on which they run.

use super::UnknownValue;

text_enum! {
    /// A server's state.
    pub ServerStatus {
        Pending = "PENDING": "Never connected.",
        Online = "ONLINE": "Its host is connected.",
        Degraded = "DEGRADED": "Its host is connected, but the machine's load is above one of the organization's thresholds.",
        Offline = "OFFLINE": "Its host was connected before, but is not now.",
    }
}

text_enum! {
    /// Why a server's host was refused, if a person has to fix the cause.
    pub HostRefusal {
        Version = "VERSION": "The host and Muster have no version of the protocol in common.",
        JournalLost = "JOURNAL_LOST": "The host has forgotten what it had confirmed: its folder was restored from a backup.",
        Restored = "RESTORED": "Muster has forgotten what the host did: its database was restored from an older backup.",
        Superseded = "SUPERSEDED": "A newer connection has taken over: a copy of the host's folder may be in use.",
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

impl AgentStatus {
    /// Whether there was no launch, or it is over for the control plane. After a failure its host may still have it.
    #[must_use]
    pub const fn is_at_rest(self) -> bool {
        matches!(self, Self::Stopped | Self::Error)
    }
}

text_enum! {
    /// Why an agent waits or has failed.
    pub StatusReason {
        HostAway = "HOST_AWAY": "Its host is not connected. The agent keeps running meanwhile.",
        WaitingForHost = "WAITING_FOR_HOST": "No host is connected that could launch it.",
        HostNotConfirmed = "HOST_NOT_CONFIRMED": "It needs secrets, and the host of its server is not confirmed. It starts once a person confirms the host.",
        Restarting = "RESTARTING": "It starts again as soon as it is down.",
        EngineAway = "ENGINE_AWAY": "Its host can't reach its container engine, and keeps trying.",
        ImageNotFound = "IMAGE_NOT_FOUND": "The host does not know its image, or can't find it.",
        OutOfMemory = "OUT_OF_MEMORY": "It ran out of memory.",
        ShimLost = "SHIM_LOST": "It is gone, and so is the program on its server that supervised it: the reason is unknown.",
        Exited = "EXITED": "It ended by itself.",
        Killed = "KILLED": "It was ended by a signal that did not come from its host.",
        SpawnFailed = "SPAWN_FAILED": "Its program could not be started.",
        NoProtocol = "NO_PROTOCOL": "It does not speak the Agent Client Protocol, or did not in time.",
        LineTooLong = "LINE_TOO_LONG": "It wrote a line that is too long.",
        DiskFull = "DISK_FULL": "The disk of its host is full.",
        StartTimeout = "START_TIMEOUT": "It did not start in time.",
        AuthRequired = "AUTH_REQUIRED": "Its model refuses its credential.",
        SyncFailed = "SYNC_FAILED": "A change can't reach it. It continues without the change.",
        BackupFailed = "BACKUP_FAILED": "Its home could not be backed up.",
        LimitReached = "LIMIT_REACHED": "It was stopped because its budget is used up.",
        OrganizationStopped = "ORGANIZATION_STOPPED": "The organization is stopped.",
    }
}

text_enum! {
    /// When an agent that has ended is started again without a person.
    pub RestartPolicy {
        Never = "NEVER": "Never.",
        OnFailure = "ON_FAILURE": "When it has failed: up to five times in a row, or without limit if its host lost it.",
        Always = "ALWAYS": "When it has failed, or ended by itself without an error. Otherwise like ON_FAILURE.",
    }
}

text_enum! {
    /// The caller's rights on an agent. Computed, never stored.
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
    /// The progress of a backup, or of a restore from it.
    pub BackupState {
        Pending = "PENDING": "The host has yet to do it.",
        Done = "DONE": "It is complete.",
        Failed = "FAILED": "It failed.",
    }
}

text_enum! {
    /// Why an agent was backed up.
    pub BackupCause {
        Schedule = "SCHEDULE": "It was time.",
        Person = "PERSON": "A person requested it.",
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
    /// The consequence when an agent spends too much.
    pub CostGuardAction {
        Notify = "NOTIFY": "Send a notification.",
        Pause = "PAUSE": "Pause the agent.",
        Stop = "STOP": "Stop the agent.",
    }
}

text_enum! {
    /// The model provider's report on the usage so far.
    pub UsageStatus {
        Allowed = "ALLOWED": "Within the limit.",
        AllowedWarning = "ALLOWED_WARNING": "Near the limit.",
        Rejected = "REJECTED": "Over the limit.",
    }
}

text_enum! {
    /// What keeps an agent from calling its model.
    pub LimitKind {
        Money = "MONEY": "A budget of the month is used up.",
        Tokens = "TOKENS": "It has used up its tokens for an hour.",
        Usage = "USAGE": "The model's provider accepts no more requests for now.",
    }
}

text_enum! {
    /// Where a line of an agent's log comes from.
    pub LogSource {
        Stderr = "STDERR": "The agent's standard error.",
        Launch = "LAUNCH": "Its launches and their ends.",
        Gate = "GATE": "Refusals of its gate.",
        Mcp = "MCP": "Errors of its MCP servers.",
    }
}
