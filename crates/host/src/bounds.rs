//! The bounds that no attacker and no outage has set: one a kind. Those that one has set are beside what they protect.

use std::time::Duration;

/// A reason or a piece of text, in bytes.
pub const TEXT: usize = 4096;
/// The name of a model, a mode or a request, in bytes.
pub const NAME: usize = 200;
/// The id of an option, in bytes: longer ones would let an agent fill the journal.
pub const ID: usize = 500;
/// Things that an agent lists: values, tool calls, lines that wait for it.
pub const LIST: usize = 1000;
/// Things that wait for a task, or are handled in one step.
pub const BATCH: usize = 256;
/// The same in bytes, about.
pub const PORTION: usize = 256 * 1024;
/// Open files of a program.
pub const OPEN_FILES: u64 = 8192;

/// The control plane's answer.
pub const NETWORK_WAIT: Duration = Duration::from_secs(15);
/// A process that starts or ends, on a slow disk.
pub const PROCESS_WAIT: Duration = Duration::from_secs(30);
/// The answer of a process that runs.
pub const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// The same, of what is only useful to know.
pub const SOON: Duration = Duration::from_secs(2);
/// How often a file or a process is looked at.
pub const LOOK: Duration = Duration::from_millis(50);
/// How often a disk or an engine that is away is tried.
pub const RETRY: Duration = Duration::from_secs(1);
