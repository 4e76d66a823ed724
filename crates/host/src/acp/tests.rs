//! Only the state machine, on lines as agents write them.

use agent_client_protocol_schema::v1::{ContentBlock, TextContent};
use muster_protocol::{
    event::{Asked, Content, Request, TurnEnd, TurnOutcome},
    plan::Decision,
};
use serde_json::json;

use super::*;

mod bounds;
mod choices;
mod forms;
mod messages;
mod requests;
mod samples;
mod sessions;
mod turns;

/// A scripted agent: lines in, events and lines out.
struct Script {
    machine: Machine,
    fx: Effects,
    /// Instructions of the conversation's next turn.
    instructions: String,
    /// The last inspected output line.
    looked: u64,
}

impl Script {
    /// An agent after a handshake with these capabilities.
    fn new(capabilities: &Value) -> Self {
        let (machine, fx) = (Machine::new(3, IndexMap::new()), Effects::default());
        let mut script = Self { machine, fx, instructions: String::new(), looked: 0 };
        script.machine.greet();
        assert_eq!(script.written()[0]["params"]["clientCapabilities"]["elicitation"], json!({ "form": {} }));
        script.says(
            &json!({ "id": "3.init", "result": { "protocolVersion": 1, "agentCapabilities": capabilities,
            "agentInfo": { "name": "scripted", "version": "2" } } }),
        );
        assert_eq!(script.fx.greeted.take(), Some(Ok(Some("scripted 2".to_owned()))));
        script
    }

    fn plain() -> Self {
        Self::new(&json!({ "loadSession": true, "sessionCapabilities": { "resume": {}, "close": {} } }))
    }

    /// Feeds a line of the agent. The machine is stored and reloaded first, as after a crash.
    fn says(&mut self, line: &Value) {
        self.raw(&line.to_string());
    }

    fn raw(&mut self, line: &str) {
        let kept = serde_json::to_vec(&self.machine).unwrap();
        self.machine = muster_json::from_slice(&kept).unwrap();
        self.machine.line(self.machine.read + 1, line.as_bytes(), &mut self.fx);
    }

    fn update(&mut self, update: &Value) {
        self.says(&json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "s", "update": update } }));
    }

    fn chunk(&mut self, kind: &str, text: &str, id: Option<&str>) {
        let mut update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
        if let Some(id) = id {
            update["messageId"] = id.into();
        }
        self.update(&update);
    }

    fn turn(&mut self, turn_id: i64, session: Option<&str>) {
        let turn = Turn {
            turn_id,
            command_id: turn_id * 10,
            conversation_id: 1,
            session: session.map(str::to_owned),
            instructions: self.instructions.clone(),
            prompt: vec![ContentBlock::Text(TextContent::new("Hi"))],
        };
        self.machine.begin(turn, &mut self.fx);
    }

    /// A turn in a new session, up to its prompt.
    fn prompted() -> Self {
        let mut script = Self::plain();
        script.turn(5, None);
        script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s" } }));
        let written = script.written();
        assert_eq!((&written[1]["method"], &written[1]["id"]), (&"session/prompt".into(), &"3.50".into()));
        script.fx.events.clear();
        script
    }

    /// New output lines. Openings of sessions appear as their purpose.
    fn written(&mut self) -> Vec<Value> {
        let lines: Vec<OutgoingLine> = self.machine.lines(self.looked).cloned().collect();
        self.looked = lines.last().map_or(self.looked, |line| line.seq);
        let shown = lines.into_iter().map(|line| match line.text {
            Text::Plain(text) => muster_json::from_str(&text).unwrap(),
            Text::Session { id, opening, .. } => json!({ "id": id, "opening": opening }),
        });
        shown.collect()
    }

    fn messages(&self) -> Vec<&Content> {
        let messages = self.fx.events.iter().filter_map(|event| match event {
            HostEvent::Message(message) => Some(&message.content),
            _ => None,
        });
        messages.collect()
    }

    fn end(&self) -> &TurnEnd {
        let mut ends = self.fx.events.iter().filter_map(|event| match event {
            HostEvent::TurnEnded(end) => Some(end),
            _ => None,
        });
        ends.next_back().unwrap()
    }

    /// Asserts that each event fits into a frame.
    fn assert_small(&self) {
        for event in &self.fx.events {
            let bytes = serde_json::to_vec(event).unwrap().len();
            assert!(bytes < muster_protocol::LARGEST_FRAME, "{bytes} bytes");
        }
    }

    fn asks(&mut self, id: &Value, call: &Value) {
        let options = json!([
            { "optionId": "ever", "name": "Always", "kind": "allow_always" },
            { "optionId": "once", "name": "Once", "kind": "allow_once" },
            { "optionId": "once2", "name": "Once more", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ]);
        self.says(&json!({ "id": id, "method": "session/request_permission",
            "params": { "sessionId": "s", "toolCall": call, "options": options } }));
    }
}
