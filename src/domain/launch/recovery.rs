//! Automatic restarts: a pure rule for whether and when an agent that has ended is started again.
//!
//! The rule is applied once, in the transaction of the end, and the result is stored with the status. A job performs
//! due restarts (`running.rs`). Starting, stopping or deleting the agent, and the policy NEVER, cancel the restart.

use std::time::Duration;

use sea_orm::Set;

use crate::{
    base::{
        enums::{AgentStatus, RestartPolicy, StatusReason},
        time::Timestamp,
    },
    core::queue::backoff,
    domain::agents::entity::agents,
};

/// The maximum number of consecutive restarts after failures, because a broken agent would keep its machine busy.
/// Losses don't count: a restart of the machine says nothing about its agents.
const MAX_RESTARTS: i64 = 5;

/// The end of an agent that was not stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentEnd {
    pub reason: StatusReason,
    /// Whether its program ended without an error.
    pub is_clean: bool,
    pub at: Timestamp,
}

/// Consecutive automatic restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RestartCounts {
    /// After failures.
    pub failures: i64,
    /// After its host had lost it.
    pub losses: i64,
}

impl RestartCounts {
    pub fn from_row(agent: &agents::Model) -> Self {
        Self { failures: agent.restarts, losses: agent.losses }
    }

    /// Adds a restart after an end for this reason.
    pub fn and_one(self, reason: Option<StatusReason>) -> Self {
        match reason {
            Some(StatusReason::ShimLost) => Self { losses: self.losses + 1, ..self },
            _ => Self { failures: self.failures + 1, ..self },
        }
    }

    pub const fn all(self) -> i64 {
        self.failures + self.losses
    }

    pub fn store(self, agent: &mut agents::ActiveModel) {
        agent.restarts = Set(self.failures);
        agent.losses = Set(self.losses);
    }
}

/// The consecutive restarts before this end, and the time of the next one. `agent` is the row before the end.
pub(super) fn plan_restart(
    agent: &agents::Model,
    end: AgentEnd,
    now: Timestamp,
) -> (RestartCounts, Option<Timestamp>) {
    if agent.status == AgentStatus::Paused {
        // A person paused it, and a launch would begin with the waiting turns.
        return (RestartCounts::default(), None);
    }
    // After an hour without a failure, the count starts over.
    let has_recovered = agent.started_at.is_some_and(|since| since.plus(Duration::from_hours(1)) <= end.at);
    let tried = if has_recovered { RestartCounts::default() } else { RestartCounts::from_row(agent) };
    let wait =
        if is_restarted(agent.restart_policy, end.is_clean) { wait_before(end.reason, tried) } else { None };
    (tried, wait.map(|wait| now.plus(wait)))
}

const fn is_restarted(policy: RestartPolicy, is_clean: bool) -> bool {
    match policy {
        RestartPolicy::Never => false,
        RestartPolicy::OnFailure => !is_clean,
        RestartPolicy::Always => true,
    }
}

fn wait_before(reason: StatusReason, tried: RestartCounts) -> Option<Duration> {
    use StatusReason::{
        DiskFull, Exited, ImageNotFound, Killed, LineTooLong, NoProtocol, OutOfMemory, ShimLost, SpawnFailed,
        StartTimeout,
    };
    match reason {
        ShimLost => backoff::after((tried.losses + 1).min(MAX_RESTARTS)),
        Exited | Killed | OutOfMemory | SpawnFailed | NoProtocol | LineTooLong | DiskFull | ImageNotFound
        | StartTimeout => backoff::after(tried.failures + 1).filter(|_| tried.failures < MAX_RESTARTS),
        // Other reasons need a person.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_waits_longer_each_time_and_then_for_a_person() {
        let waits = |reason| {
            let of = |times| {
                let tried = (0..times).fold(RestartCounts::default(), |tried, _| tried.and_one(Some(reason)));
                wait_before(reason, tried).map(|wait| wait.as_secs())
            };
            [0, 1, 2, 3, 4, 5, 500].map(of)
        };
        let five = [Some(5), Some(30), Some(120), Some(600), Some(1800)];
        let expected = |end| [five[0], five[1], five[2], five[3], five[4], end, end];
        assert_eq!(waits(StatusReason::Exited), expected(None));
        assert_eq!(waits(StatusReason::ShimLost), expected(Some(1800)));
        let tried = RestartCounts { failures: 4, losses: 500 };
        assert_eq!(
            wait_before(StatusReason::Exited, tried),
            wait_before(StatusReason::Exited, RestartCounts { losses: 0, ..tried })
        );
        for reason in
            [StatusReason::LimitReached, StatusReason::OrganizationStopped, StatusReason::AuthRequired]
        {
            assert_eq!(waits(reason), [None; 7], "{reason}");
        }
    }

    #[test]
    fn an_end_without_an_error_is_a_failure_only_for_always() {
        use RestartPolicy::{Always, Never, OnFailure};
        let meant = |is_clean| [Never, OnFailure, Always].map(|policy| is_restarted(policy, is_clean));
        assert_eq!([meant(false), meant(true)], [[false, true, true], [false, false, true]]);
    }
}
