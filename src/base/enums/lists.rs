//! How lists are sorted and grouped.

use super::UnknownValue;

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
    /// The sort key of a list with only these options.
    pub ListSort {
        Created = "CREATED": "In the list's own order: as they were created.",
        Name = "NAME": "By name.",
    }
}

text_enum! {
    /// The sort key of a feed of agents.
    pub AgentSort {
        Name = "NAME": "The name.",
        Status = "STATUS": "The status: failed agents first, then running ones, then the others.",
        Activity = "ACTIVITY": "The time of the last message in its conversations, latest first.",
        Created = "CREATED": "The time of creation, latest first.",
    }
}

text_enum! {
    /// The sort key of a feed of approvals.
    pub ApprovalSort {
        Risk = "RISK": "Pending approvals first, then the highest risk, then the earliest expiry. Without a risk, the severity counts.",
        Expires = "EXPIRES": "The earliest expiry first, and approvals that never expire last.",
        Created = "CREATED": "The time it was raised, latest first.",
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
    /// How usage is grouped, in addition to the day.
    pub UsageGrouping {
        Agent = "AGENT": "By agent.",
        Model = "MODEL": "By model: for turns, the last one that was called.",
        Channel = "CHANNEL": "By the channel of the conversation.",
        Cause = "CAUSE": "By what caused the turn.",
    }
}
