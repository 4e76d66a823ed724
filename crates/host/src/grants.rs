//! Crossings that people have allowed after the call had ended. Each lets the same call pass once, in the conversation that it was
//! asked in, while the agent can be expected to try again. Later the control plane judges as usual: the tool may have been switched
//! off, or the rules changed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use muster_protocol::plan::Crossing;
use parking_lot::Mutex;

/// An agent that keeps an old permission for later: so long a crossing stays allowed.
const ALLOWED: Duration = Duration::from_mins(15);

/// What was asked: the crossing, and the conversation if it is known.
pub type Asked = (Option<i64>, Crossing);

/// Crossings that people have allowed.
#[derive(Clone, Debug, Default)]
pub struct Granted(Arc<Mutex<Vec<(Instant, Asked)>>>);

impl Granted {
    /// Remembers that a crossing may happen once.
    pub fn add(&self, asked: Asked, now: Instant) {
        let mut granted = self.0.lock();
        if granted.len() >= 64 {
            granted.remove(0);
        }
        granted.push((now, asked));
    }

    /// Whether a crossing was allowed a short while ago. Then it happens now.
    pub fn take(&self, conversation: Option<i64>, crossing: &Crossing, now: Instant) -> bool {
        let mut granted = self.0.lock();
        granted.retain(|(since, _)| now.saturating_duration_since(*since) < ALLOWED);
        let at = granted.iter().position(|(_, (of, granted))| *of == conversation && granted == crossing);
        at.map(|at| granted.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pay(amount: i64) -> Crossing {
        let crossing = json!({ "tool": "Shop.pay", "tool_kind": "execute", "input": { "amount": amount }, "mcp_server_id": null });
        serde_json::from_value(crossing).unwrap()
    }

    #[test]
    fn what_was_allowed_late_is_for_one_call_of_its_conversation() {
        let (granted, now) = (Granted::default(), Instant::now());
        granted.add((Some(7), pay(5)), now);
        assert!(!granted.take(Some(8), &pay(5), now), "another conversation");
        assert!(!granted.take(None, &pay(5), now), "no conversation");
        assert!(!granted.take(Some(7), &pay(6), now), "other arguments");
        assert!(granted.take(Some(7), &pay(5), now + Duration::from_mins(14)));
        assert!(!granted.take(Some(7), &pay(5), now), "once");
    }

    #[test]
    fn what_was_allowed_late_does_not_stay_so() {
        let (granted, now) = (Granted::default(), Instant::now());
        granted.add((Some(7), pay(5)), now);
        assert!(!granted.take(Some(7), &pay(5), now + ALLOWED));
        for amount in 0..=64 {
            granted.add((None, pay(amount)), now);
        }
        assert!(
            !granted.take(None, &pay(0), now) && granted.take(None, &pay(1), now),
            "the oldest goes first"
        );
    }
}
