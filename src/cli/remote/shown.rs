//! Records for people: a table of some fields, or a line for each.

use serde_json::{Value, json};

use crate::{
    base::{plain::plain, spelling::snake_case},
    cli::{Output, output::table},
};

/// A value in a cell or a line. Nothing in it commands a terminal.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.len() == 1 => fields.values().map(cell).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().filter(|(_, value)| !value.is_null());
            filled
                .map(|(key, value)| format!("{}={}", snake_case(key), cell(value)))
                .collect::<Vec<_>>()
                .join(" ")
        }
        other => other.to_string(),
    }
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

/// One record, a line for each field that has a value.
pub fn whole(record: &Value) -> Output {
    let record = in_snake_case(record);
    let mut text = String::new();
    for (key, value) in record.as_object().into_iter().flatten() {
        let value = cell(value);
        if !value.is_empty() {
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    Output::with_text(record, text)
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
        assert_eq!(cell(&record["server"]), "id=1 host_name=h");
        assert_eq!(in_snake_case(&record)["labels"], record["labels"]);
        assert_eq!(in_snake_case(&record)["server"]["host_name"], "h");
    }
}
