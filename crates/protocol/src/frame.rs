//! The frames on a host's WebSocket, each a JSON text.
//!
//! ```text
//! host                     control plane
//!  │ ── HELLO ─────────────────► │
//!  │ ◄──────── WELCOME, REFUSED ─│
//!  │ ◄───────────────── COMMAND ─│  kept until RECEIVED
//!  │ ── RECEIVED ──────────────► │
//!  │ ── EVENT ─────────────────► │  kept until ACK
//!  │ ◄───────────────────── ACK ─│
//!  │ ── ASK ───────────────────► │
//!  │ ◄──────────────────── TOLD ─│
//!  │ ── DELTA, LOAD ───────────► │  may be lost
//! ```
//!
//! Both sides answer WebSocket pings, and close a connection that has been silent for 45 seconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    command::CommandEnvelope,
    event::Event,
    join::Machine,
    plan::{PlanRequest, PlanResponse},
};

/// A frame from a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "frame", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FromHost {
    /// The first frame: what the host is, and what runs there.
    Hello(Hello),
    /// The commands up to this number are in the host's journal.
    Received {
        /// The last of them.
        through: i64,
    },
    /// Something happened.
    Event(Event),
    /// The host needs to know something before it acts.
    Ask {
        /// Identifies the question on this connection.
        id: i64,
        /// The agent.
        agent_id: i64,
        /// The agent's launch.
        generation: i64,
        /// What it needs.
        wanted: PlanRequest,
    },
    /// Text that an agent is writing, for those who watch it.
    Delta(Delta),
    /// How busy the machine is.
    Load(Load),
}

/// A frame from the control plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "frame", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToHost {
    /// The answer to HELLO: the connection stands.
    Welcome(Welcome),
    /// The answer to HELLO, or the last frame: the connection ends.
    Refused {
        /// Why, as a code.
        code: RefusedCode,
        /// Why, and what to do, in words.
        reason: String,
        /// When to come back, in seconds. Null: not without someone's help.
        retry_after: Option<i64>,
    },
    /// Do something.
    Command(CommandEnvelope),
    /// The events up to this number are stored.
    Ack {
        /// The last of them.
        through: i64,
    },
    /// The answer to ASK.
    Told {
        /// The question.
        id: i64,
        /// The answer.
        given: PlanResponse,
    },
}

/// Why a connection is refused or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RefusedCode {
    /// No common version of the protocol.
    Version,
    /// The token is not valid, or no longer.
    Token,
    /// The host's journal lacks what it had acknowledged or reported before.
    JournalLost,
    /// The service has forgotten what the host's journal knows: its database was restored from an older backup.
    Restored,
    /// A newer connection of this host has taken over.
    Superseded,
    /// A frame that is invalid.
    Malformed,
    /// The host reports about agents that are not its own.
    Foreign,
    /// An event was left out. Send again from the last acknowledged one.
    Gap,
    /// The service is stopping. Another replica may answer.
    Stopping,
    /// The service can't reach its database.
    Unavailable,
}

/// What a host says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The oldest and the newest version of the protocol it speaks.
    pub versions: [u16; 2],
    /// The machine.
    pub machine: Machine,
    /// How it runs agents.
    pub runtime: Runtime,
    /// The version of the container engine.
    pub runtime_version: Option<String>,
    /// The last command in its journal.
    pub commands: i64,
    /// The last event in its journal.
    pub events: i64,
    /// The last event of which its journal knows that it was acknowledged.
    pub acknowledged: i64,
    /// The agents it has.
    pub agents: Vec<Running>,
}

/// How a host runs agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Runtime {
    /// Docker Engine.
    Docker,
    /// Podman.
    Podman,
    /// Plain processes.
    Process,
}

/// An agent that a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Running {
    /// The agent.
    pub agent_id: i64,
    /// Its launch.
    pub generation: i64,
}

/// The answer to [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Welcome {
    /// The version of the protocol to speak.
    pub version: u16,
    /// Counts the host's connections. What an older one writes is refused.
    pub epoch: i64,
    /// The last event that is stored.
    pub events: i64,
    /// How many bytes of events may wait for their acknowledgement.
    pub window: u32,
    /// The control plane's time.
    pub time: i64,
    /// The agents that should run here. Any other is stopped.
    pub agents: Vec<Running>,
}

/// Text that an agent is writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// The agent.
    pub agent_id: i64,
    /// Its launch.
    pub generation: i64,
    /// The conversation.
    pub conversation_id: i64,
    /// The message, as in [`crate::event::Message::key`].
    pub message: String,
    /// Whether it is a thought.
    pub thinking: bool,
    /// Where the text begins in the message, in UTF-8 bytes.
    pub offset: i64,
    /// The text. At most 4 KiB.
    pub text: String,
}

/// How busy a machine is. Null is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Load {
    /// Processors in use, in per cent.
    pub cpu_pct: Option<f64>,
    /// Memory in use, in per cent.
    pub ram_pct: Option<f64>,
    /// The load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Since when the machine runs, in seconds.
    pub uptime_seconds: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, HostEvent, event::Message};

    #[test]
    fn frames_are_tagged_json() {
        let order = CommandEnvelope {
            seq: 1,
            id: 7,
            agent_id: 3,
            generation: 2,
            deadline: 9,
            command: Command::Turn { turn_id: 5 },
        };
        let text = serde_json::to_value(ToHost::Command(order.clone())).unwrap();
        assert_eq!(
            text,
            serde_json::json!({
                "frame": "COMMAND", "seq": 1, "id": 7, "agent_id": 3, "generation": 2, "deadline": 9,
                "command": { "kind": "TURN", "turn_id": 5 },
            })
        );
        assert_eq!(serde_json::from_value::<ToHost>(text).unwrap(), ToHost::Command(order));
    }

    #[test]
    fn a_message_is_one_flat_event() {
        let content = crate::event::Content::Text { text: "Hi".to_owned() };
        let message = Message { conversation_id: 1, turn_id: Some(2), key: "1.2".to_owned(), content };
        let event = Event { seq: 1, agent_id: 3, generation: 1, at: 0, what: HostEvent::Message(message) };
        let text = serde_json::to_value(FromHost::Event(event.clone())).unwrap();
        assert_eq!(text["what"]["kind"], "MESSAGE");
        assert_eq!(text["what"]["content"]["text"], "Hi");
        assert_eq!(serde_json::from_value::<FromHost>(text).unwrap(), FromHost::Event(event));
    }
}
