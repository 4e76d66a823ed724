//! General bounds, one for each kind of value. A bound with a specific reason (an attack, an outage, a specification)
//! stands beside the code that it protects and gives that reason. Bounds on callers' input are in the schema
//! (`@bounds`).

use std::time::Duration;

/// A name or title from outside, including vendors' names for things, in bytes.
pub const NAME: usize = 300;
/// An id that an agent assigns (to a session, a model, an option), in bytes. It is returned to the agent unchanged, so
/// it may be as long as hosts allow.
pub const ID: usize = 500;
/// The name of a file or a folder, in bytes: file systems allow 255.
pub const FILE_NAME: usize = 240;
/// The start of a text, used as its label, in characters or bytes.
pub const LABEL: usize = 60;
/// A reason, a description or another sentence, in bytes or characters.
pub const REASON: usize = 1_000;
/// An error with its causes, in bytes.
pub const DETAIL: usize = 8 << 10;
/// A text, a value or a form, in bytes.
pub const TEXT: usize = 64 << 10;
/// A message, or the content of a file that comes with one, in bytes.
pub const MESSAGE: usize = 512 << 10;
/// A file written by the operator, or another service's answer, in bytes.
pub const FILE: usize = 1 << 20;
/// A number reported from outside. Larger than any real one, and sums do not overflow.
pub const AMOUNT: i64 = 1 << 40;

/// Entries of a list from outside.
pub const LIST: usize = 100;
/// Entries of a longer list that a sentence or the log names.
pub const LISTED_IN_TEXT: usize = 20;
/// Old records kept beside the current ones.
pub const HISTORY: i64 = 100;
/// Items waiting for a task.
pub const QUEUE: usize = 1_024;
/// Entries of a cache.
pub const CACHE_ENTRIES: u64 = 10_000;
/// How long a cache entry is valid if no change removes it.
pub const CACHE_AGE: Duration = Duration::from_secs(5);

/// Records handled in one transaction, with several statements each. Other writers wait meanwhile.
pub const BATCH: u32 = 100;
/// Rows that one statement reads, writes or deletes. `SQLite` binds 32,766 values to one.
pub const ROWS: u32 = 500;

/// How long to wait for another service's answer.
pub const NETWORK_WAIT: Duration = Duration::from_secs(20);
/// How long to wait for an answer that blocks other work.
pub const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for something that may be given up: a client's last message, optional information, the last tasks
/// of a shutdown.
pub const BRIEF_WAIT: Duration = Duration::from_secs(2);
/// How long a person may stay on another service's page. A stolen address or cookie is worthless afterwards.
pub const AWAY: Duration = Duration::from_mins(10);
/// How often running work is compared with the database.
pub const RECONCILE_INTERVAL: Duration = Duration::from_secs(5);
/// How often a file is checked for changes.
pub const POLL: Duration = Duration::from_millis(500);
/// How long to wait before trying an unavailable service again.
pub const RETRY: Duration = Duration::from_secs(1);
/// By how much the clocks of two machines may differ.
pub const CLOCK_SKEW: Duration = Duration::from_mins(1);
