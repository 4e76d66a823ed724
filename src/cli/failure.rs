//! Why a command failed.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde_json::{Value, json};

use super::output;
use crate::base::problem::{Problem, Violation};

/// Why a command failed. Shown to the operator, who may see causes that callers may not.
#[derive(Debug)]
pub struct Failure {
    code: &'static str,
    detail: String,
    errors: Vec<Violation>,
}

impl Failure {
    /// A failure with this message.
    pub fn new(detail: impl Into<String>) -> Self {
        Self { code: "FAILED", detail: detail.into(), errors: Vec::new() }
    }

    fn json(&self) -> Value {
        json!({ "error": { "code": self.code, "detail": self.detail, "errors": self.errors } })
    }

    pub(super) fn print(&self, json: bool) -> ExitCode {
        let mut text = if json { self.json().to_string() } else { format!("muster: {}", self.detail) };
        if !json && self.errors.len() > 1 {
            for violation in &self.errors {
                text.push_str("\n  ");
                text.push_str(&violation.detail);
            }
        }
        muster_printing::print_error(&text);
        ExitCode::FAILURE
    }
}

/// Rejects an invalid command line, or shows the help that was requested.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    // The command line did not parse, so the flag has to be found by hand.
    let json = std::env::args_os().any(|argument| argument == "--json");
    if json && error.use_stderr() {
        let detail = error.to_string();
        let failure = Failure { code: "USAGE", ..Failure::new(detail.trim()) };
        failure.print(json);
        return ExitCode::from(2);
    }
    let shown = error.print().and_then(|()| io::stdout().flush());
    match muster_printing::ignore_broken_pipe(shown) {
        _ if error.use_stderr() => ExitCode::from(2),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::unwritable(&error, "").print(json),
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        // The operator reads the log as well, so the cause is shown here.
        let detail = match problem.cause() {
            Some(cause) if problem.code.status().is_server_error() => describe_chain(cause),
            _ => problem.detail,
        };
        Self { code: problem.code.as_str(), detail, errors: problem.errors }
    }
}

/// Errors without a problem code: configuration, database, files.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(describe_chain(&error.into()))
    }
}

/// An error and its causes. Many errors repeat their cause in their own text; this shows it once.
fn describe_chain(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if said.is_empty() {
            said = cause;
        } else if !said.contains(&cause) {
            said.push_str(": ");
            said.push_str(&cause);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn a_cause_that_an_error_repeats_is_said_once() {
        let error = anyhow::anyhow!("refused").context("asked: refused").context("starting");
        assert_eq!(Failure::from(error).detail, "starting: asked: refused");
    }
}
