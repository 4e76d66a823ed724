//! Records in the form of files, whichever way they come: with names instead of ids, and without defaults.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Number, Value, json};

use super::kinds::{Field, Form, Kind};
use crate::base::spelling::camel_case;

/// The fields of a record as in a file: those with the default are left out, and a stored secret is `true`.
pub type Fields = Map<String, Value>;

/// What a record is called: its name, and for a channel its agent as well.
pub fn key_of(kind: Kind, fields: &Fields) -> String {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    match kind {
        Kind::Settings => String::new(),
        Kind::Channel => format!("{} of {}", text("name"), text("agent")),
        _ => text("name").to_owned(),
    }
}

/// Which ids have which names.
#[derive(Default)]
pub struct Names {
    names: HashMap<(Kind, i64), String>,
    ids: HashMap<(Kind, String), i64>,
    members: HashMap<String, i64>,
    addresses: HashMap<i64, String>,
}

impl Names {
    /// A record. An archived one is known by its id only.
    pub fn add(&mut self, kind: Kind, id: i64, name: &str, is_archived: bool) {
        self.names.insert((kind, id), name.to_owned());
        if !is_archived {
            self.ids.insert((kind, name.to_owned()), id);
        }
    }

    pub fn add_member(&mut self, id: i64, address: &str) {
        self.members.insert(address.to_lowercase(), id);
        self.addresses.insert(id, address.to_owned());
    }

    pub fn id(&self, kind: Kind, name: &str) -> Option<i64> {
        self.ids.get(&(kind, name.to_owned())).copied()
    }

    pub fn member(&self, address: &str) -> Option<i64> {
        self.members.get(&address.to_lowercase()).copied()
    }

    fn name(&self, kind: Kind, id: &Value) -> Value {
        id.as_i64().and_then(|id| self.names.get(&(kind, id))).map_or(Value::Null, |name| json!(name))
    }
}

/// The fields of a record that a service shows.
pub fn fields_of(fields: &[Field], shown: &Value, names: &Names) -> Fields {
    let mut known = Fields::new();
    for field in fields {
        let value = &shown[camel_case(field.key)];
        let value = match &field.form {
            Form::Plain | Form::Line | Form::Long | Form::Trimmed => normal(value),
            Form::Secret(_) if *value == true => json!(true),
            Form::Secret(_) => Value::Null,
            Form::Object(inner, _) => {
                let inner = fields_of(inner, value, names);
                if inner.is_empty() { Value::Null } else { Value::Object(inner) }
            }
            Form::Name(kind, _) => names.name(*kind, value),
            Form::Secrets => secrets_of(value),
            Form::Members(_) => {
                let items = value.as_array().into_iter().flatten();
                let address = |item: &Value| match item {
                    Value::Object(member) => member["email"].as_str().map(str::to_owned),
                    id => id.as_i64().and_then(|id| names.addresses.get(&id).cloned()),
                };
                sorted(items.filter_map(address))
            }
            Form::Origins => sorted(texts(value)),
            Form::Assigned(_) => continue,
        };
        if !value.is_null() && value != field.unset() {
            known.insert(field.key.to_owned(), value);
        }
    }
    known
}

/// The fields of a credential, in their order.
fn secrets_of(shown: &Value) -> Value {
    let mut rows: Vec<&Value> = shown.as_array().into_iter().flatten().collect();
    rows.sort_by_key(|row| row["position"].as_i64());
    let field = |row: &&Value| {
        let mut field = Map::from_iter([("label".to_owned(), row["label"].clone())]);
        if row["type"] != "secret" {
            field.insert("type".to_owned(), row["type"].clone());
        }
        if row["value"] == true {
            field.insert("value".to_owned(), json!(true));
        }
        Value::Object(field)
    };
    rows.iter().map(field).collect()
}

/// The texts of a list.
pub fn texts(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

/// A list whose order means nothing.
pub fn sorted(items: impl Iterator<Item = String>) -> Value {
    items.collect::<BTreeSet<String>>().into_iter().collect()
}

/// The value as it is compared: a whole number is an integer, and an object has no nulls.
pub fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(number)),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(filled.map(|(key, value)| (key.clone(), normal(value))).collect())
        }
        other => other.clone(),
    }
}

fn whole(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => (float as i64).into(),
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_what_differs_from_a_new_one() {
        let mut names = Names::default();
        names.add(Kind::Server, 3, "house", false);
        names.add(Kind::Image, 4, "base", true);
        names.add_member(9, "Ann@example.org");
        let agent = json!({
            "name": "a", "server": 3, "image": 4, "cpuOverride": 2.0, "backupSchedule": "INHERIT", "noEmoji": true,
            "approvalCategories": [], "modelCredential": true, "voiceId": null,
        });
        let expected = json!({
            "name": "a", "server": "house", "image": "base", "cpu_override": 2, "model_credential": true,
            "no_emoji": true,
        });
        assert_eq!(Value::Object(fields_of(Kind::Agent.about().fields, &agent, &names)), expected);
        let channel = json!({
            "name": "m", "isActive": true, "scope": "EXTERNAL", "direction": "INBOUND", "alertRecipients": [9, 8],
            "webhook": { "outboundUrl": null, "inboundSecret": true, "echoFilter": { "actorPaths": [] } },
            "email": null, "whitelist": ["b", "a"],
        });
        let expected = json!({
            "name": "m", "direction": "INBOUND", "webhook": { "inbound_secret": true },
            "alert_recipients": ["Ann@example.org"], "whitelist": ["a", "b"],
        });
        assert_eq!(Value::Object(fields_of(Kind::Channel.about().fields, &channel, &names)), expected);
        assert_eq!((names.id(Kind::Image, "base"), names.member("ANN@example.org")), (None, Some(9)));
    }
}
