//! News of changes, for subscribers.

use tokio::sync::broadcast;

use crate::base::ids::{AgentId, ApprovalId, ConversationId, MessageId, OrgId};

/// A change that subscribers hear of after its commit. Ids only: what a subscriber may see is read for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An agent's record changed.
    Agent(OrgId, AgentId),
    /// A conversation of an agent began, or its record changed.
    Conversation(OrgId, AgentId, ConversationId),
    /// A message was added to a conversation or changed in it.
    Message(OrgId, ConversationId, MessageId),
    /// An approval was raised or decided.
    Approval(OrgId, ApprovalId),
}

/// Hands events to whoever has subscribed.
pub struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::channel(1024).0)
    }
}

impl Events {
    /// Tells subscribers of a change.
    pub fn publish(&self, event: Event) {
        // Nobody listening is no failure.
        let _ = self.0.send(event);
    }

    /// Changes from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
