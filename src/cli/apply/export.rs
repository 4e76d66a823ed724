//! An organization as a file: what exists, sorted by name, without ids, times and secrets.
//!
//! The same organization is always the same text. A stored secret becomes a reference to a variable, whose name is made
//! from the record's, so that the file can be applied where these variables are set.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    existing::{Existing, Record},
    kinds::{Field, Form, KINDS, Kind},
    records::Fields,
    yaml,
};
use crate::cli::Failure;

/// The file's content.
///
/// # Errors
/// Two channels of an agent have the same name.
pub fn content(existing: &Existing) -> Result<Map<String, Value>, Failure> {
    if let Some(double) = existing.doubles().next() {
        let what =
            format!("There are two channels {}, which a file can't tell apart: rename one.", double.key);
        return Err(Failure::new(what));
    }
    let (mut content, mut variables) = (Map::new(), BTreeSet::new());
    for about in &KINDS {
        let mut records: Vec<&Record> = existing.all(about.kind).collect();
        records.sort_by(|a, b| a.key.cmp(&b.key));
        let values = records.into_iter().map(|record| {
            let prefix = format!("{} {}", about.word, record.key);
            Value::Object(written(about.fields, &record.fields, &prefix, &mut variables))
        });
        match about.kind {
            Kind::Settings => content.extend(values.map(|settings| (about.section.to_owned(), settings))),
            _ => drop(content.insert(about.section.to_owned(), values.collect())),
        }
    }
    let hosts: BTreeSet<&str> = existing.hosts.iter().map(|host| host.entry.as_str()).collect();
    content.insert("allowed_hosts".to_owned(), json!(hosts));
    if let Some(policy) = &existing.policy {
        content.insert("policy".to_owned(), json!(policy.text));
    }
    // Without these two sections, an added host or rule would be no drift.
    let is_kept = |key: &str| matches!(key, "allowed_hosts" | "policy");
    content.retain(|key, value| {
        is_kept(key) || (*value != json!([]) && *value != json!({}) && *value != json!(""))
    });
    Ok(content)
}

/// The file.
pub fn text(existing: &Existing, content: &Map<String, Value>) -> String {
    let mut text = "# An organization, by `muster export`. `muster apply` makes one like it.\n".to_owned();
    if existing.policy.is_none() {
        text.push_str("# The organization's own rules are left out: the caller lacks policy.view.\n");
    }
    text.push_str(&yaml::write(content));
    text
}

/// Fields in the order of the table, with references for stored secrets.
fn written(
    table: &[Field],
    fields: &Fields,
    path: &str,
    variables: &mut BTreeSet<String>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for field in table {
        let Some(value) = fields.get(field.key) else { continue };
        let path = format!("{path} {}", field.key);
        let value = match (&field.form, value) {
            (Form::Secret(_), _) => reference(&path, variables),
            (Form::Object(inner, _), Value::Object(fields)) => {
                Value::Object(written(inner, fields, &path, variables))
            }
            (Form::Secrets, Value::Array(rows)) => rows
                .iter()
                .map(|row| {
                    let mut row = row.as_object().cloned().unwrap_or_default();
                    let label = row.get("label").and_then(Value::as_str).unwrap_or_default().to_owned();
                    if row.contains_key("value") {
                        row.insert("value".to_owned(), reference(&format!("{path} {label}"), variables));
                    }
                    Value::Object(row)
                })
                .collect(),
            (_, value) => value.clone(),
        };
        out.insert(field.key.to_owned(), value);
    }
    out
}

/// A reference to a variable that no other secret of the file has.
fn reference(path: &str, variables: &mut BTreeSet<String>) -> Value {
    let name: String =
        path.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let mut unique = name.clone();
    for n in 2.. {
        if variables.insert(unique.clone()) {
            break;
        }
        unique = format!("{name}_{n}");
    }
    json!({ "env": unique })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_has_a_variable_of_its_own() {
        let mut variables = BTreeSet::new();
        let mut name = |path: &str| reference(path, &mut variables)["env"].as_str().unwrap().to_owned();
        assert_eq!(name("credential mail fields pass-word"), "CREDENTIAL_MAIL_FIELDS_PASS_WORD");
        assert_eq!(name("credential mail fields pass word"), "CREDENTIAL_MAIL_FIELDS_PASS_WORD_2");
        assert_eq!(name("credential mail fields pass.word"), "CREDENTIAL_MAIL_FIELDS_PASS_WORD_3");
        assert_eq!(name("settings  voice_key"), "SETTINGS__VOICE_KEY");
    }
}
