//! Calls of Muster's own MCP server.

use muster_protocol::{event::Content, plan::Decision};

use super::{Agent, Decided};
use crate::{journal::Closed, mcp::Call};

impl Agent {
    pub(super) async fn call(&mut self, call: Call) -> Result<(), Closed> {
        self.shared.journal.room().await?;
        match call {
            Call::Ask { conversation_id, asked, decided } => {
                if let Some(key) = self.record.machine.ask_own(conversation_id, asked, &mut self.effects) {
                    self.waiting.retain(|_, waits| !waits.is_closed());
                    self.waiting.insert(key, decided);
                }
            }
            Call::File { conversation_id, content, sent } => {
                self.send_file(conversation_id, content);
                self.commit().await?;
                let _ = sent.send(());
            }
        }
        Ok(())
    }

    fn send_file(&mut self, conversation_id: i64, content: Content) {
        let key = self.record.machine.own_name();
        self.effects.events.push(self.record.machine.message(conversation_id, key, content));
    }

    /// Gives a decision to the call that waits for it, and says whether one does. It is reported afterwards: if the host
    /// is killed in between, the agent may read the answer twice, but it is never lost.
    pub(super) fn hand_over(&mut self, request: &str, (decision, by): (Decision, Option<String>)) -> bool {
        let decided: Decided = (decision, by);
        self.waiting.remove(request).is_some_and(|waits| waits.send(decided).is_ok())
    }
}
