//! Attempts to read a mail. What failed twice is skipped and named, so that no mail stops its mailbox or the service. Where nothing
//! failed and yet no attempt came to its end, the mail may be innocent: services are restarted, and replicas end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::contract::Skipped;

/// How often a mail is tried whose attempts don't come to their end, and how long after the first one the last one begins: services
/// are restarted.
const UNFINISHED: u32 = 3;
const REST: SignedDuration = SignedDuration::from_mins(2);

/// How often reading a mail has failed. It is part of the cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub uid: u32,
    times: u32,
    /// When it was tried first.
    since: Timestamp,
    /// Why the last attempt failed. `None`: it did not come to its end.
    failed: Option<Failed>,
    subject: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Failed {
    why: String,
    /// Whether the next attempt is likely to fail in the same way.
    is_certain: bool,
}

impl Tried {
    /// Another attempt, after those before.
    pub fn again(before: Option<&Self>, uid: u32, now: Timestamp, subject: Option<String>) -> Self {
        let before = before.filter(|before| before.uid == uid);
        Self {
            uid,
            times: before.map_or(0, |before| before.times) + 1,
            since: before.map_or(now, |before| before.since),
            failed: None,
            subject: subject.map(short).or_else(|| before?.subject.clone()),
        }
    }

    /// The attempt failed.
    pub fn failed(self, why: String, is_certain: bool) -> Self {
        Self { failed: Some(Failed { why: short(why), is_certain }), ..self }
    }

    /// Whether the mail is not tried again.
    pub fn is_over(&self, now: Timestamp) -> bool {
        let lasted = now.duration_since(self.since);
        match &self.failed {
            // Mail servers are restarted, too.
            Some(failed) => self.times >= 2 && (failed.is_certain || lasted >= SignedDuration::from_mins(15)),
            None => self.times >= UNFINISHED && lasted >= REST,
        }
    }

    /// How long to wait before the next attempt: the last one of a mail that may end the service is not made soon after the others.
    pub fn rest(&self, now: Timestamp) -> Duration {
        if self.failed.is_some() || self.times + 1 < UNFINISHED {
            return Duration::ZERO;
        }
        Duration::try_from(REST - now.duration_since(self.since)).unwrap_or_default()
    }

    /// The mail, which is skipped.
    pub fn skipped(&self) -> Skipped {
        let why = self.failed.as_ref().map_or("reading it ended the service", |failed| &failed.why);
        skipped(self.uid, self.subject.clone(), why)
    }
}

/// A mail that is skipped; the reason is a clause.
pub fn skipped(uid: u32, subject: Option<String>, why: &str) -> Skipped {
    let mut rest = why.chars();
    let first = rest.next().map(char::to_uppercase).into_iter().flatten();
    let reason = first.chain(rest).chain(['.']).collect::<String>().into();
    Skipped { vendor_id: uid.to_string(), subject: subject.map(short), reason }
}

/// The beginning of a text, in one line: it is in the log.
fn short(mut text: String) -> String {
    text.retain(|c| !c.is_control());
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_skipped_after_two_attempts_or_a_long_outage() {
        let at = |minutes: i64| Timestamp::from_second(1_800_000_000 + 60 * minutes).unwrap();
        let once = Tried::again(None, 5, at(0), Some("Hello".to_owned()));
        assert!(!once.is_over(at(60)), "it is tried again");
        let twice = Tried::again(Some(&once), 5, at(1), None);
        assert!(Tried::again(Some(&once), 6, at(1), None).times == 1, "another mail is another matter");
        assert!(twice.clone().failed("its answer is too long".to_owned(), true).is_over(at(1)));
        let lost = twice.failed("the connection is lost".to_owned(), false);
        assert!(!lost.is_over(at(14)) && lost.is_over(at(15)));
        let Skipped { vendor_id, subject, reason } = lost.skipped();
        assert_eq!((&*vendor_id, subject.as_deref()), ("5", Some("Hello")));
        assert_eq!(reason.as_str(), "The connection is lost.");
    }

    #[test]
    fn a_mail_whose_attempts_do_not_end_is_tried_three_times() {
        let at = |seconds: i64| Timestamp::from_second(1_800_000_000 + seconds).unwrap();
        let once = Tried::again(None, 5, at(0), None);
        assert_eq!(once.rest(at(1)), Duration::ZERO);
        let twice = Tried::again(Some(&once), 5, at(1), None);
        assert!(!twice.is_over(at(1)) && !twice.is_over(at(999)), "it is tried again");
        assert_eq!(twice.rest(at(30)), Duration::from_secs(90));
        assert_eq!(twice.rest(at(999)), Duration::ZERO);
        let thrice = Tried::again(Some(&twice), 5, at(121), None);
        assert!(thrice.is_over(at(121)) && !thrice.is_over(at(119)));
        assert_eq!(thrice.skipped().reason.as_str(), "Reading it ended the service.");
    }
}
