//! The words that tell the agent what to do when it has no model. They are documented in `docs/agents.md`.
//!
//! A word stands at the beginning of a line, or after the name of its author: where several people write, each text begins with
//! it ("Ada: tools"). A line that isn't exactly what the table says is plain text, so that what people say by accident
//! ("do you …", "call me …") is only answered.

use agent_client_protocol::v1::schema::ToolKind;
use serde_json::{Map, Value};

/// A line, or several lines of plain text.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// Plain text: answer it.
    Text(String),
    /// Think something.
    Think(String),
    /// Say something in pieces.
    Slowly {
        /// How many.
        pieces: u64,
        /// The time between them, in milliseconds.
        pause: u64,
    },
    /// Ask a person.
    Ask {
        /// The question.
        question: String,
        /// The options.
        options: Vec<String>,
    },
    /// Ask for permission, and pretend to act.
    Do {
        /// The kind of tool.
        kind: ToolKind,
        /// What it does.
        title: String,
        /// Its input.
        input: Value,
    },
    /// Call a tool.
    Call {
        /// The tool.
        tool: String,
        /// Its input.
        input: Map<String, Value>,
    },
    /// List the tools.
    Tools,
    /// Send a file.
    File {
        /// Its name.
        name: String,
        /// Its content.
        text: String,
    },
    /// Say very much.
    Flood(u64),
    /// Never answer.
    Hang {
        /// Not even when cancelled.
        hard: bool,
    },
    /// Print lines that are not messages.
    Garbage,
    /// Print one line of this many bytes.
    LongLine(u64),
    /// End the process.
    Exit(u8),
    /// End the process by a signal.
    Crash,
    /// Write this many MiB into a file.
    Fill(u64),
    /// Fail.
    Error,
    /// Fail as if the model had refused the credential.
    Auth,
    /// Tell whether a variable of the environment is set.
    Env(String),
    /// Remember a text.
    Remember(String),
    /// Say what was remembered.
    Recall,
}

/// What a prompt says, in its order. Lines of plain text that follow each other are one text.
pub fn parse(prompt: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for line in prompt.lines() {
        let said = word(line.trim()).or_else(|| word(line.split_once(": ")?.1.trim()));
        match (said, words.last_mut()) {
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

fn word(line: &str) -> Option<Word> {
    let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
    let text = (!rest.is_empty()).then(|| rest.to_owned());
    match word {
        "think" => text.map(Word::Think),
        "slowly" => {
            let (pieces, pause) = rest.split_once(' ')?;
            Some(Word::Slowly { pieces: number(pieces, 100_000)?, pause: number(pause.trim(), 60_000)? })
        }
        "ask" => {
            let mut parts = rest.split('|').map(|part| part.trim().to_owned());
            let question = parts.next().filter(|question| !question.is_empty())?;
            Some(Word::Ask { question, options: parts.filter(|option| !option.is_empty()).collect() })
        }
        "do" => {
            let (kind, rest) = rest.split_once(' ')?;
            let (title, input) = with_input(rest)?;
            Some(Word::Do { kind: tool_kind(kind)?, title: title.to_owned(), input: Value::Object(input) })
        }
        "call" => {
            let (tool, input) = with_input(rest)?;
            (!tool.contains(' ')).then(|| Word::Call { tool: tool.to_owned(), input })
        }
        "file" => {
            let (name, text) = rest.split_once(' ')?;
            let file = Word::File { name: name.to_owned(), text: text.trim().to_owned() };
            name.contains('.').then_some(file)
        }
        "flood" => Some(Word::Flood(number(rest, 1_000_000)?)),
        "hang" => match rest {
            "" => Some(Word::Hang { hard: false }),
            "hard" => Some(Word::Hang { hard: true }),
            _ => None,
        },
        "longline" => Some(Word::LongLine(number(rest, 256 * 1024 * 1024)?)),
        "exit" => Some(Word::Exit(rest.parse().ok()?)),
        "fill" => Some(Word::Fill(number(rest, 64 * 1024)?)),
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

fn number(text: &str, most: u64) -> Option<u64> {
    text.parse().ok().filter(|number| *number <= most)
}

/// `TEXT {json}`; the input may be missing.
fn with_input(text: &str) -> Option<(&str, Map<String, Value>)> {
    let (title, input) = match text.find('{') {
        Some(at) => (&text[..at], serde_json::from_str(&text[at..]).ok()?),
        None => (text, Map::new()),
    };
    let title = title.trim();
    (!title.is_empty()).then_some((title, input))
}

/// A kind of tool, in the protocol's words.
fn tool_kind(name: &str) -> Option<ToolKind> {
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
    fn a_word_follows_the_name_of_its_author() {
        assert_eq!(parse("Ada: tools\nBob: exit now"), [Word::Tools, Word::Text("Bob: exit now".to_owned())]);
    }

    #[test]
    fn what_people_say_by_accident_is_text() {
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
        assert_eq!(documented.len(), 19);
    }
}
