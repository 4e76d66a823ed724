//! Shared limits.

use std::time::Duration;

/// Bytes of a stored text, file or result. Longer ones are truncated.
pub const TEXT: usize = 128 * 1024;
/// Bytes of the beginning of a file or an error.
pub const HEAD: usize = 16 * 1024;
/// Bytes of a model's answer or a session's file.
pub const LARGEST: usize = 16 * 1024 * 1024;
/// Number of skills, tools, notes or sessions.
pub const LIST: usize = 128;
/// For a connection, and for the start of a server.
pub const NETWORK_WAIT: Duration = Duration::from_secs(20);
/// For the answer of a model or a tool.
pub const ANSWER_WAIT: Duration = Duration::from_mins(10);
