//! Events of an organization, which its event endpoints get.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};

use super::UnknownValue;

text_enum! {
    /// The type of an event: `agent.failed`, `approval.raised`, `approval.decided`, `conversation.message_added`,
    /// `turn.ended`, `channel.deactivated` or `spending.reached`. A scalar, because GraphQL names can't contain dots.
    pub scalar EventType {
        AgentFailed = "agent.failed": "An agent has failed for the first time, or stays down.",
        ApprovalRaised = "approval.raised": "An agent, or the service, waits for a decision.",
        ApprovalDecided = "approval.decided": "An approval no longer waits: it was decided or dismissed, or has expired.",
        MessageAdded = "conversation.message_added": "A person or an agent has written a text, a file or a voice message.",
        TurnEnded = "turn.ended": "An agent has finished its work on messages, has failed at it, or was cancelled.",
        ChannelDeactivated = "channel.deactivated": "A channel was switched off by the service.",
        SpendingReached = "spending.reached": "An agent, or the organization, has reached a spending limit.",
    }
}

text_enum! {
    /// The progress of sending an event to an endpoint.
    pub EventDeliveryStatus {
        Pending = "PENDING": "To be sent, perhaps not for the first time.",
        Waiting = "WAITING": "The endpoint is off. Once it is on again, the event is sent.",
        Sent = "SENT": "The endpoint accepted it.",
        Failed = "FAILED": "The endpoint did not accept it. It can be sent again.",
    }
}
