//! What all channels of a process share at GitHub: the tokens of installations, which GitHub issues in limited numbers,
//! the latest deliveries, and the difference between GitHub's clock and ours.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;
use tokio::time::Instant;

/// A page of deliveries, and the path of the next one.
#[derive(Clone, Debug)]
pub struct Page {
    pub deliveries: Vec<Value>,
    pub next: Option<String>,
}

#[derive(Default)]
pub struct GithubMemory {
    tokens: Mutex<HashMap<i64, (SecretString, Timestamp)>>,
    /// How many seconds GitHub's clock is ahead of ours.
    ahead: AtomicI64,
    /// The latest deliveries. Locked while they are fetched, so that channels don't fetch them at the same time.
    pub deliveries: tokio::sync::Mutex<Option<(Instant, Page)>>,
}

impl GithubMemory {
    /// The token of an installation, unless it lapses within a minute.
    pub fn token(&self, installation: i64, now: Timestamp) -> Option<SecretString> {
        let (token, until) = self.tokens().get(&installation).cloned()?;
        (until.as_second() - self.github_time(now).as_second() > 60).then_some(token)
    }

    pub fn keep_token(&self, installation: i64, token: SecretString, until: Timestamp) {
        self.tokens().insert(installation, (token, until));
    }

    pub fn forget_token(&self, installation: i64) {
        self.tokens().remove(&installation);
    }

    /// GitHub's time.
    pub fn github_time(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_second(now.as_second() + self.ahead.load(Ordering::Relaxed)).unwrap_or(now)
    }

    /// Learns GitHub's time. Returns whether ours differs from what was known.
    pub fn learn_time(&self, github: Timestamp, now: Timestamp) -> bool {
        let ahead = github.as_second() - now.as_second();
        self.ahead.swap(ahead, Ordering::Relaxed).abs_diff(ahead) > 5
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<i64, (SecretString, Timestamp)>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
