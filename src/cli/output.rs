//! The output of a command: the same facts as text for people and as one JSON object.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde_json::Value;

use crate::base::plain::plain;

/// The output of a command.
#[derive(Debug)]
pub struct Output {
    json: Value,
    text: String,
    good: bool,
}

impl Output {
    /// No output: the command has already printed it.
    #[must_use]
    pub fn none() -> Self {
        Self { json: Value::Null, text: String::new(), good: true }
    }

    /// The object's keys and values; for people, one per line.
    #[must_use]
    pub fn of(json: Value) -> Self {
        let mut text = String::new();
        for (key, value) in json.as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{key}: {value}\n"));
        }
        Self { json, text, good: true }
    }

    /// This object for programs, and this text for people.
    pub fn with_text(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), good: true }
    }

    /// The same, with another line for people.
    #[must_use]
    pub fn and(mut self, line: &str) -> Self {
        self.text.push_str(line);
        self
    }

    /// The command worked but found a problem: exit with code 1.
    #[must_use]
    pub fn failed_if(mut self, bad: bool) -> Self {
        self.good = !bad;
        self
    }

    pub(super) fn print(self, json: bool) -> ExitCode {
        let text = if json && !self.json.is_null() { self.json.to_string() } else { self.text };
        let text = text.trim_end();
        // It is not a failure if the reader has gone away.
        if !text.is_empty() {
            let _ = writeln!(io::stdout(), "{text}");
        }
        if self.good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Rows under a heading, with columns just wide enough.
#[must_use]
pub(super) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> = std::iter::once(heading.map(str::to_owned))
        .chain(rows.iter().map(|row| row.each_ref().map(|cell| plain(cell))))
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
