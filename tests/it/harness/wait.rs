//! Waiting for what another task, or another process, does.

use std::time::{Duration, Instant};

/// Ends what hangs, and nothing else: what works takes far less, on a slow machine that has other work as well.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until something is so.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What `look` finds at last, for looks that cost something. `None`: the caller says what there is instead.
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
