//! Output of the program itself. Nothing here panics, unlike `println!` and `eprintln!`: a closed pipe must not end an
//! agent.

use std::{
    fmt::Display,
    io::{self, Write},
};

use crate::about;

pub(crate) fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| about("standard output", error))
}

/// Writes a line to standard error. A failure can't be reported anywhere.
pub(crate) fn print_error(text: impl Display) {
    let _ = writeln!(io::stderr(), "muster-shim: {text}");
}
