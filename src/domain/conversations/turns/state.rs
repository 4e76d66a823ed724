//! A turn's lifecycle as a pure state table.
//!
//! QUEUED → RUNNING, when its host gets the prompt ⇄ WAITING_APPROVAL, WAITING_LIMIT → DONE, FAILED or CANCELLED, as
//! the host reports, or INTERRUPTED, when the agent's launch ends first. The last four are final. A turn that the agent
//! never got is QUEUED again when its launch ends, or when a person takes over.

use crate::base::enums::TurnState;

/// An event in the life of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateEvent {
    /// The host gets the prompt.
    Given,
    /// The agent has received it.
    Started,
    /// The agent asks a person.
    Asked,
    /// The agent no longer waits for a person.
    Answered,
    /// A limit refused a model call of the agent.
    Limited,
    /// The agent may call its model again.
    Freed,
    /// The host reports that the agent has finished.
    Done,
    /// The host reports that the agent could not finish.
    Failed,
    /// The host reports the cancellation, or a person cancels the turn before the host has it.
    Cancelled,
    /// The agent's launch has ended.
    Lost,
    /// The agent's launch has ended, or a person has taken over, before the agent got it.
    GivenBack,
}

/// The current state does not allow the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a turn that is {from} does not allow {event:?}")]
pub struct TransitionError {
    pub from: TurnState,
    pub event: StateEvent,
}

/// Whether a turn in this state has ended.
pub const fn is_final(state: TurnState) -> bool {
    use TurnState::{Cancelled, Done, Failed, Interrupted};
    matches!(state, Done | Failed | Cancelled | Interrupted)
}

impl StateEvent {
    #[cfg(test)]
    const ALL: [Self; 11] = [
        Self::Given,
        Self::Started,
        Self::Asked,
        Self::Answered,
        Self::Limited,
        Self::Freed,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Lost,
        Self::GivenBack,
    ];

    /// Returns the next state.
    pub fn apply(self, from: TurnState) -> Result<TurnState, TransitionError> {
        use TurnState::{
            Cancelled, Done, Failed, Interrupted, Queued, Running, WaitingApproval, WaitingLimit,
        };
        let refused = Err(TransitionError { from, event: self });
        match (self, from) {
            (_, from) if is_final(from) => refused,
            (Self::Given | Self::Started, Queued) => Ok(Running),
            // A restarted host asks and reports again.
            (Self::Given | Self::Started, from) => Ok(from),
            (Self::Asked, Running | WaitingApproval) => Ok(WaitingApproval),
            (Self::Answered, WaitingApproval) => Ok(Running),
            // An agent that waits for a person may give up because of a limit.
            (Self::Limited, Running | WaitingApproval | WaitingLimit) => Ok(WaitingLimit),
            (Self::Freed, WaitingLimit) => Ok(Running),
            (Self::Asked | Self::Answered | Self::Limited | Self::Freed, _) => refused,
            (Self::Done, _) => Ok(Done),
            (Self::Failed, _) => Ok(Failed),
            (Self::Cancelled, _) => Ok(Cancelled),
            // A turn that no agent has received waits.
            (Self::Lost, Queued) | (Self::GivenBack, _) => Ok(Queued),
            (Self::Lost, _) => Ok(Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let mut table = String::new();
        for from in TurnState::ALL {
            for event in StateEvent::ALL {
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
