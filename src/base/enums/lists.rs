//! How lists are sorted.

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
    /// The sort key of a list that has only these.
    pub ListSort {
        Created = "CREATED": "In the list's own order: as they were created.",
        Name = "NAME": "By name.",
    }
}

text_enum! {
    /// The sort key of a feed of agents.
    pub AgentSort {
        Name = "NAME": "The name.",
        Status = "STATUS": "The status: those that have failed first, then those that run, then the others.",
        Activity = "ACTIVITY": "When something was last said in one of its conversations, latest first.",
        Created = "CREATED": "The time of creation, latest first.",
    }
}

text_enum! {
    /// The sort key of a feed of approvals.
    pub ApprovalSort {
        Risk = "RISK": "Pending ones first, then the highest risk, then what expires first. Without a risk, the severity counts.",
        Expires = "EXPIRES": "What expires first; last what never does.",
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
