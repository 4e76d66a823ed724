//! Output outside the protocol. Unlike `println!` and `eprintln!`, it does not panic when the reader is gone.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

/// Writes to standard output, and returns the program's exit code.
pub fn print(text: impl Display) -> ExitCode {
    let mut out = io::stdout();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(format_args!("standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to standard error. A failure can't be reported anywhere.
pub fn report_error(text: impl Display) {
    let _ = writeln!(io::stderr(), "muster-agent: {text}");
}
