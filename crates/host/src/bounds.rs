//! Default limits, one per kind. Limits against an attacker or an outage are next to the code that they protect.

use std::time::Duration;

/// A reason or a piece of text, in bytes.
pub const TEXT: usize = 4096;
/// The name of a model, a mode or a request, in bytes.
pub const NAME: usize = 200;
/// The id of an option, in bytes: an agent could fill the journal with longer ones.
pub const ID: usize = 500;
/// Entries listed by an agent: values, tool calls, pending lines.
pub const LIST: usize = 1000;
/// Entries in a queue or in one step.
pub const BATCH: usize = 256;
/// About the same in bytes.
pub const PORTION: usize = 256 * 1024;
/// Open files of a program.
pub const OPEN_FILES: u64 = 8192;

/// The control plane's answer.
pub const NETWORK_WAIT: Duration = Duration::from_secs(15);
/// Start or end of a process, on a slow disk.
pub const PROCESS_WAIT: Duration = Duration::from_secs(30);
/// The answer of a running process.
pub const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// The same, for optional information.
pub const SOON: Duration = Duration::from_secs(2);
/// Poll interval for a file or a process.
pub const LOOK: Duration = Duration::from_millis(50);
/// Retry interval for a full disk or an unreachable engine.
pub const RETRY: Duration = Duration::from_secs(1);
