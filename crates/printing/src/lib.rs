//! What the service, the host and their commands write to standard output and standard error.
//!
//! A [`Log`] writes lines by a thread of its own: a full disk, a reader that has ended, or one that stands still costs
//! lines, which are counted, and nothing else. A command [`print`]s its result, which it must not lose in silence, and
//! [`complain`]s about what went wrong. Nothing here panics, unlike `println!` and `eprintln!`, which the law in `tests/it/log_lines.rs` rejects.

mod log;

use std::io::{self, ErrorKind, IsTerminal, Write};

pub use self::log::{Log, finish, log_panics, lost, to_stderr};

/// Writes to standard output what a command was asked for. A reader that has gone away wants no more of it, which is not
/// a failure.
///
/// # Errors
/// It can't be written: the disk is full, for example.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    unless_gone(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The same result, without the failure of a reader that has gone away.
///
/// # Errors
/// All others.
pub fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line to standard error, after what is left of the log. If that fails, there is no one left to tell.
pub fn complain(text: &str) {
    finish();
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether standard error is a terminal.
#[must_use]
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}
