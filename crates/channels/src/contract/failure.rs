//! Failures, and their consequences.

use std::{fmt, time::Duration};

use super::traits::Scope;
use crate::bounds;

/// Why a call to the vendor failed. Each variant has one consequence for the delivery and its channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Not sent. → Stays PENDING, retried later.
    #[error("{0}")]
    NotSent(Cause),
    /// The vendor asks to wait, and did not take it. → Stays PENDING; nothing is sent to that scope until then.
    #[error("{cause}")]
    RateLimited {
        /// How long.
        wait: Duration,
        /// The scope that waits.
        scope: Scope,
        /// The vendor's message.
        cause: Cause,
    },
    /// The response is lost: it may have been sent. → Retried if sending is idempotent, else
    /// [reconciled](super::Transport::reconcile), else FAILED with `unknown_outcome`.
    #[error("{0}")]
    Unknown(Cause),
    /// The vendor rejects this message. → FAILED. The channel stays active.
    #[error("{0}")]
    Refused(Cause),
    /// The name resolves to an address that is not public. → As [`Self::Refused`]. An event is retried, since a resolver
    /// can be wrong for a time.
    #[error("{0}")]
    NotPublic(Cause),
    /// The chat, thread or address takes none of our messages. → FAILED. The channel stays active.
    #[error("{0}")]
    TargetGone(Cause),
    /// The target has a new id. → The conversation's target is rewritten, and the part stays PENDING.
    #[error("The chat has a new id")]
    TargetMoved {
        /// The new target.
        to: String,
    },
    /// The credentials are invalid or expired. → The channel becomes inactive (AUTH_FAILED), and its queue waits.
    #[error("{0}")]
    Credentials(Cause),
    /// The receiver reports that it no longer exists. → The channel becomes inactive (GONE), and its queue waits.
    #[error("{0}")]
    Gone(Cause),
    /// Another listener uses the same credentials. → Listening is retried later; people are notified.
    #[error("{0}")]
    Taken(Cause),
}

impl Failure {
    /// The sentence for people.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::NotSent(cause)
            | Self::RateLimited { cause, .. }
            | Self::Unknown(cause)
            | Self::Refused(cause)
            | Self::NotPublic(cause)
            | Self::TargetGone(cause)
            | Self::Credentials(cause)
            | Self::Gone(cause)
            | Self::Taken(cause) => Some(cause),
            Self::TargetMoved { .. } => None,
        }
    }
}

/// A sentence for people: at most 300 characters on one line, without secrets. Transports never put a URL, a header or
/// a body into it.
#[derive(Clone, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    /// The text.
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

/// Why a request to the inbound path is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The channel takes no requests, or has no secret to verify them with.
    #[error("This channel takes no requests.")]
    NotConfigured,
    /// The signature is missing.
    #[error("The request is not signed.")]
    Unsigned,
    /// The signature doesn't match this body and the channel's secrets.
    #[error("The signature does not match.")]
    BadSignature,
    /// The signature's time is more than five minutes off.
    #[error("The signature's time is more than five minutes away from ours.")]
    Stale,
    /// The body is not in the vendor's format.
    #[error("{0}")]
    Malformed(Cause),
}

impl Refusal {
    /// The HTTP status.
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
