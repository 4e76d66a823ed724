//! The bounds that no attacker and no outage has set: one a kind.

use std::time::Duration;

/// A text, a file or a result that is kept, in bytes. What is longer is cut.
pub const TEXT: usize = 128 * 1024;
/// The beginning of a file or of an error, in bytes.
pub const HEAD: usize = 16 * 1024;
/// What is read whole, in bytes: a model's answer, a session's file.
pub const LARGEST: usize = 16 * 1024 * 1024;
/// Skills, tools, notes, sessions.
pub const LIST: usize = 128;
/// A connection, and a server that starts.
pub const NETWORK_WAIT: Duration = Duration::from_secs(20);
/// An answer of a model or of a tool.
pub const ANSWER_WAIT: Duration = Duration::from_mins(10);
