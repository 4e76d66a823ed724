//! The words that control the agent without a model, documented in `docs/agents.md`.
//!
//! A word stands at the beginning of a line, or after the author's name in a conversation of several people ("Ada:
//! tools"). A line that deviates from the documented form is plain text: "do you …" or "call me …" in a normal message
//! must trigger nothing.

use agent_client_protocol::v1::schema::ToolKind;
use serde_json::{Map, Value};

/// A word on its line, or several lines of plain text.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// Answer plain text.
    Text(String),
    /// Send a thought.
    Think(String),
    /// Send a message in pieces.
    Slowly {
        pieces: u64,
        /// Milliseconds.
        pause: u64,
    },
    /// Ask a person.
    Ask {
        question: String,
        options: Vec<String>,
    },
    /// Ask for permission, and pretend an action.
    Do {
        kind: ToolKind,
        title: String,
        input: Value,
    },
    Call {
        tool: String,
        input: Map<String, Value>,
    },
    Tools,
    File {
        name: String,
        text: String,
    },
    /// Send this many updates.
    Flood(u64),
    Hang {
        /// Ignore a cancel.
        hard: bool,
    },
    /// Print invalid messages.
    Garbage,
    LongLine(u64),
    /// Write to standard error.
    Stderr(String),
    /// Exit with this code.
    Exit(u8),
    /// Abort.
    Crash,
    /// Write a file of this many MiB.
    Fill(u64),
    Error,
    /// Fail with a rejected credential.
    Auth,
    /// Report whether an environment variable is set.
    Env(String),
    /// Add a note.
    Remember(String),
    /// List the notes.
    Recall,
}

/// Splits a prompt into words. Consecutive lines of plain text are one text.
pub fn parse(prompt: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for line in prompt.lines() {
        let parsed = parse_word(line.trim()).or_else(|| parse_word(line.split_once(": ")?.1.trim()));
        match (parsed, words.last_mut()) {
            (Some(word), _) => words.push(word),
            (None, Some(Word::Text(text))) => {
                text.push('\n');
                text.push_str(line);
            }
            (None, _) => words.push(Word::Text(line.to_owned())),
        }
    }
    for word in &mut words {
        if let Word::Text(text) = word {
            *text = text.trim().to_owned();
        }
    }
    words.retain(|word| *word != Word::Text(String::new()));
    if words.is_empty() { vec![Word::Text(String::new())] } else { words }
}

fn parse_word(line: &str) -> Option<Word> {
    let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
    let text = (!rest.is_empty()).then(|| rest.to_owned());
    match word {
        "think" => text.map(Word::Think),
        "slowly" => {
            let (pieces, pause) = rest.split_once(' ')?;
            Some(Word::Slowly {
                pieces: parse_number(pieces, 100_000)?,
                pause: parse_number(pause.trim(), 60_000)?,
            })
        }
        "ask" => {
            let mut parts = rest.split('|').map(|part| part.trim().to_owned());
            let question = parts.next().filter(|question| !question.is_empty())?;
            Some(Word::Ask { question, options: parts.filter(|option| !option.is_empty()).collect() })
        }
        "do" => {
            let (kind, rest) = rest.split_once(' ')?;
            let (title, input) = split_input(rest)?;
            Some(Word::Do {
                kind: parse_tool_kind(kind)?,
                title: title.to_owned(),
                input: Value::Object(input),
            })
        }
        "call" => {
            let (tool, input) = split_input(rest)?;
            (!tool.contains(' ')).then(|| Word::Call { tool: tool.to_owned(), input })
        }
        "file" => {
            let (name, text) = rest.split_once(' ')?;
            let file = Word::File { name: name.to_owned(), text: text.trim().to_owned() };
            name.contains('.').then_some(file)
        }
        "flood" => Some(Word::Flood(parse_number(rest, 1_000_000)?)),
        "hang" => match rest {
            "" => Some(Word::Hang { hard: false }),
            "hard" => Some(Word::Hang { hard: true }),
            _ => None,
        },
        "longline" => Some(Word::LongLine(parse_number(rest, 256 * 1024 * 1024)?)),
        "stderr" => text.map(Word::Stderr),
        "exit" => Some(Word::Exit(rest.parse().ok()?)),
        "fill" => Some(Word::Fill(parse_number(rest, 64 * 1024)?)),
        "env" => (!rest.contains(' ')).then_some(text).flatten().map(Word::Env),
        "remember" => text.map(Word::Remember),
        _ if !rest.is_empty() => None,
        "tools" => Some(Word::Tools),
        "garbage" => Some(Word::Garbage),
        "crash" => Some(Word::Crash),
        "error" => Some(Word::Error),
        "auth" => Some(Word::Auth),
        "recall" => Some(Word::Recall),
        _ => None,
    }
}

fn parse_number(text: &str, max: u64) -> Option<u64> {
    text.parse().ok().filter(|number| *number <= max)
}

/// Splits `TEXT {json}`; the input is optional.
fn split_input(text: &str) -> Option<(&str, Map<String, Value>)> {
    let (title, input) = match text.find('{') {
        Some(at) => (&text[..at], serde_json::from_str(&text[at..]).ok()?),
        None => (text, Map::new()),
    };
    let title = title.trim();
    (!title.is_empty()).then_some((title, input))
}

fn parse_tool_kind(name: &str) -> Option<ToolKind> {
    const KINDS: [&str; 9] =
        ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"];
    KINDS.contains(&name).then(|| serde_json::from_value(name.into()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_words_or_text_in_their_order() {
        let words = parse("Hello\nyou\n\nthink so\n  slowly 3 10 \nask Which? | red | blue\nhang hard\nBye");
        let options = vec!["red".to_owned(), "blue".to_owned()];
        assert_eq!(
            words,
            [
                Word::Text("Hello\nyou".to_owned()),
                Word::Think("so".to_owned()),
                Word::Slowly { pieces: 3, pause: 10 },
                Word::Ask { question: "Which?".to_owned(), options },
                Word::Hang { hard: true },
                Word::Text("Bye".to_owned()),
            ]
        );
    }

    #[test]
    fn input_is_json_and_may_be_missing() {
        let Word::Do { kind, title, input } = &parse(r#"do execute Run it {"command": "ls {a,b}"}"#)[0]
        else {
            panic!("no action")
        };
        assert_eq!(
            (*kind, title.as_str(), input),
            (ToolKind::Execute, "Run it", &json!({ "command": "ls {a,b}" }))
        );
        assert_eq!(parse("call echo"), [Word::Call { tool: "echo".to_owned(), input: Map::new() }]);
    }

    #[test]
    fn a_word_may_follow_its_authors_name() {
        assert_eq!(parse("Ada: tools\nBob: exit now"), [Word::Tools, Word::Text("Bob: exit now".to_owned())]);
    }

    #[test]
    fn normal_messages_are_text() {
        for line in [
            "do you know {me}?",
            "do dance now",
            "call me later",
            "call echo {broken",
            "slowly but surely",
            "file a complaint",
            "error in line 3",
            "exit now",
            "exit 256",
            "hang on",
            "flood 1000001",
            "think",
            "tools please",
            "",
        ] {
            assert_eq!(parse(line), [Word::Text(line.to_owned())], "{line}");
        }
    }

    #[test]
    fn the_documented_words_are_the_words() {
        let docs = include_str!("../../../docs/agents.md");
        let (_, table) = docs.split_once("### Words of the reference agent").unwrap();
        let (table, _) = table.split_once("### ").unwrap();
        let documented: HashSet<_> = table
            .lines()
            .filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0.replace("\\|", "|")))
            .map(|line| {
                let words = parse(&line);
                assert!(!matches!(words[..], [Word::Text(_)]), "{line} is not a word");
                std::mem::discriminant(&words[0])
            })
            .collect();
        // All but plain text.
        assert_eq!(documented.len(), 20);
    }
}
