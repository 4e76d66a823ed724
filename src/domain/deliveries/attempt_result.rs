//! Interprets the vendor's answer to an attempt: for the part, and for its channel.

use std::time::Duration;

use muster_channels::{Failure, Receipt, Scope, Traits};

use crate::{
    base::enums::{DeliveryCode, InactiveReason},
    core::queue::{Outcome, backoff},
};

/// The result of an attempt to send a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    /// The vendor accepted it.
    Sent(Receipt),
    /// To be tried again.
    Later {
        wait: Duration,
        /// Whether the whole channel waits, not only the part.
        is_for_all: bool,
        /// Whether it counts as an attempt.
        counts: bool,
        why: String,
    },
    /// Not tried again unless a person asks for it.
    Failed(DeliveryCode, String),
    /// Like `Failed`, but without a call to the vendor, so that it says nothing about the channel.
    Unsent(DeliveryCode, String),
    /// To be sent to another target at once.
    Moved(String),
    /// The channel must be switched off; the part waits.
    Channel(InactiveReason, String),
    /// Unknown: the vendor can be asked whether it has the part.
    Ask(String),
}

impl AttemptResult {
    /// The outcome for the queue.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Sent(_) => Outcome::Done,
            Self::Later { why, .. } | Self::Channel(_, why) | Self::Ask(why) => Outcome::Later(why.clone()),
            Self::Failed(_, why) | Self::Unsent(_, why) => Outcome::GivenUp(why.clone()),
            Self::Moved(_) => Outcome::Later("The chat has moved.".to_owned()),
        }
    }
}

/// The remedies for a lost answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeatable {
    /// Sending it again has its effect once.
    pub is_idempotent: bool,
    /// The vendor can be asked what became of it.
    pub reconciles: bool,
}

impl Repeatable {
    /// Of a message's part, or of an action.
    pub(super) fn of(action: Option<&str>, facts: &Traits) -> Self {
        match action {
            None => Self { is_idempotent: facts.idempotent_send, reconciles: facts.reconciles },
            Some(name) => {
                let is_idempotent = facts.action(name).is_some_and(|action| action.is_idempotent);
                Self { is_idempotent, reconciles: false }
            }
        }
    }
}

/// Interprets an answer. `attempts` includes this one.
pub(super) fn interpret(
    answer: Result<Receipt, Failure>,
    attempts: i64,
    repeatable: Repeatable,
) -> AttemptResult {
    let failure = match answer {
        Ok(receipt) => return AttemptResult::Sent(receipt),
        Err(failure) => failure,
    };
    let why = failure.to_string();
    match failure {
        Failure::NotSent(_) | Failure::Taken(_) => retry_or_give_up(attempts, why),
        Failure::RateLimited { wait, scope, .. } => AttemptResult::Later {
            wait: backoff::asked_for(wait),
            is_for_all: scope == Scope::Channel,
            counts: false,
            why,
        },
        Failure::Unknown(_) if repeatable.is_idempotent => retry_or_give_up(attempts, why),
        Failure::Unknown(_) if repeatable.reconciles => AttemptResult::Ask(why),
        Failure::Unknown(_) => AttemptResult::Failed(DeliveryCode::UnknownOutcome, why),
        Failure::Refused(_) | Failure::NotPublic(_) => AttemptResult::Failed(DeliveryCode::Refused, why),
        Failure::TargetGone(_) => AttemptResult::Failed(DeliveryCode::TargetGone, why),
        Failure::TargetMoved { to } => AttemptResult::Moved(to),
        Failure::Credentials(_) => AttemptResult::Channel(InactiveReason::AuthFailed, why),
        Failure::Gone(_) => AttemptResult::Channel(InactiveReason::Gone, why),
    }
}

/// Another attempt, unless this was the last one.
fn retry_or_give_up(attempts: i64, why: String) -> AttemptResult {
    match backoff::after(attempts) {
        Some(wait) => AttemptResult::Later { wait, is_for_all: false, counts: true, why },
        None => AttemptResult::Failed(DeliveryCode::GaveUp, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDEMPOTENT: Repeatable = Repeatable { is_idempotent: true, reconciles: false };
    const RECONCILING: Repeatable = Repeatable { is_idempotent: false, reconciles: true };
    const ONCE: Repeatable = Repeatable { is_idempotent: false, reconciles: false };

    fn unknown() -> Result<Receipt, Failure> {
        Err(Failure::Unknown("The answer was lost.".into()))
    }

    #[test]
    fn unknown_outcomes_are_retried_only_where_that_is_harmless() {
        assert!(matches!(interpret(unknown(), 1, IDEMPOTENT), AttemptResult::Later { counts: true, .. }));
        assert!(matches!(interpret(unknown(), 1, RECONCILING), AttemptResult::Ask(_)));
        let failed = interpret(unknown(), 1, ONCE);
        assert!(matches!(failed, AttemptResult::Failed(DeliveryCode::UnknownOutcome, _)), "{failed:?}");
        let slack = muster_channels::traits(muster_channels::Kind::Slack);
        let of = |action| Repeatable::of(action, slack);
        assert!(!of(None).is_idempotent && of(None).reconciles);
        assert!(of(Some("react")).is_idempotent && !of(Some("react")).reconciles);
        assert!(!of(Some("of a later version")).is_idempotent);
    }

    #[test]
    fn attempts_end() {
        let result_of =
            |attempts| interpret(Err(Failure::NotSent("No answer.".into())), attempts, IDEMPOTENT);
        for (attempts, expected) in (1..).zip(backoff::WAITS) {
            assert!(
                matches!(result_of(attempts), AttemptResult::Later { wait, .. } if wait == expected),
                "{attempts}"
            );
        }
        assert!(matches!(result_of(8), AttemptResult::Failed(DeliveryCode::GaveUp, _)));
    }

    #[test]
    fn waiting_for_a_limit_is_not_an_attempt() {
        let limited =
            |scope| Failure::RateLimited { wait: Duration::from_secs(7), scope, cause: "Slow".into() };
        let result_of = |scope| interpret(Err(limited(scope)), 8, ONCE);
        assert!(matches!(
            result_of(Scope::Channel),
            AttemptResult::Later { is_for_all: true, counts: false, .. }
        ));
        assert!(matches!(
            result_of(Scope::Target),
            AttemptResult::Later { is_for_all: false, counts: false, .. }
        ));
    }

    #[test]
    fn lost_credentials_switch_the_channel_off() {
        let result_of = |failure| interpret(Err(failure), 1, IDEMPOTENT);
        let lost = result_of(Failure::Credentials("401".into()));
        assert_eq!(lost, AttemptResult::Channel(InactiveReason::AuthFailed, "401".to_owned()));
        assert!(matches!(
            result_of(Failure::Gone("410".into())),
            AttemptResult::Channel(InactiveReason::Gone, _)
        ));
        assert!(matches!(
            result_of(Failure::TargetGone("404".into())),
            AttemptResult::Failed(DeliveryCode::TargetGone, _)
        ));
    }
}
