//! A conversation's lifecycle as a pure state table.
//!
//! A conversation starts OPEN. PENDING: the agent waits for a person. RESOLVED: settled, until someone writes again.
//! ARCHIVED: closed, until a person reopens it.

use crate::base::{
    enums::ConversationStatus,
    problem::{Code, Problem},
};

/// An event in the life of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusEvent {
    /// Someone writes to the agent.
    Inbound,
    /// The agent, a tool or the service writes.
    Outbound,
    /// The agent asks a person for a decision.
    Asked,
    /// The last decision the agent was waiting for has been made.
    Decided,
    /// A person sets the status.
    Set(ConversationStatus),
}

/// The current state does not allow the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a conversation that is {from} does not allow {event:?}")]
pub struct TransitionError {
    pub from: ConversationStatus,
    pub event: StatusEvent,
}

impl StatusEvent {
    pub const ALL: [Self; 8] = {
        use ConversationStatus::{Archived, Open, Pending, Resolved};
        [
            Self::Inbound,
            Self::Outbound,
            Self::Asked,
            Self::Decided,
            Self::Set(Open),
            Self::Set(Pending),
            Self::Set(Resolved),
            Self::Set(Archived),
        ]
    };

    /// Returns the next state.
    pub fn apply(self, from: ConversationStatus) -> Result<ConversationStatus, TransitionError> {
        use ConversationStatus::{Archived, Open, Pending, Resolved};
        let refused = Err(TransitionError { from, event: self });
        match (self, from) {
            // A message to an archived conversation starts a new one.
            (Self::Inbound, Archived) => refused,
            // The agent waits for the decision, regardless of new messages.
            (Self::Inbound | Self::Set(Open), Pending) => Ok(Pending),
            (Self::Inbound, _) => Ok(Open),
            // The agent may finish its work: its messages are stored, and the state stays.
            (Self::Outbound, from) | (Self::Asked | Self::Decided, from @ Archived) => Ok(from),
            (Self::Asked, _) => Ok(Pending),
            (Self::Decided, Pending) => Ok(Open),
            (Self::Decided, from) => Ok(from),
            (Self::Set(to), from) if to == from => Ok(from),
            // Only a request for a decision makes a conversation wait.
            (Self::Set(Pending), _) => refused,
            (Self::Set(Resolved), Archived) => refused,
            (Self::Set(to @ (Open | Resolved | Archived)), _) => Ok(to),
        }
    }
}

impl From<TransitionError> for Problem {
    fn from(refused: TransitionError) -> Self {
        match refused {
            TransitionError { event: StatusEvent::Set(ConversationStatus::Pending), .. } => Self::invalid_at(
                "/status",
                "NOT_ALLOWED",
                "PENDING can't be set. A conversation is PENDING while its agent waits for a decision.",
            ),
            TransitionError { from, .. } => {
                Self::new(Code::Archived, "The conversation is archived. Reopen it before changing it.")
                    .with("status", from.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let mut table = String::new();
        for from in ConversationStatus::ALL {
            for event in StatusEvent::ALL {
                let outcome = match event.apply(*from) {
                    Ok(to) if to == *from => "stays".to_owned(),
                    Ok(to) => to.to_string(),
                    Err(_) => "refused".to_owned(),
                };
                table.push_str(&format!("{from} {event:?}: {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }
}
