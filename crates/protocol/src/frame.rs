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
//!  │ ◄─────────────── WATCH_LOG ─│  may be lost
//!  │ ── LOG ───────────────────► │  may be lost
//! ```
//!
//! Both sides answer WebSocket pings, and close a connection that was silent for 45 seconds.

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
    /// The first frame: the host's facts and its agents.
    Hello(Hello),
    /// The host's journal has the commands up to this number.
    Received {
        /// The last of them.
        through: i64,
    },
    /// Something happened.
    Event(Event),
    /// The host needs information before it acts.
    Ask {
        /// Identifies the request on this connection.
        id: i64,
        /// The agent.
        agent_id: i64,
        /// The agent's launch.
        generation: i64,
        /// The requested information.
        wanted: PlanRequest,
    },
    /// Text that an agent is writing, for live viewers.
    Delta(Delta),
    /// The machine's load.
    Load(Load),
    /// Lines of an agent's log, while people look at it.
    Log(LogBatch),
}

/// A frame from the control plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "frame", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToHost {
    /// Accepts HELLO: the connection is established.
    Welcome(Welcome),
    /// Rejects HELLO, or ends the connection.
    Refused {
        /// The reason, as a code.
        code: RefusedCode,
        /// The reason and what to do, in words.
        reason: String,
        /// When to reconnect, in seconds. Null: not without a person's help.
        retry_after: Option<i64>,
    },
    /// A command.
    Command(CommandEnvelope),
    /// The events up to this number are stored.
    Ack {
        /// The last of them.
        through: i64,
    },
    /// The response to ASK.
    Told {
        /// The request.
        id: i64,
        /// The response.
        given: PlanResponse,
    },
    /// People look at an agent's log: send new lines as LOG until then.
    WatchLog {
        /// The agent.
        agent_id: i64,
        /// When it ends, by the control plane's clock, unless it is sent again.
        until: i64,
        /// Whether to send the end of the log first: someone begins to look.
        tail: bool,
    },
}

/// Why a connection is refused or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RefusedCode {
    /// The two sides share no protocol version.
    Version,
    /// The token is invalid or no longer valid.
    Token,
    /// The host's journal lacks commands or events that it acknowledged or reported before.
    JournalLost,
    /// The database was restored from an older backup and lacks what the host's journal has.
    Restored,
    /// A newer connection of this host took over.
    Superseded,
    /// A frame was invalid.
    Malformed,
    /// The host reported about agents of other servers.
    Foreign,
    /// An event is missing. Send again from the last acknowledged one.
    Gap,
    /// The service is shutting down. Another replica may answer.
    Stopping,
    /// The service can't reach its database.
    Unavailable,
}

/// The host's first frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The oldest and newest supported protocol version.
    pub versions: [u16; 2],
    /// The machine.
    pub machine: Machine,
    /// Its runtime for agents.
    pub runtime: Runtime,
    /// The version of the container engine.
    pub runtime_version: Option<String>,
    /// The last command in its journal.
    pub commands: i64,
    /// The last event in its journal.
    pub events: i64,
    /// The last event that the journal knows to be acknowledged.
    pub acknowledged: i64,
    /// Its agents.
    pub agents: Vec<Running>,
}

/// A host's runtime for agents.
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

/// An agent on a host.
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
    /// The protocol version to use.
    pub version: u16,
    /// Counts the host's connections. Frames of an older one are refused.
    pub epoch: i64,
    /// The last stored event.
    pub events: i64,
    /// How many bytes of events may await acknowledgement.
    pub window: u32,
    /// The control plane's clock.
    pub time: i64,
    /// The agents that should run here. All others are stopped.
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
    /// The offset of the text in the message, in UTF-8 bytes.
    pub offset: i64,
    /// The text. At most 4 KiB.
    pub text: String,
}

/// Consecutive lines of an agent's log. Empty if the log has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogBatch {
    /// The agent.
    pub agent_id: i64,
    /// When the log was begun, by the host's clock. Lines of another time are of another log.
    pub begun_at: i64,
    /// The number of the first line in the log: 1, 2, 3, ….
    pub position: i64,
    /// The lines. At most 16 KiB of text.
    pub lines: Vec<LogLine>,
}

/// A line of an agent's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// When it was read or written, by the host's clock.
    pub time: i64,
    /// Where it comes from.
    pub source: LogSource,
    /// The text, without known secrets. At most 2 KiB; a longer line is several.
    pub text: String,
}

/// The source of a line in an agent's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LogSource {
    /// The agent's standard error.
    Stderr,
    /// Its launches and their ends.
    Launch,
    /// Refusals of its gate.
    Gate,
    /// Errors of its MCP servers.
    Mcp,
}

/// A machine's load. Null is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Load {
    /// Processor usage, in per cent.
    pub cpu_pct: Option<f64>,
    /// Memory usage, in per cent.
    pub ram_pct: Option<f64>,
    /// The load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// The machine's uptime, in seconds.
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
