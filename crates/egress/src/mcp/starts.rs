//! How many programs of MCP servers a gate runs outside of the sandbox, and how often it starts one: the agent begins their clients,
//! one after the other if it likes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bounds;

/// How many run at a time, and how many are started one right after the other: the agent could fill the host with processes. Then
/// each has to wait, and twice as long as the one before.
const MOST: u32 = 16;

/// Those of one gate.
#[derive(Debug)]
pub struct Starts {
    room: Arc<Semaphore>,
    past: Mutex<Option<Past>>,
}

/// The starts that count, and when the last one was.
#[derive(Clone, Copy, Debug)]
struct Past {
    count: u32,
    last: Instant,
}

/// Why a program isn't started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// So many run.
    #[error("{most} programs of this agent's MCP servers run already", most = MOST)]
    Crowded,
    /// So many were started.
    #[error("too many programs of this agent's MCP servers were started. Try again in {0} seconds")]
    TooOften(u128),
}

impl Default for Starts {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(MOST as usize)), past: Mutex::default() }
    }
}

impl Starts {
    /// A place for a program that is about to start.
    pub fn begin(&self, now: Instant) -> Result<OwnedSemaphorePermit, Refused> {
        let place = Arc::clone(&self.room).try_acquire_owned().map_err(|_| Refused::Crowded)?;
        let mut past = self.past.lock();
        let count = past.map_or(0, |past| past.left(now));
        let waited = past.map_or(Duration::MAX, |past| now - past.last);
        let wait = pause(count).saturating_sub(waited);
        if !wait.is_zero() {
            return Err(Refused::TooOften(wait.as_millis().div_ceil(1000)));
        }
        *past = Some(Past { count: count + 1, last: now });
        Ok(place)
    }
}

impl Past {
    /// How many starts still count: after a while without one, one fewer.
    fn left(self, now: Instant) -> u32 {
        let forgiven = (now - self.last).as_secs() / bounds::RETRY.as_secs();
        self.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

/// How long the next one has to wait after so many.
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
        let (starts, begun) = (Starts::default(), Instant::now());
        let at = |seconds| starts.begin(begun + Duration::from_secs(seconds)).map(drop);
        for _ in 0..MOST {
            assert_eq!(at(0), Ok(()));
        }
        assert_eq!(at(0), Err(Refused::TooOften(1)));
        assert_eq!(at(1), Ok(()));
        assert_eq!((at(2), at(3)), (Err(Refused::TooOften(1)), Ok(())));
        assert_eq!((at(5), at(7)), (Err(Refused::TooOften(2)), Ok(())));
        // An agent that begins one each ten seconds waits for none.
        for tens in 10..40 {
            assert_eq!(at(tens * 10), Ok(()), "{tens}");
        }
    }

    #[test]
    fn only_so_many_run_at_a_time() {
        let (starts, begun) = (Starts::default(), Instant::now());
        let slowly = (0..u64::from(MOST)).map(|n| begun + Duration::from_secs(10 * n));
        let mut running: Vec<_> = slowly.map(|at| starts.begin(at)).collect();
        let later = begun + Duration::from_secs(1000);
        assert!(matches!(starts.begin(later), Err(Refused::Crowded)));
        running.pop();
        assert!(starts.begin(later).is_ok());
    }
}
