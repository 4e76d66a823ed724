//! What is sent to the service: from fields with names and references to inputs with ids and secrets.

use std::path::Path;

use async_graphql::registry::{MetaInputValue, MetaType, MetaTypeName};
use serde_json::{Map, Value, json};

use super::{
    kinds::{About, Field, Form},
    records::{Fields, Names},
};
use crate::{
    base::{problem::At, spelling::camel_case},
    core::config,
    resolvers::{
        Catalogue,
        validate::{Spelling, Validator},
    },
};

/// Stands for an id that is not known, so that the rest can be checked. It is never sent.
fn any_id() -> Value {
    json!(1)
}
/// The same for a secret.
const ANY_SECRET: &str = "-";

/// What is wrong with a value: a pointer into the record, and why.
pub type Wrong = (String, String);

/// The variables of a mutation, without `orgId` and `id`.
pub struct Call {
    pub operation: &'static str,
    pub variables: Map<String, Value>,
}

/// Makes inputs.
pub struct Inputs<'a> {
    pub catalogue: &'a Catalogue,
    pub names: &'a Names,
    /// Whether a name without an id is that of a record yet to come.
    pub is_check: bool,
    pub wrong: Vec<Wrong>,
}

impl<'a> Inputs<'a> {
    pub const fn new(catalogue: &'a Catalogue, names: &'a Names, is_check: bool) -> Self {
        Self { catalogue, names, is_check, wrong: Vec::new() }
    }

    /// The calls that make a new record: its creation, and an edit with what the creation does not take.
    pub fn create(&mut self, about: &About, fields: &Fields) -> Vec<Call> {
        let mut given = self.input(about.fields, fields, "");
        let created = self.input_fields(about.create);
        // What a creation requires, also if it is the default.
        for field in about.fields {
            let declared = created.iter().find(|declared| declared.name == camel_case(field.input()));
            let is_required = declared
                .is_some_and(|declared| declared.ty.ends_with('!') && declared.default_value.is_none());
            if is_required && !given.contains_key(field.input()) && !field.unset().is_null() {
                given.insert(field.input().to_owned(), field.unset());
            }
        }
        let (now, later) = self.split(about.create, given);
        let mut calls = vec![self.call(about, about.create, now)];
        if !later.is_empty() {
            calls.extend(self.edit(about, later));
        }
        calls
    }

    /// The call that edits a record.
    pub fn update(&mut self, about: &About, fields: &Fields) -> Vec<Call> {
        let given = self.input(about.fields, fields, "");
        self.edit(about, given).into_iter().collect()
    }

    fn edit(&mut self, about: &About, given: Map<String, Value>) -> Option<Call> {
        let (given, fixed) = self.split(about.update, given);
        for key in fixed.keys() {
            let what = format!("`{key}` can't be changed: delete the {} and create it again", about.word);
            self.wrong.push((format!("/{key}"), what));
        }
        (!given.is_empty()).then(|| self.call(about, about.update, given))
    }

    /// The values that a mutation takes, and the others.
    fn split(&self, operation: &str, given: Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
        let fields = self.input_fields(operation);
        let takes = |key: &str| {
            let name = camel_case(key);
            fields.iter().any(|field| field.name == name) || self.argument(operation, &name).is_some()
        };
        given.into_iter().partition(|(key, _)| takes(key))
    }

    /// Checks the values against the schema, and spells them as it does.
    fn call(&mut self, about: &About, operation: &'static str, given: Map<String, Value>) -> Call {
        let fields = self.input_fields(operation);
        let (input, beside): (Map<_, _>, Map<_, _>) =
            given.into_iter().partition(|(key, _)| fields.iter().any(|field| field.name == camel_case(key)));
        let mut variables: Map<String, Value> =
            beside.into_iter().map(|(key, value)| (camel_case(&key), value)).collect();
        let mut validator = Validator::new(&self.catalogue.registry, Spelling::Snake);
        if let Some(declared) = self.argument(operation, "input") {
            let input = async_graphql::Value::from_json(Value::Object(input)).unwrap_or_default();
            let checked = validator.check(declared, Some(input), "").and_then(|input| input.into_json().ok());
            variables.insert("input".to_owned(), checked.unwrap_or_default());
        }
        for violation in validator.violations {
            let At::Pointer(pointer) = violation.at else { continue };
            let detail = about.fields.iter().fold(violation.detail, |detail, field| match field.input() {
                input if input == field.key => detail,
                input => detail.replace(&format!("`{input}`"), &format!("`{}`", field.key)),
            });
            self.wrong.push((in_file(about.fields, &pointer), detail));
        }
        Call { operation, variables }
    }

    fn argument(&self, operation: &str, name: &str) -> Option<&'a MetaInputValue> {
        self.catalogue.root_field(operation)?.field.args.get(name)
    }

    /// The fields of a mutation's `input`.
    fn input_fields(&self, operation: &str) -> Vec<&'a MetaInputValue> {
        let ty =
            self.argument(operation, "input").map_or("", |input| MetaTypeName::concrete_typename(&input.ty));
        match self.catalogue.registry.types.get(ty) {
            Some(MetaType::InputObject { input_fields, .. }) => input_fields.values().collect(),
            _ => Vec::new(),
        }
    }

    /// Values as the schema takes them, still in snake_case.
    fn input(&mut self, table: &[Field], fields: &Fields, at: &str) -> Map<String, Value> {
        let mut given = Map::new();
        for field in table.iter().filter(|field| field.is_input()) {
            let Some(value) = fields.get(field.key) else { continue };
            let pointer = format!("{at}/{}", field.key);
            let value = match &field.form {
                _ if value.is_null() => Value::Null,
                Form::Secret(_) => self.secret(value, &pointer),
                Form::Object(inner, _) => match value.as_object() {
                    Some(fields) => Value::Object(self.input(inner, fields, &pointer)),
                    None => value.clone(),
                },
                Form::Name(kind, _) => {
                    let name = value.as_str().unwrap_or_default();
                    let id = self.names.id(*kind, name);
                    self.known(id, kind.about().word, name, &pointer)
                }
                Form::Members(_) => {
                    let addresses = value.as_array().into_iter().flatten().filter_map(Value::as_str);
                    addresses.map(|address| self.member(address, &pointer)).collect()
                }
                Form::Secrets => self.secrets(value, &pointer),
                Form::Plain | Form::Line | Form::Long | Form::Trimmed | Form::Assigned(_) | Form::Origins => {
                    value.clone()
                }
            };
            given.insert(field.input().to_owned(), value);
        }
        given
    }

    /// The id of a member.
    fn member(&mut self, address: &str, pointer: &str) -> Value {
        match self.names.member(address) {
            Some(id) => json!(id),
            None => {
                self.wrong.push((pointer.to_owned(), format!("no member has the address {address}")));
                any_id()
            }
        }
    }

    fn known(&mut self, id: Option<i64>, word: &str, name: &str, pointer: &str) -> Value {
        if id.is_none() && !self.is_check {
            self.wrong.push((pointer.to_owned(), format!("there is no {word} `{name}`")));
        }
        id.map_or_else(any_id, |id| json!(id))
    }

    fn secrets(&mut self, value: &Value, pointer: &str) -> Value {
        let items = value.as_array().into_iter().flatten().enumerate();
        items
            .map(|(n, item)| {
                let mut field = item.as_object().cloned().unwrap_or_default();
                if let Some(reference) = field.get("value").cloned() {
                    let secret = self.secret(&reference, &format!("{pointer}/{n}/value"));
                    field.insert("value".to_owned(), secret);
                }
                field.insert("position".to_owned(), n.into());
                Value::Object(field)
            })
            .collect()
    }

    /// The secret that a reference names.
    fn secret(&mut self, reference: &Value, pointer: &str) -> Value {
        let found = match (reference["env"].as_str(), reference["file"].as_str()) {
            (Some(name), _) => {
                config::variable(name).ok_or_else(|| format!("the variable {name} is not set"))
            }
            (_, Some(path)) => config::read_secret(Path::new(path)),
            _ => Err("a secret is missing".to_owned()),
        };
        found.map_or_else(
            |what| {
                self.wrong.push((pointer.to_owned(), what));
                json!(ANY_SECRET)
            },
            Value::String,
        )
    }
}

/// A pointer into an input as one into a file, where ids are names.
pub fn in_file(table: &[Field], pointer: &str) -> String {
    let rest = pointer.trim_start_matches('/');
    let (first, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let key = table.iter().find(|field| field.input() == first).map_or(first, |field| field.key);
    if rest.is_empty() { format!("/{key}") } else { format!("/{key}/{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::apply::kinds::Kind;

    #[test]
    fn a_creation_takes_what_it_can_and_an_edit_the_rest() {
        let catalogue = crate::graphql::catalogue().unwrap();
        let mut names = Names::default();
        names.add(Kind::Server, 7, "house", false);
        let mut inputs = Inputs::new(&catalogue, &names, true);
        let fields = json!({
            "name": "a", "server": "house", "image": "new", "no_emoji": true, "restart_policy": "NEVER",
        });
        let calls = inputs.create(Kind::Agent.about(), fields.as_object().unwrap());
        let variables: Vec<Value> = calls.iter().map(|call| Value::Object(call.variables.clone())).collect();
        assert_eq!(
            variables,
            [
                json!({ "restartPolicy": "NEVER", "input": { "name": "a", "serverId": 7, "imageId": 1 } }),
                json!({ "input": { "noEmoji": true } }),
            ]
        );
        let skill = inputs.create(Kind::Skill.about(), json!({ "name": "s" }).as_object().unwrap());
        assert_eq!(skill[0].variables["input"], json!({ "name": "s", "content": "" }));
        assert!(inputs.wrong.is_empty(), "{:?}", inputs.wrong);
    }

    #[test]
    fn wrong_values_are_found_before_anything_is_sent() {
        let catalogue = crate::graphql::catalogue().unwrap();
        let names = Names::default();
        let mut inputs = Inputs::new(&catalogue, &names, false);
        let fields = json!({ "server": "house", "cpu_override": 5000, "backup_cron": "x".repeat(200) });
        inputs.update(Kind::Agent.about(), fields.as_object().unwrap());
        inputs.update(Kind::Channel.about(), json!({ "transport": "EMAIL" }).as_object().unwrap());
        let mut said: Vec<&str> = inputs.wrong.iter().map(|(pointer, _)| pointer.as_str()).collect();
        said.sort_unstable();
        let expected = ["/backup_cron", "/cpu_override", "/server", "/transport"];
        assert_eq!(said, expected, "{:?}", inputs.wrong);
    }
}
