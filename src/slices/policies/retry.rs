//! When a file that could not be written is tried again: soon, and then ever later.
//!
//! Counted by text: a newer one is tried at once. Kept by each process for itself, as what it tries is its own folder.

use std::{collections::BTreeMap, time::Duration};

use crate::base::ids::OrgId;

/// How long after the first failure the next try comes.
const FIRST: Duration = Duration::from_secs(1);
/// The longest time between two tries: whoever has mended the folder waits no longer than this.
const MOST: Duration = Duration::from_mins(1);

/// How long after so many failures in a row the next try comes.
fn pause(failures: u32) -> Duration {
    FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MOST)
}

/// The files that could not be written when they were last tried.
#[derive(Default)]
pub(super) struct Retries(BTreeMap<OrgId, Failing>);

struct Failing {
    /// Of the text that was to be written.
    version: String,
    failures: u32,
    /// When it is tried again, by the clock that only goes forward.
    next: Duration,
}

impl Retries {
    /// Notes that a try has failed; how many have by now, with this text.
    pub fn failed(&mut self, org: OrgId, version: String, now: Duration) -> u32 {
        let before = self.0.get(&org).filter(|failing| failing.version == version);
        let failures = before.map_or(0, |failing| failing.failures).saturating_add(1);
        self.0.insert(org, Failing { version, failures, next: now + pause(failures) });
        failures
    }

    /// Forgets every file that is written by now, here or by another replica.
    pub fn keep(&mut self, unwritten: &[OrgId]) {
        self.0.retain(|org, _| unwritten.contains(org));
    }

    /// Whether it is time to try an organization's file.
    pub fn is_due(&self, org: OrgId, now: Duration) -> bool {
        self.0.get(&org).is_none_or(|failing| failing.next <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let pauses: Vec<u64> = (1..=8).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((pause(0), pause(u32::MAX)), (FIRST, MOST));
    }

    #[test]
    fn failures_are_counted_until_another_text_comes_or_the_file_is_written() {
        let (mut retries, org, other) = (Retries::default(), OrgId(7), OrgId(8));
        let at = Duration::from_secs;
        let mut fails = |version: &str, now| retries.failed(org, version.to_owned(), at(now));
        assert_eq!([fails("a", 0), fails("a", 1), fails("a", 3), fails("b", 4)], [1, 2, 3, 1]);
        assert!(!retries.is_due(org, Duration::from_millis(4_999)) && retries.is_due(org, at(5)));
        assert!(retries.is_due(other, at(0)), "what has not failed is tried");
        retries.keep(&[org, other]);
        assert_eq!(retries.failed(org, "b".to_owned(), at(5)), 2);
        retries.keep(&[other]);
        assert_eq!(retries.failed(org, "b".to_owned(), at(6)), 1);
    }
}
