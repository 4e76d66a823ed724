//! Default limits, one per kind. Limits against an attacker or an outage are next to the code that they protect.

use std::time::Duration;

/// Text to read, in bytes.
pub const TEXT: usize = 64 * 1024;
/// A name or an id, in bytes or characters.
pub const NAME: usize = 128;
/// Entries of a list or a cache.
pub const LIST: usize = 256;
/// Messages queued for a reader.
pub const QUEUE: usize = 16;
/// A step without computation: a connection, the first bytes.
pub const NETWORK_WAIT: Duration = Duration::from_secs(10);
/// Between two attempts, or two equal reports.
pub const RETRY: Duration = Duration::from_secs(10);
/// Waiting for others: the rest of a message, free memory, the control plane.
pub const WAIT: Duration = Duration::from_secs(60);
/// A response that may need thinking time.
pub const THOUGHT: Duration = Duration::from_secs(600);
