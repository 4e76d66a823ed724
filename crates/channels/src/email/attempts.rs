//! Attempts to read a mail. What failed twice is skipped and named, so that no mail stops its mailbox or the service.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::contract::Refusal;

/// How often a mail is tried at least.
const TRIES: u32 = 2;
/// How long a mail is tried at least that may be given out later: mail servers are restarted.
const OUTAGE: SignedDuration = SignedDuration::from_mins(15);
/// The longest subject or reason that is kept, in characters.
const WORDS: usize = 100;

/// How often reading a mail has failed. It is part of the cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub uid: u32,
    times: u32,
    /// When it failed first.
    since: Timestamp,
    why: String,
    /// Whether the next attempt is likely to fail in the same way.
    is_certain: bool,
    subject: Option<String>,
}

impl Tried {
    /// Another attempt, after those before.
    pub fn again(before: Option<&Self>, uid: u32, now: Timestamp, subject: Option<String>) -> Self {
        let before = before.filter(|before| before.uid == uid);
        Self {
            uid,
            times: before.map_or(0, |before| before.times) + 1,
            since: before.map_or(now, |before| before.since),
            why: "reading it ended the service".to_owned(),
            is_certain: true,
            subject: subject.map(short).or_else(|| before?.subject.clone()),
        }
    }

    /// The attempt failed.
    pub fn failed(self, why: String, is_certain: bool) -> Self {
        Self { why: short(why), is_certain, ..self }
    }

    /// Whether the mail is not tried again.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.times >= TRIES && (self.is_certain || now.duration_since(self.since) >= OUTAGE)
    }

    /// How the mail is named that is skipped.
    pub fn refusal(&self) -> Refusal {
        refusal(self.uid, self.subject.clone(), &self.why)
    }
}

/// How a mail is named that is skipped.
pub fn refusal(uid: u32, subject: Option<String>, why: &str) -> Refusal {
    let subject = subject.map(|subject| format!(", \u{201c}{}\u{201d},", short(subject))).unwrap_or_default();
    Refusal::Malformed(format!("The mail with UID {uid}{subject} is skipped: {why}.").into())
}

/// The beginning of a text, in one line: it is in the log.
fn short(mut text: String) -> String {
    text.retain(|c| !c.is_control());
    if text.chars().nth(WORDS).is_none() { text } else { text.chars().take(WORDS).collect() }
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
        assert!(twice.is_over(at(1)), "both ended the service");
        assert!(Tried::again(Some(&once), 6, at(1), None).times == 1, "another mail is another matter");
        let lost = twice.clone().failed("the connection is lost".to_owned(), false);
        assert!(!lost.is_over(at(14)) && lost.is_over(at(15)));
        let named = lost.refusal().to_string();
        assert_eq!(named, "The mail with UID 5, \u{201c}Hello\u{201d}, is skipped: the connection is lost.");
    }
}
