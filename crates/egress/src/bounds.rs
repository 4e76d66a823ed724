//! How much and how long, where nothing in particular is at stake: one value a kind. A bound that stops an attacker, or is for an
//! outage, stands where it does so.

use std::time::Duration;

/// A text that is read, in bytes.
pub const TEXT: usize = 64 * 1024;
/// A name or an id, in bytes or characters.
pub const NAME: usize = 128;
/// Entries of a list, or of what is remembered.
pub const LIST: usize = 256;
/// Messages that wait for their reader.
pub const QUEUE: usize = 16;
/// A step that needs no thought: a connection, a first word.
pub const NETWORK_WAIT: Duration = Duration::from_secs(10);
/// Between two attempts, or two reports of the same.
pub const RETRY: Duration = Duration::from_secs(10);
/// Something that others make available: the rest of a message, room in memory, the control plane.
pub const WAIT: Duration = Duration::from_secs(60);
/// An answer that may need thought.
pub const THOUGHT: Duration = Duration::from_secs(600);
