//! Limits how many MCP server programs a gate runs outside of the sandbox, and how often it starts one: the agent can
//! start clients in a loop.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bounds;

/// Programs at a time, and immediate starts in a row: an agent could fill the host with processes. Beyond that each
/// start waits twice as long as the last.
const MOST: u32 = 16;

/// The limit of one gate.
#[derive(Debug)]
pub struct StartLimit {
    slots: Arc<Semaphore>,
    past: Mutex<Option<RecentStarts>>,
}

/// Counted starts, and the time of the last one.
#[derive(Clone, Copy, Debug)]
struct RecentStarts {
    count: u32,
    last: Instant,
}

/// Why a program isn't started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Too many programs run.
    #[error("{most} programs of this agent's MCP servers run already", most = MOST)]
    Crowded,
    /// Too many starts; seconds to wait.
    #[error("too many programs of this agent's MCP servers were started. Try again in {0} seconds")]
    TooOften(u128),
}

impl Default for StartLimit {
    fn default() -> Self {
        Self { slots: Arc::new(Semaphore::new(MOST as usize)), past: Mutex::default() }
    }
}

impl StartLimit {
    /// A permit for a program that is about to start.
    pub fn acquire(&self, now: Instant) -> Result<OwnedSemaphorePermit, StartError> {
        let permit = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| StartError::Crowded)?;
        let mut past = self.past.lock();
        let count = past.map_or(0, |past| past.left(now));
        let waited = past.map_or(Duration::MAX, |past| now - past.last);
        let wait = pause(count).saturating_sub(waited);
        if !wait.is_zero() {
            return Err(StartError::TooOften(wait.as_millis().div_ceil(1000)));
        }
        *past = Some(RecentStarts { count: count + 1, last: now });
        Ok(permit)
    }
}

impl RecentStarts {
    /// Counted starts: one fewer after each quiet period.
    fn left(self, now: Instant) -> u32 {
        let forgiven = (now - self.last).as_secs() / bounds::RETRY.as_secs();
        self.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

/// The pause after this many starts.
fn pause(count: u32) -> Duration {
    match count.checked_sub(MOST) {
        Some(more) => Duration::from_secs(1 << more.min(6)).min(bounds::WAIT),
        None => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_that_follow_each_other_have_to_wait() {
        let (limit, begun) = (StartLimit::default(), Instant::now());
        let at = |seconds| limit.acquire(begun + Duration::from_secs(seconds)).map(drop);
        for _ in 0..MOST {
            assert_eq!(at(0), Ok(()));
        }
        assert_eq!(at(0), Err(StartError::TooOften(1)));
        assert_eq!(at(1), Ok(()));
        assert_eq!((at(2), at(3)), (Err(StartError::TooOften(1)), Ok(())));
        assert_eq!((at(5), at(7)), (Err(StartError::TooOften(2)), Ok(())));
        // An agent that starts one every ten seconds never waits.
        for tens in 10..40 {
            assert_eq!(at(tens * 10), Ok(()), "{tens}");
        }
    }

    #[test]
    fn only_so_many_run_at_a_time() {
        let (limit, begun) = (StartLimit::default(), Instant::now());
        let slowly = (0..u64::from(MOST)).map(|n| begun + Duration::from_secs(10 * n));
        let mut running: Vec<_> = slowly.map(|at| limit.acquire(at)).collect();
        let later = begun + Duration::from_secs(1000);
        assert!(matches!(limit.acquire(later), Err(StartError::Crowded)));
        running.pop();
        assert!(limit.acquire(later).is_ok());
    }
}
