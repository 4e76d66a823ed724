//! The fields that differ between a record in a file and the existing one.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    kinds::{Field, Form},
    records::{Fields, texts},
};

/// What a list gains and loses.
pub fn difference(new: Option<&Value>, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let all =
        |list: Option<&Value>| list.map_or_else(BTreeSet::new, |list| texts(list).collect::<BTreeSet<_>>());
    let (new, old) = (all(new), all(old));
    (new.difference(&old).cloned().collect(), old.difference(&new).cloned().collect())
}

/// The fields that an edit has to change, with their new values. `rewrite`: secrets as well, although they exist.
pub fn changes(table: &[Field], wanted: &Fields, existing: &Fields, rewrite: bool) -> Fields {
    let mut changed = Fields::new();
    for field in table.iter().filter(|field| field.is_input()) {
        let (new, old) = (wanted.get(field.key), existing.get(field.key));
        let value = match &field.form {
            // Below, once it is known what changes beside it.
            Form::Secret(_) => continue,
            Form::Secrets => changed_secrets(new, old, rewrite),
            Form::Object(_, can_be_absent) if *can_be_absent && new.is_none() => old.map(|_| Value::Null),
            Form::Object(inner, _) => {
                let none = Fields::new();
                let part =
                    |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
                let (new, old) = (part(new), old.and_then(Value::as_object).unwrap_or(&none));
                let changed = changes(inner, &new, old, rewrite);
                (!changed.is_empty()).then_some(Value::Object(changed))
            }
            _ if new == old || (new.is_none() && field.is_kept()) => None,
            _ => Some(new.cloned().unwrap_or_else(|| field.unset())),
        };
        if let Some(value) = value {
            changed.insert(field.key.to_owned(), value);
        }
    }
    for field in table {
        let Form::Secret(beside) = field.form else { continue };
        let has_moved = beside.iter().any(|key| changed.contains_key(*key));
        if let Some(reference) = wanted.get(field.key)
            && (!existing.contains_key(field.key) || rewrite || has_moved)
        {
            changed.insert(field.key.to_owned(), reference.clone());
        }
    }
    changed
}

/// A credential's list of fields, if it changes: each with its reference if its value has to be written.
fn changed_secrets(new: Option<&Value>, old: Option<&Value>, rewrite: bool) -> Option<Value> {
    let rows = |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
    let (new, old) = (rows(new), rows(old));
    let shape = |rows: &[Value]| {
        rows.iter().map(|row| (row["label"].clone(), row["type"].clone())).collect::<Vec<_>>()
    };
    let is_stored = |row: &Value| old.iter().any(|had| had["label"] == row["label"] && had["value"] == true);
    let is_written = |row: &Value| !row["value"].is_null() && (rewrite || !is_stored(row));
    if shape(&new) == shape(&old) && !new.iter().any(is_written) {
        return None;
    }
    let row = |row: &Value| {
        let mut sent = row.as_object().cloned().unwrap_or_default();
        if !is_written(row) {
            sent.remove("value");
        }
        // A type that a file leaves out.
        sent.entry("type").or_insert_with(|| json!("secret"));
        Value::Object(sent)
    };
    Some(new.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::apply::kinds::Kind;

    /// What an edit of a record changes.
    fn changed(kind: Kind, wanted: &Value, existing: &Value, rewrite: bool) -> Value {
        let fields = |value: &Value| value.as_object().unwrap().clone();
        Value::Object(changes(kind.about().fields, &fields(wanted), &fields(existing), rewrite))
    }

    #[test]
    fn a_field_left_out_has_its_default_and_an_image_stays() {
        let existing = json!({ "name": "a", "server": "s", "image": "i", "no_emoji": true, "role": "r" });
        let found = changed(Kind::Agent, &json!({ "name": "a", "server": "s" }), &existing, false);
        assert_eq!(found, json!({ "no_emoji": false, "role": null }));
    }

    #[test]
    fn a_secret_is_sent_where_it_is_missing_or_its_place_changes() {
        let pass = json!({ "env": "PASS" });
        let mail = |host: &str, pass: &Value| json!({ "email": { "imap": { "host": host, "pass": pass } } });
        let of =
            |wanted: &Value, existing: &Value, rewrite| changed(Kind::Channel, wanted, existing, rewrite);
        let stored = mail("a", &json!(true));
        assert_eq!(of(&mail("a", &pass), &stored, false), json!({}));
        assert_eq!(of(&mail("b", &pass), &stored, false), mail("b", &pass));
        assert_eq!(of(&mail("a", &pass), &stored, true), json!({ "email": { "imap": { "pass": pass } } }));
        assert_eq!(of(&json!({}), &stored, false), json!({ "email": { "imap": null } }));
        assert_eq!(of(&json!({}), &json!({}), true), json!({}));
    }

    #[test]
    fn fields_of_a_credential_are_compared_without_their_values() {
        let fields = |rows: Value| json!({ "fields": rows });
        let stored = fields(json!([{ "label": "a", "value": true }, { "label": "b" }]));
        let value = json!({ "env": "A" });
        let of = |wanted: Value, rewrite| changed(Kind::Credential, &fields(wanted), &stored, rewrite);
        assert_eq!(of(json!([{ "label": "a", "value": value }, { "label": "b" }]), false), json!({}));
        let sent = of(json!([{ "label": "a", "value": value }, { "label": "b", "value": value }]), false);
        let expected = json!([
            { "label": "a", "type": "secret" }, { "label": "b", "type": "secret", "value": value },
        ]);
        assert_eq!(sent, fields(expected), "what is stored is kept");
        let sent = of(json!([{ "label": "a", "value": value }]), true);
        assert_eq!(sent, fields(json!([{ "label": "a", "type": "secret", "value": value }])));
    }
}
