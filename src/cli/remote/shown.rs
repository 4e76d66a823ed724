//! Records for people: a table of some fields, or a line for each. An agent's input is shown as JSON, whole: people decide
//! on it.

use serde_json::{Value, json};

use crate::{
    base::{
        plain::{lines_without_controls, without_controls},
        spelling::snake_case,
    },
    cli::{Output, output::table},
};

/// A value in a cell or a line. Nothing in it commands a terminal.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => without_controls(text),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => match fields.get("name") {
            Some(name) if fields.len() == 1 => cell(name),
            _ => without_controls(&value.to_string()),
        },
        other => other.to_string(),
    }
}

/// A value on lines of its own, if it does not fit into one.
fn block(value: &Value) -> Option<String> {
    let is_named =
        |item: &Value| item.as_object().is_some_and(|item| item.len() == 1 && item.contains_key("name"));
    let text = match value {
        Value::String(text) if text.contains('\n') => text.clone(),
        Value::Object(_) => format!("{value:#}"),
        Value::Array(items) if items.iter().any(|item| item.is_object() && !is_named(item)) => {
            format!("{value:#}")
        }
        _ => return None,
    };
    Some(lines_without_controls(&text).replace('\n', "\n    "))
}

/// Records as a table with these fields, each given as the path to it.
pub fn listed<const N: usize>(key: &str, fields: [(&str, &str); N], records: &[Value]) -> Output {
    let rows: Vec<[String; N]> = records
        .iter()
        .map(|record| fields.map(|(_, path)| cell(record.pointer(path).unwrap_or(&Value::Null))))
        .collect();
    let text =
        if rows.is_empty() { "None.".to_owned() } else { table(fields.map(|(heading, _)| heading), &rows) };
    Output::with_text(json!({ key: records.iter().map(in_snake_case).collect::<Value>() }), text)
}

/// One record, a line or a block for each field that has a value.
pub fn whole(record: &Value) -> Output {
    let record = in_snake_case(record);
    let text = in_lines(&record);
    Output::with_text(record, text)
}

fn in_lines(record: &Value) -> String {
    let mut text = String::new();
    for (key, value) in record.as_object().into_iter().flatten() {
        let (block, value) = (block(value), cell(value));
        match block {
            Some(block) => text.push_str(&format!("{key}:\n    {block}\n")),
            None if value.is_empty() => {}
            None => text.push_str(&format!("{key}: {value}\n")),
        }
    }
    text
}

/// The record with its keys as in `/v1`. Keys that people chose stay as they are.
fn in_snake_case(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match key.as_str() {
                "labels" | "input" => (key.clone(), value.clone()),
                _ => (snake_case(key), in_snake_case(value)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(in_snake_case).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_line_for_each_value() {
        let record = json!({
            "name": "a\u{1b}[2J", "lastAction": null, "skills": [{ "name": "x" }, { "name": "y" }],
            "labels": { "rackNo": "1" }, "server": { "id": 1, "hostName": "h" },
        });
        let shown = whole(&record);
        assert_eq!(format!("{shown:?}").matches("\\u{1b}[2J").count(), 1, "as JSON, but not as text");
        assert_eq!(cell(&record["skills"]), "x, y");
        assert_eq!(in_snake_case(&record)["labels"], record["labels"]);
        assert_eq!(in_snake_case(&record)["server"]["host_name"], "h");
    }

    #[test]
    fn an_input_is_shown_whole() {
        let one = json!({ "request": { "user": { "delete": "carl" } } });
        let expected = "request:\n    {\n      \"user\": {\n        \"delete\": \"carl\"\n      }\n    }\n";
        assert_eq!(in_lines(&one), expected);
        let list = in_lines(&json!({ "list": [{ "a": 1 }, { "b": "x y=z" }] }));
        assert!(list.contains("\"a\": 1\n") && list.contains("\"b\": \"x y=z\"\n"), "{list}");
        assert_eq!(in_lines(&json!({ "output": "one\ntwo\u{1b}" })), "output:\n    one\n    two\u{fffd}\n");
    }
}
