//! Changes in words. A plan has no secrets: files have none, and this only says where they are.

use serde_json::Value;

use super::{
    kinds::{Field, Form},
    records::Fields,
};
use crate::base::numerals::with_noun;

/// Adds a line for each changed field. `before`: the record's fields, if it exists.
pub fn changes(
    table: &[Field],
    path: &str,
    changed: &Fields,
    before: Option<&Fields>,
    lines: &mut Vec<String>,
) {
    for field in table {
        let Some(new) = changed.get(field.key) else { continue };
        let (name, old) = (format!("{path}{}", field.key), before.and_then(|before| before.get(field.key)));
        match (&field.form, new) {
            (Form::Object(inner, _), Value::Object(new)) => {
                let old = before.map(|_| old.and_then(Value::as_object).cloned().unwrap_or_default());
                changes(inner, &format!("{name}."), new, old.as_ref(), lines);
            }
            (Form::Secret(_), _) => lines.push(format!("{name}: from {}", origin(new))),
            (Form::Long | Form::Trimmed, Value::String(text)) => {
                let verb = if before.is_some() { "now " } else { "" };
                lines.push(format!("{name}: {verb}{}", with_noun(text.lines().count(), "line")));
            }
            (Form::Secrets, _) => lines.extend(secrets(&name, new, old)),
            _ if before.is_some() => {
                let old = old.cloned().unwrap_or_else(|| field.unset());
                lines.push(format!("{name}: {} → {}", shown(&old), shown(new)));
            }
            _ => lines.push(format!("{name}: {}", shown(new))),
        }
    }
}

/// Where a secret comes from.
fn origin(reference: &Value) -> String {
    match (reference["env"].as_str(), reference["file"].as_str()) {
        (Some(name), _) => format!("the variable {name}"),
        (_, Some(path)) => format!("the file {path}"),
        _ => "nowhere".to_owned(),
    }
}

fn secrets(name: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let rows = |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
    let (new, old) = (rows(Some(new)), rows(old));
    let label = |row: &Value| row["label"].as_str().unwrap_or_default().to_owned();
    let has = |rows: &[Value], row: &Value| rows.iter().any(|other| other["label"] == row["label"]);
    let said = |row: &Value| {
        let verb = if has(&old, row) { "kept" } else { "added" };
        match &row["value"] {
            Value::Null => format!("{name}: {} is {verb}", label(row)),
            value => format!("{name}: {} is {verb}, with the value from {}", label(row), origin(value)),
        }
    };
    let gone =
        old.iter().filter(|row| !has(&new, row)).map(|row| format!("{name}: {} is deleted", label(row)));
    new.iter().map(said).chain(gone).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "nothing".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.is_empty() => "nothing".to_owned(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}
