//! What the program says itself. Nothing here panics, unlike `println!` and `eprintln!`: a reader that is gone ends no agent.

use std::{
    fmt::Display,
    io::{self, Write},
};

use crate::about;

/// Writes what was asked for to standard output.
pub(crate) fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| about("standard output", error))
}

/// Writes a line to standard error. If that fails, there is no one left to tell.
pub(crate) fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "muster-shim: {text}");
}
