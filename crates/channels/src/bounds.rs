//! How much and how long, where nothing in particular is at stake: one value a kind. A bound that stops an attacker, or is for an
//! outage, stands where it does so.

use std::time::Duration;

/// How much of a text is looked at, in bytes.
pub const TEXT: usize = 64 << 10;
/// A name, an id or a reason, in bytes or characters.
pub const NAME: usize = 300;
/// Entries of a list that others write.
pub const LIST: usize = 100;
/// A connection, and the beginning of its encryption.
pub const NETWORK_WAIT: Duration = Duration::from_secs(10);
/// An answer to a call.
pub const ANSWER: Duration = Duration::from_secs(15);
/// A file, or a mail that its server looks at.
pub const TRANSFER: Duration = Duration::from_secs(120);
/// How long a connection may be silent that is kept open.
pub const SILENCE: Duration = Duration::from_secs(90);
/// How long to wait where the other side asks for that and doesn't say how long.
pub const RETRY: Duration = Duration::from_secs(30);
