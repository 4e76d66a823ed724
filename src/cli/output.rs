//! The output of a command: the same facts as text for people and as one JSON object.

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
    process::ExitCode,
};

use serde_json::Value;

use super::Failure;
use crate::base::{files, plain::without_controls};

/// The output of a command.
#[derive(Debug)]
pub struct Output {
    json: Value,
    text: String,
    code: u8,
    /// Added to the error if the output can't be printed.
    if_lost: String,
}

impl Output {
    /// No output: the command has already printed it.
    #[must_use]
    pub fn none() -> Self {
        Self::with_text(Value::Null, "")
    }

    /// The object's keys and values; for people, one per line.
    #[must_use]
    pub fn from_json(json: Value) -> Self {
        let mut text = String::new();
        for (key, value) in json.as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{key}: {value}\n"));
        }
        Self::with_text(json, text)
    }

    /// This object for programs, and this text for people.
    pub fn with_text(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), code: 0, if_lost: "The command itself has succeeded.".to_owned() }
    }

    /// The same, with another line for people.
    #[must_use]
    pub fn and(mut self, line: &str) -> Self {
        self.text.push_str(line);
        self
    }

    /// The command worked but found a problem: exit with code 1.
    #[must_use]
    pub fn failed_if(self, bad: bool) -> Self {
        if bad { self.with_code(1) } else { self }
    }

    /// The command worked, and its exit code says what it found.
    #[must_use]
    pub fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Adds to the error if the output can't be printed: what now exists or has changed, and what to do without the
    /// lost output, such as a secret.
    #[must_use]
    pub fn if_lost(mut self, what: impl Into<String>) -> Self {
        self.if_lost = what.into();
        self
    }

    pub(super) fn print(self, json: bool) -> Result<ExitCode, Failure> {
        let text = if json && !self.json.is_null() { self.json.to_string() } else { self.text };
        let text = text.trim_end();
        if !text.is_empty() {
            let printed = muster_printing::print(&format!("{text}\n"));
            printed.map_err(|error| unwritable(&error, if self.code == 0 { &self.if_lost } else { "" }))?;
        }
        Ok(ExitCode::from(self.code))
    }
}

/// Creates a file for a command's output, which only its owner can read.
pub(super) fn create(path: &Path) -> Result<File, Failure> {
    files::create_private(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::new(format!("{} already exists and will not be overwritten", path.display()))
        }
        _ => Failure::of_file(path, &error),
    })
}

/// The failure to write standard output, for example on a full disk. `more` follows the reason.
pub(super) fn unwritable(error: &io::Error, more: &str) -> Failure {
    Failure::new(format!("Standard output can't be written: {error}. {more}").trim_end())
}

/// Rows under a heading, with columns just wide enough.
#[must_use]
pub(super) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> = std::iter::once(heading.map(str::to_owned))
        .chain(rows.iter().map(|row| row.each_ref().map(|cell| without_controls(cell))))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_line_up_and_nothing_commands_the_terminal() {
        let rows = [["1".to_owned(), "Élise".to_owned()], ["1000".to_owned(), "a\u{1b}[2Jb\nc".to_owned()]];
        assert_eq!(table(["id", "name"], &rows), "id    name\n1     Élise\n1000  a\u{fffd}[2Jb\u{fffd}c\n");
    }
}
