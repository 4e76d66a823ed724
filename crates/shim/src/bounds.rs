//! The bounds that no attacker and no outage has set: one a kind.

use std::time::Duration;

/// What is read, copied or sent at once, in bytes.
pub const PIECE: usize = 64 << 10;
/// What is held whole, in bytes: a message, an environment with its files.
pub const LARGEST: usize = 8 << 20;
/// What is on its way when a process ends.
pub const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often a process that ends is looked at.
pub const LOOK: Duration = Duration::from_millis(20);
