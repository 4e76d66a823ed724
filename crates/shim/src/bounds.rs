//! Default limits, one per kind. Limits against an attacker or an outage are next to the code that they protect.

use std::time::Duration;

/// Bytes read, copied or sent at once.
pub const PIECE: usize = 64 << 10;
/// Bytes held in memory as a whole: a message, or an environment with its files.
pub const LARGEST: usize = 8 << 20;
/// Wait for the last output of a process.
pub const LAST_WORDS: Duration = Duration::from_secs(2);
/// Poll interval for the end of a process.
pub const LOOK: Duration = Duration::from_millis(20);
