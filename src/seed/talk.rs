//! The messages of one conversation: turns with a question, thoughts, tool calls and an answer.

use muster_corpus::{Facts, Random, Topic};
use serde_json::{Value, json};

use crate::base::enums::{MessageKind, MessageRole};

/// A message without an id.
pub struct Draft {
    /// The index of its conversation in the batch.
    pub conversation: usize,
    /// Its number in the conversation.
    pub seq: i64,
    /// The number of its turn in the conversation. None: it belongs to no turn.
    pub turn: Option<u64>,
    pub role: MessageRole,
    pub kind: MessageKind,
    /// The content, depending on the kind.
    pub content: Value,
    /// Whether it went through the conversation's channel.
    pub outside: bool,
    /// Its delivery: status, attempts, error.
    pub delivery: Option<(&'static str, i64, Option<&'static str>)>,
    /// When it was written.
    pub at: i64,
}

/// A conversation being generated.
pub struct Talk {
    /// Its index in the batch.
    pub place: usize,
    pub topic: &'static Topic,
    /// Whether it has an external contact.
    pub outside: bool,
    /// Its own generator, so that conversations don't depend on each other.
    pub random: Random,
    /// The number of the last message.
    pub seq: i64,
    /// The number of the last turn.
    pub turns: u64,
    /// When that was written.
    pub at: i64,
    /// No message is later than this.
    pub until: i64,
    /// Milliseconds between two messages, on average.
    pub pace: i64,
}

impl Talk {
    /// One turn: a question, the agent's work, and an answer.
    pub fn turn(&mut self, out: &mut Vec<Draft>) {
        self.turns += 1;
        let facts = Facts::new(&mut self.random);
        let topic = self.topic;
        let ask = facts.fill(self.random.pick(topic.asks));
        match self.random.below(40) {
            0 => self.push_message(out, MessageRole::User, MessageKind::Voice, json!({ "transcript": ask })),
            1 => {
                let caption = facts.fill("Here is the file about <order>.");
                self.push_message(out, MessageRole::User, MessageKind::File, json!({ "caption": caption }));
            }
            _ => {
                self.push_message(
                    out,
                    MessageRole::User,
                    MessageKind::Text,
                    json!({ "text": ask, "format": "plain" }),
                );
            }
        }
        if self.random.chance(35) {
            let thought = facts.fill(self.random.pick(topic.thoughts));
            self.push_message(out, MessageRole::Assistant, MessageKind::Thinking, json!({ "text": thought }));
        }
        for _ in 0..self.random.weighted(&[(45, 0), (40, 1), (15, 2)]) {
            self.call(out, &facts);
        }
        if self.random.chance(1) {
            let text = "The model did not answer in time; the turn is tried again.";
            let content = json!({ "code": "MODEL_TIMEOUT", "text": text });
            self.push_message(out, MessageRole::System, MessageKind::Error, content);
        }
        let answer = facts.fill(self.random.pick(topic.answers));
        self.push_message(
            out,
            MessageRole::Assistant,
            MessageKind::Text,
            json!({ "text": answer, "format": "markdown" }),
        );
    }

    /// A tool call and its result.
    fn call(&mut self, out: &mut Vec<Draft>, facts: &Facts) {
        let (tool, input, output) = self.random.pick(self.topic.tools);
        let call_id = format!("call_{:012x}", self.random.number() >> 16);
        let call = json!({ "tool": tool, "call_id": call_id, "input": parse(&facts.fill(input)) });
        self.push_message(out, MessageRole::Assistant, MessageKind::ToolCall, call);
        let is_error = self.random.chance(4);
        let output = if is_error {
            Value::from("The service did not answer within 10 seconds.")
        } else {
            parse(&facts.fill(output))
        };
        let result = json!({ "call_id": call_id, "output": output, "is_error": is_error });
        self.push_message(out, MessageRole::Tool, MessageKind::ToolResult, result);
    }

    /// The message of an approval. Returns its number.
    pub fn push_approval(&mut self, out: &mut Vec<Draft>, approval: i64) -> i64 {
        self.push_message(
            out,
            MessageRole::Assistant,
            MessageKind::Approval,
            json!({ "approval_id": approval }),
        );
        self.seq
    }

    fn push_message(&mut self, out: &mut Vec<Draft>, role: MessageRole, kind: MessageKind, content: Value) {
        self.seq += 1;
        let step = self.pace * self.random.between(50, 150) / 100;
        self.at = (self.at + step).min(self.until);
        let outside = self.outside
            && match role {
                MessageRole::User => true,
                MessageRole::Assistant => kind == MessageKind::Text,
                MessageRole::System | MessageRole::Tool => false,
            };
        let sent = outside && role == MessageRole::Assistant;
        let delivery = sent.then(|| {
            self.random.weighted(&[
                (60, ("SENT", 1, None)),
                (20, ("DELIVERED", 1, None)),
                (15, ("READ", 1, None)),
                (3, ("SENT", 2, None)),
                (2, ("FAILED", 8, Some("The connection timed out."))),
            ])
        });
        let (conversation, seq, at) = (self.place, self.seq, self.at);
        let turn = (kind != MessageKind::Approval).then_some(self.turns);
        out.push(Draft { conversation, seq, turn, role, kind, content, outside, delivery, at });
    }
}

fn parse(json: &str) -> Value {
    muster_json::from_str(json).unwrap_or_else(|_| Value::from(json))
}
