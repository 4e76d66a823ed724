//! What a command answers: the same facts as lines for people and as one JSON object.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde_json::Value;

/// What a command answers.
#[derive(Debug)]
pub struct Output {
    json: Value,
    text: String,
    good: bool,
}

impl Output {
    /// Nothing to say: the command has said it.
    #[must_use]
    pub fn none() -> Self {
        Self { json: Value::Null, text: String::new(), good: true }
    }

    /// The object's keys and values; for people, a line each.
    #[must_use]
    pub fn of(json: Value) -> Self {
        let mut text = String::new();
        for (key, value) in json.as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{key}: {value}\n"));
        }
        Self { json, text, good: true }
    }

    /// This object for programs, this text for people.
    pub fn with_text(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), good: true }
    }

    /// The process ends with the exit code 1 although the command has done what it should: it found something.
    #[must_use]
    pub fn failed_if(mut self, bad: bool) -> Self {
        self.good = !bad;
        self
    }

    pub(super) fn print(self, json: bool) -> ExitCode {
        let text = if json && !self.json.is_null() { self.json.to_string() } else { self.text };
        let text = text.trim_end();
        // A reader that has gone away is no failure of the command.
        if !text.is_empty() {
            let _ = writeln!(io::stdout(), "{text}");
        }
        if self.good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
