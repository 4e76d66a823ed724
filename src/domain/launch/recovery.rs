//! Agents come back: whether and when an agent that has ended is started again, as a pure rule.
//!
//! It is applied once, in the transaction of the end, and the answer is stored with the status. A job starts what is due
//! (`running.rs`). Starting, stopping or deleting the agent, and the policy NEVER, take it back.

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

/// How often an agent is started again in a row after failures: a broken one would keep its machine busy. Losses don't count: a
/// machine that restarts says nothing about its agents.
const MOST: i64 = 5;

/// How an agent ended that was not stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub reason: StatusReason,
    /// Whether its program ended without an error.
    pub is_clean: bool,
    pub at: Timestamp,
}

/// How often the service has started an agent in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// After failures.
    pub failures: i64,
    /// After its host had lost it.
    pub losses: i64,
}

impl Tries {
    pub fn of(agent: &agents::Model) -> Self {
        Self { failures: agent.restarts, losses: agent.losses }
    }

    /// With one that follows an end for this reason.
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

/// How often the agent was started again in a row until it ended, and when it is started next. `agent` is as it was before.
pub(super) fn after(agent: &agents::Model, end: End, now: Timestamp) -> (Tries, Option<Timestamp>) {
    if agent.status == AgentStatus::Paused {
        // A person said that it takes no turns, and a launch would begin with those that wait.
        return (Tries::default(), None);
    }
    // The next failure is then the first one.
    let has_recovered = agent.started_at.is_some_and(|since| since.plus(Duration::from_hours(1)) <= end.at);
    let tried = if has_recovered { Tries::default() } else { Tries::of(agent) };
    let wait = if is_meant(agent.restart_policy, end.is_clean) { wait(end.reason, tried) } else { None };
    (tried, wait.map(|wait| now.plus(wait)))
}

const fn is_meant(policy: RestartPolicy, is_clean: bool) -> bool {
    match policy {
        RestartPolicy::Never => false,
        RestartPolicy::OnFailure => !is_clean,
        RestartPolicy::Always => true,
    }
}

fn wait(reason: StatusReason, tried: Tries) -> Option<Duration> {
    use StatusReason::{
        DiskFull, Exited, ImageNotFound, Killed, LineTooLong, NoProtocol, OutOfMemory, ShimLost, SpawnFailed,
        StartTimeout,
    };
    match reason {
        ShimLost => backoff::after((tried.losses + 1).min(MOST)),
        Exited | Killed | OutOfMemory | SpawnFailed | NoProtocol | LineTooLong | DiskFull | ImageNotFound
        | StartTimeout => backoff::after(tried.failures + 1).filter(|_| tried.failures < MOST),
        // All else that keeps an agent down needs a person.
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
                let tried = (0..times).fold(Tries::default(), |tried, _| tried.and_one(Some(reason)));
                wait(reason, tried).map(|wait| wait.as_secs())
            };
            [0, 1, 2, 3, 4, 5, 500].map(of)
        };
        let five = [Some(5), Some(30), Some(120), Some(600), Some(1800)];
        let expected = |end| [five[0], five[1], five[2], five[3], five[4], end, end];
        assert_eq!(waits(StatusReason::Exited), expected(None));
        assert_eq!(waits(StatusReason::ShimLost), expected(Some(1800)));
        let tried = Tries { failures: 4, losses: 500 };
        assert_eq!(
            wait(StatusReason::Exited, tried),
            wait(StatusReason::Exited, Tries { losses: 0, ..tried })
        );
        for reason in
            [StatusReason::LimitReached, StatusReason::OrganizationStopped, StatusReason::AuthRequired]
        {
            assert_eq!(waits(reason), [None; 7], "{reason}");
        }
    }

    #[test]
    fn an_end_without_an_error_is_a_failure_for_always_alone() {
        use RestartPolicy::{Always, Never, OnFailure};
        let meant = |is_clean| [Never, OnFailure, Always].map(|policy| is_meant(policy, is_clean));
        assert_eq!([meant(false), meant(true)], [[false, true, true], [false, false, true]]);
    }
}
