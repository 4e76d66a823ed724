//! An agent's lifecycle as a pure table: which action is allowed in which state, and what follows.
//!
//! STOPPED, ERROR –start→ SPAWNING → RUNNING –pause→ PAUSED –resume→ RUNNING; SPAWNING, RUNNING, PAUSED –stop→
//! STOPPING → STOPPED. The unnamed arrows are reports from the host; they come with the gateway.

use muster_protocol::Command;

use crate::base::{
    enums::AgentStatus,
    problem::{Code, Problem},
};

/// What a person may ask of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Launch it.
    Start,
    /// Stop it.
    Stop,
    /// Stop taking turns.
    Pause,
    /// Take turns again.
    Resume,
}

/// What follows from an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Already in that state: nothing to write or send.
    Stay,
    /// A new state and a command for the host.
    Move(AgentStatus, Command),
}

/// An action that the current state doesn't allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an agent that is {from} can't {action:?}")]
pub struct Refused {
    /// The current state.
    pub from: AgentStatus,
    /// The action that was requested.
    pub action: Action,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::Start, Self::Stop, Self::Pause, Self::Resume];

    /// What this action does in the state `from`.
    ///
    /// # Errors
    /// The state doesn't allow the action.
    pub fn apply(self, from: AgentStatus) -> Result<Step, Refused> {
        use AgentStatus::{Error, Paused, Running, Spawning, Stopped, Stopping};
        match (self, from) {
            (Self::Start, Stopped | Error) => Ok(Step::Move(Spawning, Command::Launch)),
            (Self::Start, Spawning) | (Self::Stop, Stopping | Stopped) => Ok(Step::Stay),
            (Self::Stop, Spawning | Running | Paused) => Ok(Step::Move(Stopping, Command::Stop)),
            // Nothing is running, so there is no host to tell. Starting again clears the error.
            (Self::Stop, Error) => Err(Refused { from, action: self }),
            (Self::Pause, Running) => Ok(Step::Move(Paused, Command::Pause)),
            (Self::Pause, Paused) | (Self::Resume, Running) => Ok(Step::Stay),
            (Self::Resume, Paused) => Ok(Step::Move(Running, Command::Resume)),
            (Self::Start | Self::Pause | Self::Resume, _) => Err(Refused { from, action: self }),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let (code, detail) = match refused.action {
            Action::Start => (Code::AgentAlreadyRunning, format!("The agent is already {}.", refused.from)),
            _ => (Code::AgentNotRunning, format!("The agent is {}.", refused.from)),
        };
        Self::new(code, detail).with("status", refused.from.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::enums::OutboxKind;

    #[test]
    fn the_table() {
        let mut table = String::new();
        for from in AgentStatus::ALL {
            for action in Action::ALL {
                let outcome = match action.apply(*from) {
                    Ok(Step::Stay) => "stays".to_owned(),
                    Ok(Step::Move(to, command)) => format!("{to}, sends {}", OutboxKind::from(&command)),
                    Err(_) => "refused".to_owned(),
                };
                table.push_str(&format!("{from} {action:?}: {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }
}
