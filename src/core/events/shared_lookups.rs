//! Lookups that all subscribers of one event share: who may still receive it, and the record. The first subscriber
//! makes them.
//!
//! A memo is shared by subscribers that receive the event at about the same time, and not kept for later ones: its
//! contents were true after the event, but only briefly.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sea_orm::QueryResult;
use tokio::{sync::OnceCell, time::Instant};

use crate::{
    base::problem::Result,
    core::access::{Caller, Membership, Memberships},
};

/// The lookups shared by the subscribers of one event.
pub struct Memo {
    made: Instant,
    memberships: OnceCell<Memberships>,
    reads: Mutex<HashMap<Question, Arc<OnceCell<Rows>>>>,
}

/// A statement and its keys.
type Question = (String, Vec<i64>);

pub type Rows = Vec<Arc<QueryResult>>;

impl Default for Memo {
    fn default() -> Self {
        Self { made: Instant::now(), memberships: OnceCell::new(), reads: Mutex::default() }
    }
}

impl Memo {
    /// The membership of `caller`. `all` fetches those of all subscribers at once; it may not cover this caller.
    pub async fn membership(
        &self,
        caller: &Caller,
        all: impl Future<Output = Result<Memberships>> + Send,
    ) -> Result<Option<Membership>> {
        if !self.is_fresh() {
            return Ok(None);
        }
        let memberships = self.memberships.get_or_try_init(|| all).await?;
        Ok(caller.credential_key().and_then(|key| memberships.get(&key)).copied())
    }

    /// The rows that `read` fetches for a statement and its keys, fetched once for everyone with the same question.
    ///
    /// # Errors
    /// The errors of `read`.
    pub async fn rows(
        &self,
        question: Question,
        read: impl Future<Output = Result<Rows>> + Send,
    ) -> Result<Rows> {
        if !self.is_fresh() {
            return read.await;
        }
        let cell = {
            let mut reads = self.reads.lock();
            Arc::clone(reads.entry(question).or_default())
        };
        cell.get_or_try_init(|| read).await.cloned()
    }

    /// Whether it may still be shared: for a second.
    pub(super) fn is_fresh(&self) -> bool {
        self.made.elapsed() < Duration::from_secs(1)
    }
}

/// The memos of an organization's latest events, eight at most.
#[derive(Default)]
pub(super) struct Memos(Mutex<VecDeque<(u64, Arc<Memo>)>>);

impl Memos {
    pub fn get(&self, number: u64) -> Arc<Memo> {
        let mut kept = self.0.lock();
        kept.retain(|(_, memo)| memo.is_fresh());
        if let Some((_, memo)) = kept.iter().find(|(of, _)| *of == number) {
            return Arc::clone(memo);
        }
        let memo = Arc::<Memo>::default();
        if kept.len() == 8 {
            kept.pop_front();
        }
        kept.push_back((number, Arc::clone(&memo)));
        memo
    }
}
