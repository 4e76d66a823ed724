//! Default limits, one per kind. A limit against an attacker or for an outage stays where it applies.

use std::time::Duration;

/// Bytes of a text.
pub const TEXT: usize = 64 << 10;
/// Bytes or characters of a name, an id or a reason.
pub const NAME: usize = 300;
/// Entries of a list from outside.
pub const LIST: usize = 100;
/// Connecting, and the TLS handshake.
pub const NETWORK_WAIT: Duration = Duration::from_secs(10);
/// Response to a call.
pub const ANSWER: Duration = Duration::from_secs(15);
/// A file, or a mail that its server scans.
pub const TRANSFER: Duration = Duration::from_secs(120);
/// Silence on an open connection.
pub const SILENCE: Duration = Duration::from_secs(90);
/// Wait when the other side asks for one without saying how long.
pub const RETRY: Duration = Duration::from_secs(30);
