//! Why a command failed.

use std::{
    error::Error,
    io::{self, ErrorKind, Write},
    path::Path,
    process::ExitCode,
};

use serde_json::{Value, json};

use super::output;
use crate::{
    base::problem::{Code, Problem, Violation},
    core::{config::ConfigError, store::Unusable},
};

/// The code of all other failures.
const FAILED: &str = "FAILED";

/// Why a command failed. Shown to the operator, who may see causes that callers may not. The codes are in
/// docs/operations.md.
#[derive(Debug)]
pub struct Failure {
    code: &'static str,
    detail: String,
    errors: Vec<Violation>,
}

impl Failure {
    /// A failure with this message, and no code of its own.
    pub fn new(detail: impl Into<String>) -> Self {
        Self { code: FAILED, detail: detail.into(), errors: Vec::new() }
    }

    /// A failure with a code that callers of the service know as well.
    pub(super) fn with_code(code: Code, detail: impl Into<String>) -> Self {
        Self { code: code.as_str(), ..Self::new(detail) }
    }

    /// An argument, a setting or a file is invalid.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::with_code(Code::ValidationFailed, detail)
    }

    /// A record or a file does not exist.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::with_code(Code::NotFound, detail)
    }

    /// A file can't be read or written.
    pub(super) fn of_file(path: &Path, error: &io::Error) -> Self {
        let detail = format!("{}: {error}", path.display());
        if error.kind() == ErrorKind::NotFound { Self::not_found(detail) } else { Self::new(detail) }
    }

    /// The same failure in other words.
    pub(super) fn reworded(self, words: impl FnOnce(&str) -> String) -> Self {
        Self { detail: words(&self.detail), ..self }
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
        let error = error.into();
        let code = error.chain().find_map(code_of).map_or(FAILED, Code::as_str);
        Self { code, ..Self::new(describe_chain(&error)) }
    }
}

/// The code of a failure with this cause, if the cause has one.
fn code_of(cause: &(dyn Error + 'static)) -> Option<Code> {
    if cause.is::<ConfigError>() {
        return Some(Code::ValidationFailed);
    }
    if let Some(unusable) = cause.downcast_ref::<Unusable>() {
        return unusable.may_come.then_some(Code::Unavailable);
    }
    if let Some(call) = cause.downcast_ref::<reqwest::Error>() {
        return (call.is_connect() || call.is_timeout()).then_some(Code::Unavailable);
    }
    let is_missing =
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound);
    is_missing.then_some(Code::NotFound)
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
    use super::*;

    #[test]
    fn a_cause_that_an_error_repeats_is_said_once() {
        let error = anyhow::anyhow!("refused").context("asked: refused").context("starting");
        assert_eq!(Failure::from(error).detail, "starting: asked: refused");
    }

    #[test]
    fn a_program_can_tell_failures_apart_by_their_code() {
        let missing = || std::io::Error::from(ErrorKind::NotFound);
        let code = |error: anyhow::Error| Failure::from(error).code;
        assert_eq!(code(anyhow::Error::from(missing()).context("muster.db")), "NOT_FOUND");
        assert_eq!(code(ConfigError(vec!["listen".to_owned()]).into()), "VALIDATION_FAILED");
        assert_eq!(code(anyhow::anyhow!("else")), "FAILED");
        let path = Path::new("a.yaml");
        assert_eq!(Failure::of_file(path, &missing()).code, "NOT_FOUND");
        assert_eq!(Failure::of_file(path, &ErrorKind::PermissionDenied.into()).code, "FAILED");
        let other = Failure::of_file(path, &missing()).reworded(|said| format!("[{said}]"));
        assert_eq!((other.code, other.detail.starts_with("[a.yaml: ")), ("NOT_FOUND", true));
    }
}
