//! How long something waits that has failed, until it is tried again: one table for deliveries, requests in chats, and agents.

use std::time::Duration;

/// The waits, by the number of failures in a row.
pub const WAITS: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
];

/// The wait after so many failures in a row. None: there were too many.
#[must_use]
pub fn after(failures: i64) -> Option<Duration> {
    usize::try_from(failures - 1).ok().and_then(|place| WAITS.get(place)).copied()
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
