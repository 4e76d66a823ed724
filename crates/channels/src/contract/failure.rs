//! Why something did not happen, and what follows from it.

use std::{fmt, time::Duration};

use super::traits::Scope;
use crate::bounds;

/// Why something did not happen at the vendor. Each variant has one consequence for the delivery and its channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was certainly not sent. → Stays PENDING, tried again after a while.
    #[error("{0}")]
    NotSent(Cause),
    /// The vendor asks to wait, and did not take it. → Stays PENDING; nothing is sent to that scope until then.
    #[error("{cause}")]
    RateLimited {
        /// How long.
        wait: Duration,
        /// What waits.
        scope: Scope,
        /// The vendor's words.
        cause: Cause,
    },
    /// The answer is lost: it may have been sent. → Tried again if sending is idempotent, else
    /// [reconciled](super::Transport::reconcile), else FAILED with `unknown_outcome`.
    #[error("{0}")]
    Unknown(Cause),
    /// The vendor does not take this message. → FAILED. The channel stays active.
    #[error("{0}")]
    Refused(Cause),
    /// The chat, thread or address does not take messages of ours. → FAILED. The channel stays active.
    #[error("{0}")]
    TargetGone(Cause),
    /// The target has another id now. → The conversation's target is rewritten, and the part stays PENDING.
    #[error("The chat has a new id")]
    TargetMoved {
        /// The target from now on.
        to: String,
    },
    /// The credentials don't count (any more). → The channel becomes inactive (AUTH_FAILED), its queue waits.
    #[error("{0}")]
    Credentials(Cause),
    /// The receiving end says that it no longer exists. → The channel becomes inactive (GONE), its queue waits.
    #[error("{0}")]
    Gone(Cause),
    /// Somebody else listens with the same credentials. → Listened to again after a while; people are told.
    #[error("{0}")]
    Taken(Cause),
}

impl Failure {
    /// What to tell people.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::NotSent(cause)
            | Self::RateLimited { cause, .. }
            | Self::Unknown(cause)
            | Self::Refused(cause)
            | Self::TargetGone(cause)
            | Self::Credentials(cause)
            | Self::Gone(cause)
            | Self::Taken(cause) => Some(cause),
            Self::TargetMoved { .. } => None,
        }
    }
}

/// A sentence for people: why. At most 300 characters on one line, without secrets: transports never put a URL, a header or
/// a body into it.
#[derive(Clone, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    /// What it says.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Cause {
    fn from(text: T) -> Self {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        Self(text.as_ref().chars().map(printable).take(bounds::NAME).collect())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a request to our inbound path is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This channel takes no requests, or has no secret to verify them with.
    #[error("This channel takes no requests.")]
    NotConfigured,
    /// There is no signature.
    #[error("The request is not signed.")]
    Unsigned,
    /// The signature is not of this body and a secret of this channel.
    #[error("The signature does not match.")]
    BadSignature,
    /// The signature is more than five minutes old, or as far ahead.
    #[error("The signature's time is more than five minutes away from ours.")]
    Stale,
    /// The body is not what the vendor sends.
    #[error("{0}")]
    Malformed(Cause),
}

impl Refusal {
    /// The HTTP status that says so.
    pub fn status(&self) -> u16 {
        match self {
            Self::NotConfigured => 404,
            Self::Unsigned | Self::BadSignature | Self::Stale => 401,
            Self::Malformed(_) => 400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_one_short_line() {
        let cause = Cause::from(format!("a\nb{}", "ö".repeat(400)));
        assert!(cause.as_str().starts_with("a bö"));
        assert_eq!(cause.as_str().chars().count(), 300);
    }
}
