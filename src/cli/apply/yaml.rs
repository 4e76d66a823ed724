//! YAML 1.2: read into [`Node`]s, and written.
//!
//! A file is data: aliases, tags and keys that are not text are refused. What is written is read back as it was, and
//! the same data is always the same text.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::{Map, Number, Value};

use super::tree::{Content, Mistake, Node};
use crate::base::plain::is_hidden;

/// The deepest nesting. No record needs more, and values are read and dropped recursively.
const DEEPEST: usize = 32;

/// The documents of a text.
pub fn read(text: &str) -> Result<Vec<Node>, Mistake> {
    let mut building = Building::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| unreadable(&error))?;
        building.take(event, span)?;
    }
    Ok(building.documents)
}

fn unreadable(error: &ScanError) -> Mistake {
    Mistake::new(error.marker().line(), error.info())
}

/// The documents read so far, and the collections that are open.
#[derive(Default)]
struct Building {
    documents: Vec<Node>,
    open: Vec<Open>,
}

/// A list or a map that has not ended.
struct Open {
    node: Node,
    /// The key whose value comes next, and its line.
    key: Option<(String, usize)>,
}

impl Building {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Mistake> {
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_extras(line, anchor, tag.is_some())?;
                self.scalar(line, text.into_owned(), style)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_extras(line, anchor, tag.is_some())?;
                self.begin(line, Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                refuse_extras(line, anchor, tag.is_some())?;
                self.begin(line, Content::Map(Vec::new()))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(closed) => self.put(closed.node),
                None => Ok(()),
            },
            Event::Alias(_) => Err(Mistake::new(line, "aliases are not supported: write the value again")),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, line: usize, content: Content) -> Result<(), Mistake> {
        if self.open.len() >= DEEPEST {
            return Err(Mistake::new(line, format!("nested more than {DEEPEST} levels deep")));
        }
        if self.open.last().is_some_and(Open::awaits_key) {
            return Err(Mistake::new(line, "a key must be text"));
        }
        self.open.push(Open { node: Node { line, content }, key: None });
        Ok(())
    }

    fn scalar(&mut self, line: usize, text: String, style: ScalarStyle) -> Result<(), Mistake> {
        if let Some(open) = self.open.last_mut().filter(|open| open.awaits_key()) {
            open.key = Some((text, line));
            return Ok(());
        }
        let value = if style == ScalarStyle::Plain { resolved(&text) } else { Value::String(text) };
        self.put(Node { line, content: Content::Scalar(value) })
    }

    /// Puts a finished value into what is open.
    fn put(&mut self, node: Node) -> Result<(), Mistake> {
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        match &mut open.node.content {
            Content::List(items) => items.push(node),
            Content::Map(entries) => {
                let Some((key, line)) = open.key.take() else {
                    return Err(Mistake::new(node.line, "a key must be text"));
                };
                require_unique(&key, line, entries)?;
                // The key is where people look for a value.
                entries.push((key, Node { line, ..node }));
            }
            Content::Scalar(_) => {}
        }
        Ok(())
    }
}

impl Open {
    fn awaits_key(&self) -> bool {
        self.key.is_none() && matches!(self.node.content, Content::Map(_))
    }
}

fn refuse_extras(line: usize, anchor: usize, has_tag: bool) -> Result<(), Mistake> {
    match (anchor, has_tag) {
        (0, false) => Ok(()),
        (_, true) => Err(Mistake::new(line, "tags are not supported")),
        _ => Err(Mistake::new(line, "anchors are not supported")),
    }
}

/// Refuses a key that appears twice in one map.
fn require_unique(key: &str, line: usize, before: &[(String, Node)]) -> Result<(), Mistake> {
    match before.iter().find(|(known, _)| known == key) {
        None => Ok(()),
        Some((_, first)) => Err(Mistake::new(line, format!("`{key}` is also on line {}", first.line))),
    }
}

/// A text without quotes: null, true, false, a number, or itself (the core schema of YAML 1.2).
fn resolved(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => number(text).map_or_else(|| text.into(), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let begins =
        text.strip_prefix(['-', '+']).unwrap_or(text).starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_numeral = begins && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_numeral {
        return None;
    }
    text.parse::<i64>().map(Number::from).ok().or_else(|| Number::from_f64(text.parse().ok()?))
}

/// Writes a map as a document.
pub fn write(map: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_map(&mut text, map, 0);
    text
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

fn write_map(text: &mut String, map: &Map<String, Value>, depth: usize) {
    for (n, (key, value)) in map.iter().enumerate() {
        // The first key of an item of a list follows its dash.
        if n > 0 || text.is_empty() || text.ends_with('\n') {
            indent(text, depth);
        }
        text.push_str(&in_one_line(key));
        text.push(':');
        write_value(text, value, depth + 1);
    }
}

/// Writes a value behind its key or dash; what needs more lines is this deep.
fn write_value(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if map.is_empty() => text.push_str(" {}\n"),
        Value::Object(map) => {
            text.push('\n');
            write_map(text, map, depth);
        }
        Value::Array(items) if items.is_empty() => text.push_str(" []\n"),
        Value::Array(items) => {
            text.push('\n');
            for item in items {
                indent(text, depth);
                text.push('-');
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        text.push(' ');
                        write_map(text, map, depth + 1);
                    }
                    item => write_value(text, item, depth + 1),
                }
            }
        }
        Value::String(words) if is_block(words) => write_block(text, words, depth),
        Value::String(words) => text.push_str(&format!(" {}\n", in_one_line(words))),
        other => text.push_str(&format!(" {other}\n")),
    }
}

/// Whether a text is best written line by line: it has several, and none that YAML would read as another.
fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with(char::is_whitespace)
        && !text.lines().any(|line| line.ends_with(char::is_whitespace))
        && !text.contains(|c: char| c == '\r' || c == '\t' || is_hidden(c))
}

fn write_block(text: &mut String, words: &str, depth: usize) {
    text.push_str(if words.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in words.lines() {
        if !line.is_empty() {
            indent(text, depth);
            text.push_str(line);
        }
        text.push('\n');
    }
}

/// A text in one line: without quotes if every reader of YAML takes it for text.
fn in_one_line(text: &str) -> String {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " _-./@".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if is_hidden(letter) || letter.is_whitespace() && letter != ' ' => {
                quoted.push_str(&format!("\\U{:08X}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn again(value: &Value) -> Value {
        let map = Map::from_iter([("a key".to_owned(), value.clone())]);
        let text = write(&map);
        let mut documents = read(&text).unwrap_or_else(|mistake| panic!("{mistake:?} in\n{text}"));
        assert_eq!(documents.len(), 1, "{text}");
        documents.remove(0).value()["a key"].take()
    }

    #[test]
    fn values_are_as_the_core_schema_says() {
        let text =
            "a: ~\nb: yes\nc: 007\nd: -1.5e3\ne: '1'\nf: 1.2.3\ng: .5\nh: |\n  x\n   y\ni: null\nj: TRUE\n";
        let value = read(text).unwrap()[0].value();
        let expected = json!({
            "a": null, "b": "yes", "c": 7, "d": -1500.0, "e": "1", "f": "1.2.3", "g": 0.5, "h": "x\n y\n", "i": null,
            "j": true,
        });
        assert_eq!(value, expected);
        assert_eq!(read("a: 1\n---\nb: 2\n").unwrap().len(), 2);
    }

    #[test]
    fn what_is_more_than_data_is_refused_with_its_line() {
        for (text, line, what) in [
            ("a: 1\nb: &x 2\nc: *x\n", 2, "anchors"),
            ("a: 1\nb: !!str 2\n", 2, "tags"),
            ("a: 1\n[x, y]: 2\n", 2, "text"),
            (&format!("a: {}1", "[".repeat(40)), 1, "levels"),
        ] {
            let mistake = read(text).unwrap_err();
            assert!(mistake.line == line && mistake.what.contains(what), "{text}: {mistake:?}");
        }
    }

    #[test]
    fn texts_are_written_for_people() {
        let map = json!({
            "skills": [{ "name": "triage", "content": "# Triage\n\n- read\n  it\n" }],
            "labels": { "a b": "no", "x": "1", "y: z": "é\u{202e}" },
            "pass": { "env": "PASS" },
            "none": [],
        });
        let text = write(map.as_object().unwrap());
        let expected = r#"skills:
  - name: triage
    content: |
      # Triage

      - read
        it
labels:
  a b: "no"
  x: "1"
  "y: z": "é\U0000202E"
pass:
  env: PASS
none: []
"#;
        assert_eq!(text, expected);
    }

    proptest! {
        #[test]
        fn any_text_comes_back_as_it_was(text in any::<String>(), lines in "([ -~é\t]{0,6}\n?){0,6}") {
            prop_assert_eq!(again(&json!(&text)), json!(&text));
            prop_assert_eq!(again(&json!([&lines, { "deep": [&lines] }])), json!([&lines, { "deep": [&lines] }]));
            prop_assert_eq!(again(&json!({ &text: &lines })), json!({ &text: &lines }));
        }
    }
}
