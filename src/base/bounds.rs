//! The bounds that no attacker, no outage and no specification has set: one value for each kind. The others stand beside what
//! they protect, and say what they stop. Bounds that callers meet are in the schema (`@bounds`).

use std::time::Duration;

/// A name or a title that others write, and what vendors call something, in bytes.
pub const NAME: usize = 300;
/// An id of an agent's, in bytes: a session, a model, an option. It goes back to the agent as it is, so it is as long as hosts
/// allow.
pub const ID: usize = 500;
/// The name of a file or a folder, in bytes: file systems allow 255.
pub const FILE_NAME: usize = 240;
/// The beginning of a text that stands for it, in characters or bytes.
pub const LABEL: usize = 60;
/// A reason, a description or another sentence, in bytes or characters.
pub const REASON: usize = 1_000;
/// An error with what led to it, in bytes.
pub const DETAIL: usize = 8 << 10;
/// A text, a value or a form, in bytes.
pub const TEXT: usize = 64 << 10;
/// A message, or the content of a file that comes with one, in bytes.
pub const MESSAGE: usize = 512 << 10;
/// A file that the operator writes, or an answer of another service, in bytes.
pub const FILE: usize = 1 << 20;
/// A number that others report. Far more than there can be, and sums of it do not overflow.
pub const AMOUNT: i64 = 1 << 40;

/// Entries of a list that others write.
pub const LIST: usize = 100;
/// Entries of a longer list that a sentence or the log names.
pub const NAMED: usize = 20;
/// Old records that are kept beside the current ones.
pub const KEPT: i64 = 100;
/// Things that wait for a task.
pub const QUEUE: usize = 1_024;
/// Entries of a cache.
pub const CACHE_ENTRIES: u64 = 10_000;
/// How long an entry of a cache counts that no change removes.
pub const CACHE_AGE: Duration = Duration::from_secs(5);

/// Records that one transaction handles, with several statements for each. Others wait meanwhile.
pub const BATCH: u32 = 100;
/// Rows that one statement reads, writes or deletes. `SQLite` binds 32,766 values to one.
pub const ROWS: u32 = 500;

/// The answer of another service.
pub const NETWORK_WAIT: Duration = Duration::from_secs(20);
/// An answer that something else waits for meanwhile.
pub const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// The last words to a client, and what is only useful to know.
pub const FAREWELL: Duration = Duration::from_secs(2);
/// How often the state of something that runs is compared with the database.
pub const LOOK: Duration = Duration::from_secs(5);
/// How often a file is compared with what was read from it.
pub const POLL: Duration = Duration::from_millis(500);
/// How often something that is away is tried.
pub const RETRY: Duration = Duration::from_secs(1);
/// By how much the clocks of two machines may differ.
pub const CLOCK_SKEW: Duration = Duration::from_mins(1);
