//! Attempts to read a mail. A mail that failed twice is skipped and reported, so that no mail blocks its mailbox or the
//! service. If an attempt neither failed nor finished, the mail may be innocent: services are restarted, and replicas
//! end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::contract::Skipped;

/// Attempts of a mail whose attempts don't finish, and the minimum time between the first and the last: services are
/// restarted.
const MAX_UNFINISHED: u32 = 3;
const MIN_SPAN: SignedDuration = SignedDuration::from_mins(2);

/// The attempts to read one mail. Part of the cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    pub uid: u32,
    times: u32,
    /// Time of the first attempt.
    since: Timestamp,
    /// The last attempt's failure. `None`: unfinished.
    failed: Option<LastFailure>,
    subject: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastFailure {
    why: String,
    /// Whether the next attempt will probably fail likewise.
    is_certain: bool,
}

impl Attempts {
    /// The next attempt.
    pub fn count(before: Option<&Self>, uid: u32, now: Timestamp, subject: Option<String>) -> Self {
        let before = before.filter(|before| before.uid == uid);
        Self {
            uid,
            times: before.map_or(0, |before| before.times) + 1,
            since: before.map_or(now, |before| before.since),
            failed: None,
            subject: subject.map(shorten).or_else(|| before?.subject.clone()),
        }
    }

    pub fn with_failure(self, why: String, is_certain: bool) -> Self {
        Self { failed: Some(LastFailure { why: shorten(why), is_certain }), ..self }
    }

    /// Whether the mail is given up.
    pub fn is_exhausted(&self, now: Timestamp) -> bool {
        let lasted = now.duration_since(self.since);
        match &self.failed {
            // Mail servers are restarted, too.
            Some(failed) => self.times >= 2 && (failed.is_certain || lasted >= SignedDuration::from_mins(15)),
            None => self.times >= MAX_UNFINISHED && lasted >= MIN_SPAN,
        }
    }

    /// Wait before the next attempt: a mail that may crash the service gets its last attempt only after a while.
    pub fn delay(&self, now: Timestamp) -> Duration {
        if self.failed.is_some() || self.times + 1 < MAX_UNFINISHED {
            return Duration::ZERO;
        }
        Duration::try_from(MIN_SPAN - now.duration_since(self.since)).unwrap_or_default()
    }

    /// The report of the skipped mail.
    pub fn report(&self) -> Skipped {
        let why = self.failed.as_ref().map_or("reading it ended the service", |failed| &failed.why);
        skipped_mail(self.uid, self.subject.clone(), why)
    }
}

/// The report of a skipped mail; the reason is a clause.
pub fn skipped_mail(uid: u32, subject: Option<String>, why: &str) -> Skipped {
    let mut rest = why.chars();
    let first = rest.next().map(char::to_uppercase).into_iter().flatten();
    let reason = first.chain(rest).chain(['.']).collect::<String>().into();
    Skipped { vendor_id: uid.to_string(), subject: subject.map(shorten), reason }
}

/// The beginning of a text, on one line for the log.
fn shorten(mut text: String) -> String {
    text.retain(|c| !c.is_control());
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_skipped_after_two_attempts_or_a_long_outage() {
        let at = |minutes: i64| Timestamp::from_second(1_800_000_000 + 60 * minutes).unwrap();
        let once = Attempts::count(None, 5, at(0), Some("Hello".to_owned()));
        assert!(!once.is_exhausted(at(60)), "it is tried again");
        let twice = Attempts::count(Some(&once), 5, at(1), None);
        assert!(Attempts::count(Some(&once), 6, at(1), None).times == 1, "another mail is another matter");
        assert!(twice.clone().with_failure("its answer is too long".to_owned(), true).is_exhausted(at(1)));
        let lost = twice.with_failure("the connection is lost".to_owned(), false);
        assert!(!lost.is_exhausted(at(14)) && lost.is_exhausted(at(15)));
        let Skipped { vendor_id, subject, reason } = lost.report();
        assert_eq!((&*vendor_id, subject.as_deref()), ("5", Some("Hello")));
        assert_eq!(reason.as_str(), "The connection is lost.");
    }

    #[test]
    fn a_mail_whose_attempts_do_not_end_is_tried_three_times() {
        let at = |seconds: i64| Timestamp::from_second(1_800_000_000 + seconds).unwrap();
        let once = Attempts::count(None, 5, at(0), None);
        assert_eq!(once.delay(at(1)), Duration::ZERO);
        let twice = Attempts::count(Some(&once), 5, at(1), None);
        assert!(!twice.is_exhausted(at(1)) && !twice.is_exhausted(at(999)), "it is tried again");
        assert_eq!(twice.delay(at(30)), Duration::from_secs(90));
        assert_eq!(twice.delay(at(999)), Duration::ZERO);
        let thrice = Attempts::count(Some(&twice), 5, at(121), None);
        assert!(thrice.is_exhausted(at(121)) && !thrice.is_exhausted(at(119)));
        assert_eq!(thrice.report().reason.as_str(), "Reading it ended the service.");
    }
}
