//! Waiting for another task or another process.

use std::time::{Duration, Instant};

/// Ends only hanging tests: working ones take far less, even on a slow and busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until a condition holds.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Polls `look`, which may be expensive, until it finds something. `None` on a timeout: the caller reports the actual
/// state.
pub async fn found<T>(mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look().await;
        if found.is_some() || begun.elapsed() > PATIENCE {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
