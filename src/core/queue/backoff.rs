//! The waits between attempts: one table for all jobs, and for agents that are started again.

use std::time::Duration;

/// The waits, by the number of failures in a row.
pub const WAITS: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(2),
    LONGEST,
];

pub const LONGEST: Duration = Duration::from_hours(6);

/// How long sending to a receiver may fail until it is switched off: longer than an outage of a vendor or recipient.
pub const FAILING: Duration = Duration::from_hours(5 * 24);

/// The wait after this many failures in a row. `None` if there were too many.
#[must_use]
pub fn after(failures: i64) -> Option<Duration> {
    usize::try_from(failures - 1).ok().and_then(|place| WAITS.get(place)).copied()
}

/// The wait that a vendor has requested, within bounds: a vendor that requests no wait would get requests without end,
/// and one that requests a year would never get another.
#[must_use]
pub fn asked_for(wait: Duration) -> Duration {
    wait.clamp(WAITS[0], Duration::from_hours(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_longer_and_they_end() {
        assert!(WAITS.is_sorted());
        assert_eq!([after(1), after(7), after(8), after(0)], [Some(WAITS[0]), Some(WAITS[6]), None, None]);
    }
}
