//! The time. Deadlines use the control plane's clock; the host tracks the difference.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

static AHEAD: AtomicI64 = AtomicI64::new(0);

/// The machine's time, in milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Learns the control plane's time, and returns how far it is ahead, in milliseconds.
pub fn learn(theirs: i64) -> i64 {
    let ahead = theirs - now();
    AHEAD.store(ahead, Ordering::Relaxed);
    ahead
}

/// Advice about a wrong clock, if needed. `ahead`: how far the control plane's clock is ahead, in milliseconds.
pub fn difference(ahead: i64) -> Option<String> {
    let (seconds, which) = (ahead.abs() / 1000, if ahead > 0 { "behind" } else { "ahead of" });
    (ahead.abs() > 30_000).then(|| {
        format!(
            "this machine's clock is {seconds} s {which} the control plane's: synchronize both, as with NTP"
        )
    })
}

/// The control plane's time, as far as known.
pub fn control_plane_now() -> i64 {
    now() + AHEAD.load(Ordering::Relaxed)
}
