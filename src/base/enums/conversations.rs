//! Channels, conversations, their messages and turns.

use super::UnknownValue;

// `docs/contributing.md` lists the places that a new value needs (*A transport*).
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
    /// The direction of messages.
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
    /// Why a channel or an event endpoint is inactive.
    pub InactiveReason {
        Manual = "MANUAL": "A person switched it off.",
        AuthFailed = "AUTH_FAILED": "The vendor refused its credential.",
        Gone = "GONE": "The receiving end no longer exists.",
        DeliveryFailing = "DELIVERY_FAILING": "Nothing could be sent for five days.",
        AgentArchived = "AGENT_ARCHIVED": "Its agent was deleted.",
        PlanLimit = "PLAN_LIMIT": "The plan allows fewer channels. Not applied yet.",
    }
}

text_enum! {
    /// Why a message was refused.
    pub RefusalReason {
        NotWhitelisted = "NOT_WHITELISTED": "Its origin is not on the whitelist.",
        Label = "LABEL": "It has none of the labels that let a message in.",
        NotAddressed = "NOT_ADDRESSED": "It was written to others, in a place where the agent has to be mentioned.",
        Unproven = "UNPROVEN": "The mail server does not prove who sent it.",
    }
}

text_enum! {
    /// Whether a channel's vendor is reached.
    pub LinkState {
        Up = "UP": "Messages arrive as they are written.",
        Down = "DOWN": "It can't be reached. Muster keeps trying.",
    }
}

text_enum! {
    /// Why sending a message was given up.
    pub DeliveryCode {
        Refused = "refused": "The vendor does not accept it.",
        TargetGone = "target_gone": "The chat or address accepts no messages from Muster.",
        UnknownOutcome = "unknown_outcome": "It is unknown whether it was sent.",
        GaveUp = "gave_up": "Every attempt failed.",
        EarlierPart = "earlier_part": "An earlier part of the message was not sent.",
        Bounced = "bounced": "The vendor accepted it, but could not deliver it.",
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
        Queued = "QUEUED": "It waits until the agent is free.",
        Running = "RUNNING": "The agent works on it.",
        WaitingApproval = "WAITING_APPROVAL": "The agent has asked a person, and waits for the answer.",
        WaitingLimit = "WAITING_LIMIT": "The agent may not call its model at the moment. It continues by itself: `Agent.limit` says when.",
        Done = "DONE": "The agent has finished it.",
        Failed = "FAILED": "The agent could not finish it. `error` says why.",
        Cancelled = "CANCELLED": "It was cancelled, or another turn has its messages. `error` says so.",
        Interrupted = "INTERRUPTED": "The agent ended in the middle of it. `error` says why. It does not run again by itself.",
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
    /// Whether a message reached the agent or the conversation.
    pub MessageStatus {
        Pending = "PENDING": "Not delivered yet.",
        Delivered = "DELIVERED": "Delivered.",
        Failed = "FAILED": "Delivery failed.",
        Cancelled = "CANCELLED": "Withdrawn.",
    }
}

text_enum! {
    /// The progress of delivering a message to the outside.
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
    /// What a person ended, which ended the turn with it.
    pub TurnCut {
        Turn = "TURN": "The turn itself.",
        Agent = "AGENT": "The agent, by stopping it.",
        Restart = "RESTART": "The agent's launch, by restarting it.",
        Organization = "ORGANIZATION": "The whole organization, by stopping it.",
    }
}

text_enum! {
    /// The effect of an agent's limit on a turn. Not shown.
    pub TurnLimit {
        Refused = "REFUSED": "A call of its model was refused, and none has passed since.",
        Parked = "PARKED": "The agent has given it up because of that. It is sent again.",
        Resumed = "RESUMED": "It was sent again.",
    }
}

text_enum! {
    /// Waits of a turn, other than for people. Only its trace shows them.
    pub TurnWait {
        Budget = "BUDGET": "Money: a budget of the month was spent.",
        Tokens = "TOKENS": "Tokens: those of an hour were used up.",
        Stop = "STOP": "The release of the organization, which was stopped.",
    }
}
