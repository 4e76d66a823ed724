//! What the program says beside the protocol. Nothing here panics, unlike `println!` and `eprintln!`: a reader that is gone
//! ends no turn.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

/// Writes what was asked for to standard output, which is all that the program does.
pub fn print(text: impl Display) -> ExitCode {
    let mut out = io::stdout();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to standard error. If that fails, there is no one left to tell.
pub fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "muster-agent: {text}");
}
