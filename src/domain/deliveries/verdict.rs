//! What an attempt means: for the part, and for its channel.

use std::time::Duration;

use muster_channels::{Failure, Receipt, Scope};

use crate::{
    base::enums::{DeliveryCode, InactiveReason},
    core::queue::{Outcome, backoff},
};

/// What becomes of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The vendor has it.
    Sent(Receipt),
    /// Tried again after this.
    Later {
        /// How long.
        wait: Duration,
        /// Whether the whole channel waits.
        is_for_all: bool,
        /// Whether it counts as an attempt.
        counts: bool,
        /// Why.
        why: String,
    },
    /// Never, unless a person asks for it.
    Failed(DeliveryCode, String),
    /// The same, but the vendor was not asked, so it says nothing about the channel.
    Unsent(DeliveryCode, String),
    /// Sent again at once, to another target.
    Moved(String),
    /// The channel is over for now; the part waits.
    Channel(InactiveReason, String),
    /// No one knows, but the vendor may.
    Ask(String),
}

impl Verdict {
    /// The outcome of the attempt.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Sent(_) => Outcome::Done,
            Self::Later { why, .. } | Self::Channel(_, why) | Self::Ask(why) => Outcome::Later(why.clone()),
            Self::Failed(_, why) | Self::Unsent(_, why) => Outcome::GivenUp(why.clone()),
            Self::Moved(_) => Outcome::Later("The chat has moved.".to_owned()),
        }
    }
}

/// What an answer means. `attempts` counts this one; `is_idempotent`, `reconciles`: what the vendor can do.
pub(super) fn judge(
    answer: Result<Receipt, Failure>,
    attempts: i64,
    is_idempotent: bool,
    reconciles: bool,
) -> Verdict {
    let failure = match answer {
        Ok(receipt) => return Verdict::Sent(receipt),
        Err(failure) => failure,
    };
    let why = failure.to_string();
    match failure {
        Failure::NotSent(_) | Failure::Taken(_) => again(attempts, why),
        Failure::RateLimited { wait, scope, .. } => Verdict::Later {
            wait: backoff::asked_for(wait),
            is_for_all: scope == Scope::Channel,
            counts: false,
            why,
        },
        Failure::Unknown(_) if is_idempotent => again(attempts, why),
        Failure::Unknown(_) if reconciles => Verdict::Ask(why),
        Failure::Unknown(_) => Verdict::Failed(DeliveryCode::UnknownOutcome, why),
        Failure::Refused(_) => Verdict::Failed(DeliveryCode::Refused, why),
        Failure::TargetGone(_) => Verdict::Failed(DeliveryCode::TargetGone, why),
        Failure::TargetMoved { to } => Verdict::Moved(to),
        Failure::Credentials(_) => Verdict::Channel(InactiveReason::AuthFailed, why),
        Failure::Gone(_) => Verdict::Channel(InactiveReason::Gone, why),
    }
}

/// Another attempt, unless there were enough.
fn again(attempts: i64, why: String) -> Verdict {
    match backoff::after(attempts) {
        Some(wait) => Verdict::Later { wait, is_for_all: false, counts: true, why },
        None => Verdict::Failed(DeliveryCode::GaveUp, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown() -> Result<Receipt, Failure> {
        Err(Failure::Unknown("The answer was lost.".into()))
    }

    #[test]
    fn what_is_unknown_is_never_sent_twice_unless_that_is_harmless() {
        assert!(matches!(judge(unknown(), 1, true, false), Verdict::Later { counts: true, .. }));
        assert!(matches!(judge(unknown(), 1, false, true), Verdict::Ask(_)));
        let failed = judge(unknown(), 1, false, false);
        assert!(matches!(failed, Verdict::Failed(DeliveryCode::UnknownOutcome, _)), "{failed:?}");
    }

    #[test]
    fn attempts_end() {
        let of = |attempts| judge(Err(Failure::NotSent("No answer.".into())), attempts, true, false);
        for (attempts, expected) in (1..).zip(backoff::WAITS) {
            assert!(matches!(of(attempts), Verdict::Later { wait, .. } if wait == expected), "{attempts}");
        }
        assert!(matches!(of(8), Verdict::Failed(DeliveryCode::GaveUp, _)));
    }

    #[test]
    fn waiting_for_a_limit_is_no_attempt() {
        let limited =
            |scope| Failure::RateLimited { wait: Duration::from_secs(7), scope, cause: "Slow".into() };
        let of = |scope| judge(Err(limited(scope)), 8, false, false);
        assert!(matches!(of(Scope::Channel), Verdict::Later { is_for_all: true, counts: false, .. }));
        assert!(matches!(of(Scope::Target), Verdict::Later { is_for_all: false, counts: false, .. }));
    }

    #[test]
    fn lost_credentials_are_the_channels_matter() {
        let of = |failure| judge(Err(failure), 1, true, false);
        let lost = of(Failure::Credentials("401".into()));
        assert_eq!(lost, Verdict::Channel(InactiveReason::AuthFailed, "401".to_owned()));
        assert!(matches!(of(Failure::Gone("410".into())), Verdict::Channel(InactiveReason::Gone, _)));
        assert!(matches!(
            of(Failure::TargetGone("404".into())),
            Verdict::Failed(DeliveryCode::TargetGone, _)
        ));
    }
}
