//! Standard output and standard error of the service, the host and their commands, and their pages of [`metrics`].
//!
//! A [`Log`] writes lines on its own thread: a full disk, a closed or a blocked reader costs lines, which are counted,
//! and nothing else. A command [`print`]s its result, which must not get lost silently, and reports problems with
//! [`print_error`]. Nothing here panics, unlike `println!` and `eprintln!`, which the law in `tests/it/operations/log_lines.rs`
//! rejects.

mod log;
pub mod metrics;

use std::io::{self, ErrorKind, IsTerminal, Write};

pub use self::log::{Log, finish, log_panics, lost, to_stderr};

/// Prints a command's result to standard output. A closed pipe is not an error.
///
/// # Errors
///
/// The write failed, for example on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    ignore_broken_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Ignores the error of a closed pipe.
///
/// # Errors
///
/// All others.
pub fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line to standard error, after the pending log. A failure can't be reported anywhere.
pub fn print_error(text: &str) {
    finish();
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether standard error is a terminal.
#[must_use]
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}
