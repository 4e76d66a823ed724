//! An agent's lifecycle as a pure table: which action is allowed in which state, and what follows.
//!
//! STOPPED, ERROR –start→ SPAWNING → RUNNING –pause→ PAUSED –resume→ RUNNING; SPAWNING, RUNNING, PAUSED –stop→
//! STOPPING → STOPPED. The unnamed arrows are reports from the host ([`Report`]); so is every arrow to ERROR.

use muster_protocol::{Command, event::EndReason};

use crate::base::{
    enums::AgentStatus,
    problem::{Code, Problem},
};

/// An action that a person can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start,
    Stop,
    Pause,
    Resume,
}

/// A host's report about an agent's current launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    Started,
    Ended(EndReason),
}

impl Report {
    /// The state that follows. None if the report comes too late.
    pub fn apply(self, from: AgentStatus) -> Option<AgentStatus> {
        use AgentStatus::{Error, Paused, Running, Spawning, Stopped, Stopping};
        match (self, from) {
            (Self::Started, Spawning | Running) => Some(Running),
            (Self::Started, from @ (Paused | Stopping)) => Some(from),
            // This launch was given up, and its host has a STOP for it.
            (Self::Started | Self::Ended(_), Stopped | Error) => None,
            // It was to end, so the reason doesn't matter.
            (Self::Ended(_), Stopping) | (Self::Ended(EndReason::Stopped), _) => Some(Stopped),
            (Self::Ended(_), Spawning | Running | Paused) => Some(Error),
        }
    }
}

/// The effect of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Already in that state: nothing to write or send.
    Stay,
    /// A new state and a command for the host.
    Move(AgentStatus, Command),
}

/// An action that the current state doesn't allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an agent that is {from} can't {action:?}")]
pub struct TransitionError {
    pub from: AgentStatus,
    pub action: Action,
}

impl Action {
    pub const ALL: [Self; 4] = [Self::Start, Self::Stop, Self::Pause, Self::Resume];

    /// The effect of this action in the state `from`.
    ///
    /// # Errors
    /// The state doesn't allow the action.
    pub fn apply(self, from: AgentStatus) -> Result<Transition, TransitionError> {
        use AgentStatus::{Error, Paused, Running, Spawning, Stopped, Stopping};
        match (self, from) {
            (Self::Start, Stopped | Error) => Ok(Transition::Move(Spawning, Command::Launch)),
            (Self::Start, Spawning) | (Self::Stop, Stopping | Stopped) => Ok(Transition::Stay),
            (Self::Stop, Spawning | Running | Paused) => Ok(Transition::Move(Stopping, Command::Stop)),
            // Nothing is running, so the host needs no command. Starting again clears the error.
            (Self::Stop, Error) => Err(TransitionError { from, action: self }),
            (Self::Pause, Running) => Ok(Transition::Move(Paused, Command::Pause)),
            (Self::Pause, Paused) | (Self::Resume, Running) => Ok(Transition::Stay),
            (Self::Resume, Paused) => Ok(Transition::Move(Running, Command::Resume)),
            (Self::Start | Self::Pause | Self::Resume, _) => Err(TransitionError { from, action: self }),
        }
    }
}

impl From<TransitionError> for Problem {
    fn from(error: TransitionError) -> Self {
        let code = match error.action {
            Action::Start => Code::AgentAlreadyRunning,
            _ => Code::AgentNotRunning,
        };
        Self::new(code, format!("The agent's status is {}.", error.from)).with("status", error.from.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::enums::CommandKind;

    #[test]
    fn the_table() {
        let mut table = String::new();
        for from in AgentStatus::ALL {
            for action in Action::ALL {
                let outcome = match action.apply(*from) {
                    Ok(Transition::Stay) => "stays".to_owned(),
                    Ok(Transition::Move(to, command)) => {
                        format!("{to}, sends {}", CommandKind::from(&command))
                    }
                    Err(_) => "refused".to_owned(),
                };
                table.push_str(&format!("{from} {action:?}: {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn the_table_of_reports() {
        let mut table = String::new();
        for from in AgentStatus::ALL {
            let reports = [EndReason::Stopped, EndReason::Exited, EndReason::ShimLost].map(Report::Ended);
            for report in [Report::Started].into_iter().chain(reports) {
                let outcome = report.apply(*from).map_or_else(|| "ignored".to_owned(), |to| to.to_string());
                table.push_str(&format!("{from} {report:?}: {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }
}
