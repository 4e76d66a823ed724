//! Requests of agents, and their decisions.

use super::UnknownValue;

text_enum! {
    /// The progress of delivering a decision to an agent.
    pub AnswerDelivery {
        Sent = "SENT": "It is on its way to the waiting agent.",
        Direct = "DIRECT": "The waiting request has received it.",
        Turn = "TURN": "No request was waiting: the agent gets it in a turn.",
        None = "NONE": "No request was waiting, and there is nothing to report.",
    }
}

text_enum! {
    /// An approval's state.
    pub ApprovalStatus {
        Pending = "PENDING": "Waiting for a decision.",
        Resolved = "RESOLVED": "Decided.",
        Dismissed = "DISMISSED": "No longer applies.",
        Expired = "EXPIRED": "No decision was made in time.",
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
    /// The subject of an approval.
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
    /// The progress of a question to a member in a chat.
    pub AskState {
        ToAsk = "TO_ASK": "It is to be sent.",
        Asked = "ASKED": "It is there, and waits for an answer.",
        ToClose = "TO_CLOSE": "It is over, and is to say so.",
        Closed = "CLOSED": "It says how it ended, or was never sent.",
    }
}
