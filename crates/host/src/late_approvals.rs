//! Approvals of crossings that came after their call ended. Each lets the same call pass once, in its conversation,
//! while the agent can be expected to retry. Later calls are judged as usual: the tool may have been disabled, or the
//! rules changed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use muster_protocol::plan::Crossing;
use parking_lot::Mutex;

/// Lifetime of a late approval: an agent could save it for later.
const ALLOWED: Duration = Duration::from_mins(15);

/// A crossing, and its conversation, if known.
pub type AskedCrossing = (Option<i64>, Crossing);

#[derive(Clone, Debug, Default)]
pub struct LateApprovals(Arc<Mutex<Vec<(Instant, AskedCrossing)>>>);

impl LateApprovals {
    pub fn add(&self, asked: AskedCrossing, now: Instant) {
        let mut granted = self.0.lock();
        if granted.len() >= 64 {
            granted.remove(0);
        }
        granted.push((now, asked));
    }

    /// Consumes a matching approval. Returns whether there was one.
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
    fn a_late_approval_is_for_one_call_of_its_conversation() {
        let (granted, now) = (LateApprovals::default(), Instant::now());
        granted.add((Some(7), pay(5)), now);
        assert!(!granted.take(Some(8), &pay(5), now), "another conversation");
        assert!(!granted.take(None, &pay(5), now), "no conversation");
        assert!(!granted.take(Some(7), &pay(6), now), "other arguments");
        assert!(granted.take(Some(7), &pay(5), now + Duration::from_mins(14)));
        assert!(!granted.take(Some(7), &pay(5), now), "once");
    }

    #[test]
    fn a_late_approval_expires() {
        let (granted, now) = (LateApprovals::default(), Instant::now());
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
