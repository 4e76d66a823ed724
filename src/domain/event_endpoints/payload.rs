//! The payloads of events: ids and a link, never content, so that a receiver reads the record with its own rights, in its
//! current state. `schema/events.json` has their JSON Schema.
//!
//! Receivers rely on it: within a version, types and fields are only added. Any other change is a new version in [`SCHEMA_ID`].

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::base::{
    enums::EventType,
    problem::{Problem, Result},
    time::Timestamp,
};

/// Names the schema, and with it the version of the payloads.
const SCHEMA_ID: &str = "urn:muster:events:1";

/// An event: its type and its data. All numbers are ids in `organization_id`, except `seq`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum Event {
    /// An agent has failed for the first time, or stays down.
    #[serde(rename = "agent.failed")]
    AgentFailed {
        organization_id: i64,
        agent_id: i64,
        /// The agent in the panel.
        url: String,
    },
    /// An agent, or the service, waits for a decision.
    #[serde(rename = "approval.raised")]
    ApprovalRaised {
        organization_id: i64,
        approval_id: i64,
        agent_id: Option<i64>,
        conversation_id: Option<i64>,
        /// The approval in the panel.
        url: String,
    },
    /// An approval no longer waits: it was decided or dismissed, or has expired.
    #[serde(rename = "approval.decided")]
    ApprovalDecided {
        organization_id: i64,
        approval_id: i64,
        agent_id: Option<i64>,
        conversation_id: Option<i64>,
        /// The approval in the panel.
        url: String,
    },
    /// A person or an agent has written a text, a file or a voice message.
    #[serde(rename = "conversation.message_added")]
    MessageAdded {
        organization_id: i64,
        agent_id: i64,
        conversation_id: i64,
        message_id: i64,
        /// The message's position in the conversation.
        seq: i64,
        /// The conversation in the panel.
        url: String,
    },
    /// An agent has finished its work on messages, has failed at it, or was cancelled.
    #[serde(rename = "turn.ended")]
    TurnEnded {
        organization_id: i64,
        agent_id: i64,
        conversation_id: i64,
        turn_id: i64,
        /// The conversation in the panel.
        url: String,
    },
    /// A channel was switched off by the service.
    #[serde(rename = "channel.deactivated")]
    ChannelDeactivated {
        organization_id: i64,
        channel_id: i64,
        agent_id: i64,
        /// The channel in the panel.
        url: String,
    },
    /// An agent, or the organization, has reached a spending limit.
    #[serde(rename = "spending.reached")]
    SpendingReached {
        organization_id: i64,
        /// The agent that could not go on.
        agent_id: Option<i64>,
        /// The request to allow more.
        approval_id: i64,
        /// The approval in the panel.
        url: String,
    },
}

impl Event {
    pub(super) const fn kind(&self) -> EventType {
        match self {
            Self::AgentFailed { .. } => EventType::AgentFailed,
            Self::ApprovalRaised { .. } => EventType::ApprovalRaised,
            Self::ApprovalDecided { .. } => EventType::ApprovalDecided,
            Self::MessageAdded { .. } => EventType::MessageAdded,
            Self::TurnEnded { .. } => EventType::TurnEnded,
            Self::ChannelDeactivated { .. } => EventType::ChannelDeactivated,
            Self::SpendingReached { .. } => EventType::SpendingReached,
        }
    }

    /// The record whose events are sent in their order.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::AgentFailed { agent_id, .. } => format!("agent:{agent_id}"),
            Self::ApprovalRaised { approval_id, .. }
            | Self::ApprovalDecided { approval_id, .. }
            | Self::SpendingReached { approval_id, .. } => format!("approval:{approval_id}"),
            Self::MessageAdded { conversation_id, .. } | Self::TurnEnded { conversation_id, .. } => {
                format!("conversation:{conversation_id}")
            }
            Self::ChannelDeactivated { channel_id, .. } => format!("channel:{channel_id}"),
        }
    }

    /// `data`, as it is stored.
    pub(super) fn data(&self) -> Result<Value> {
        let mut event = serde_json::to_value(self).map_err(Problem::internal)?;
        Ok(event["data"].take())
    }
}

/// The body of a request.
pub(super) fn write_body(kind: EventType, at: Timestamp, data: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(&json!({ "type": kind, "timestamp": at, "data": data })).map_err(Problem::internal)
}

/// The JSON Schema of all payloads: `schema/events.json`.
#[must_use]
pub fn schema() -> Value {
    /// The body of a request to an event endpoint.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "described, and never made")]
    struct EventPayload {
        /// When it happened (RFC 3339).
        timestamp: String,
        #[serde(flatten)]
        event: Event,
    }
    let mut schema = schemars::schema_for!(EventPayload).to_value();
    schema["$id"] = json!(SCHEMA_ID);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_name_in_the_schema_and_in_payloads() {
        let (url, some) = (String::new(), Some(1));
        let (agent_id, organization_id, approval_id, conversation_id) = (1, 1, 1, 1);
        let (agent, conversation) = (some, some);
        let (message_id, seq, turn_id, channel_id) = (1, 1, 1, 1);
        let events = [
            Event::AgentFailed { organization_id, agent_id, url: url.clone() },
            Event::ApprovalRaised {
                organization_id,
                approval_id,
                agent_id: agent,
                conversation_id: conversation,
                url: url.clone(),
            },
            Event::ApprovalDecided {
                organization_id,
                approval_id,
                agent_id: agent,
                conversation_id: conversation,
                url: url.clone(),
            },
            Event::MessageAdded {
                organization_id,
                agent_id,
                conversation_id,
                message_id,
                seq,
                url: url.clone(),
            },
            Event::TurnEnded { organization_id, agent_id, conversation_id, turn_id, url: url.clone() },
            Event::ChannelDeactivated { organization_id, channel_id, agent_id, url: url.clone() },
            Event::SpendingReached { organization_id, agent_id: agent, approval_id, url },
        ];
        let kinds: Vec<_> = events.iter().map(Event::kind).collect();
        assert_eq!(kinds, EventType::ALL);
        let schema = schema().to_string();
        for event in &events {
            let written = serde_json::to_value(event).unwrap();
            assert_eq!(written["type"], event.kind().as_str());
            assert!(schema.contains(&format!("\"{}\"", event.kind())), "{}", event.kind());
        }
    }
}
