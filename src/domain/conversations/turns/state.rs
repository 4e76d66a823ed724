//! A turn's lifecycle as a pure table: what may happen in which state, and what follows.
//!
//! QUEUED → RUNNING, when its host is told what to say ⇄ WAITING_APPROVAL, WAITING_LIMIT → DONE, FAILED or CANCELLED, as the
//! host reports, or INTERRUPTED, when the agent's launch ends first. The last four are final. What the agent never got is QUEUED
//! again when its launch ends, or when a person takes over.

use crate::base::enums::TurnState;

/// What can happen to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Its host gets its prompt.
    Given,
    /// The agent has it.
    Started,
    /// The agent asks a person.
    Asked,
    /// The agent no longer waits for a person.
    Answered,
    /// A call of the agent's model was refused, because of a limit.
    Limited,
    /// The agent may call its model again.
    Freed,
    /// The host reports that the agent has finished.
    Done,
    /// The host reports that it could not be finished.
    Failed,
    /// The host reports that it was cancelled, or a person cancels it before the host has it.
    Cancelled,
    /// The agent's launch has ended.
    Lost,
    /// The agent's launch has ended, or a person has taken over, before the agent got it.
    GivenBack,
}

/// Something that the current state doesn't allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a turn that is {from} does not allow {happening:?}")]
pub struct Refused {
    /// The current state.
    pub from: TurnState,
    /// What would have happened.
    pub happening: Happening,
}

/// Whether nothing can happen to such a turn.
pub const fn is_final(state: TurnState) -> bool {
    use TurnState::{Cancelled, Done, Failed, Interrupted};
    matches!(state, Done | Failed | Cancelled | Interrupted)
}

impl Happening {
    /// Everything that can happen.
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

    /// The state that follows.
    ///
    /// # Errors
    /// The current state doesn't allow it.
    pub fn apply(self, from: TurnState) -> Result<TurnState, Refused> {
        use TurnState::{
            Cancelled, Done, Failed, Interrupted, Queued, Running, WaitingApproval, WaitingLimit,
        };
        let refused = Err(Refused { from, happening: self });
        match (self, from) {
            (_, from) if is_final(from) => refused,
            (Self::Given | Self::Started, Queued) => Ok(Running),
            // A host that was restarted asks again, and says again.
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
            // What no agent has seen waits.
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
            for happening in Happening::ALL {
                let outcome = match happening.apply(*from) {
                    Ok(to) if to == *from => "stays".to_owned(),
                    Ok(to) => to.to_string(),
                    Err(_) => "refused".to_owned(),
                };
                table.push_str(&format!("{from} {happening:?}: {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }
}
