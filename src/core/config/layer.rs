//! One layer of settings: its values, checked against the table, and the place where each is set.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
use toml::{
    Table, Value,
    de::{DeTable, DeValue},
};
use zeroize::Zeroizing;

use super::{
    file,
    settings::{self, OTHER_VARIABLES, SETTINGS, hint},
};

/// The lowest layer, and the documentation.
pub const DEFAULT: &str = include_str!("default.toml");

/// Which of the layers it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// `default.toml`.
    Default,
    /// The settings file.
    File,
    /// An environment variable.
    Variable,
}

/// One layer. Its values may be secrets, so it can't be printed.
pub(super) struct Layer {
    pub(super) origin: Origin,
    pub(super) values: Table,
    /// Where each key is set: `muster.toml:3`, or the name of a variable. A secret's place also names its own file.
    places: BTreeMap<String, String>,
}

impl Layer {
    /// The layer without values.
    pub(super) fn empty(origin: Origin) -> Self {
        Self { origin, values: Table::new(), places: BTreeMap::new() }
    }

    /// The built-in defaults.
    pub(super) fn of_defaults(mistakes: &mut Vec<String>) -> Self {
        Self::of_text(Origin::Default, "the built-in defaults", DEFAULT, mistakes)
    }

    /// The layer of a settings file.
    pub(super) fn of_file(path: &Path, mistakes: &mut Vec<String>) -> Self {
        let name = path.display().to_string();
        match std::fs::read_to_string(path).map(Zeroizing::new) {
            Ok(text) => Self::of_text(Origin::File, &name, &text, mistakes),
            Err(error) => {
                mistakes.push(format!("{name}: {error}. Correct --config or MUSTER_CONFIG"));
                Self::empty(Origin::File)
            }
        }
    }

    /// The layer of a text; `name` stands for it in messages.
    fn of_text(origin: Origin, name: &str, text: &str, mistakes: &mut Vec<String>) -> Self {
        let values = settings::parse(name, text, mistakes);
        let mut layer = Self { origin, values, places: places(name, text) };
        layer.check("", &layer.values, mistakes);
        layer.read_secrets(mistakes);
        layer
    }

    /// The layer of the environment: the variables that start with `MUSTER_`.
    pub(super) fn of_variables(variables: &BTreeMap<String, String>, mistakes: &mut Vec<String>) -> Self {
        let mut layer = Self::empty(Origin::Variable);
        for (name, text) in variables {
            let Some(setting) = SETTINGS.iter().find(|setting| setting.variable == name) else {
                if !is_service_link(name) && !is_of_hosts(name) {
                    let known = SETTINGS.iter().map(|setting| setting.variable);
                    let hint = hint(name, known.chain(OTHER_VARIABLES.iter().copied()));
                    mistakes.push(format!("unknown variable {name}{hint}"));
                }
                continue;
            };
            let value = setting.kind.value(text);
            if let Err(mistake) = setting.kind.check(&value) {
                mistakes.push(format!("{name} {mistake}"));
            }
            layer.put(setting.key, value, name.clone());
        }
        layer.read_secrets(mistakes);
        layer
    }

    /// The value of a setting.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        match key.split_once('.') {
            Some((section, name)) => self.values.get(section)?.as_table()?.get(name),
            None => self.values.get(key),
        }
    }

    /// The text of a setting, to change it.
    pub(super) fn text_mut(&mut self, key: &str) -> Option<&mut String> {
        let (table, name) = self.table_mut(key)?;
        match table.get_mut(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Where a key is set.
    pub(super) fn place(&self, key: &str) -> &str {
        self.places.get(key).map_or("", String::as_str)
    }

    fn put(&mut self, key: &str, value: Value, place: String) {
        if let Some((section, _)) = key.split_once('.') {
            self.values.entry(section).or_insert_with(|| Value::Table(Table::new()));
        }
        if let Some((table, name)) = self.table_mut(key) {
            table.insert(name.to_owned(), value);
        }
        self.places.insert(key.to_owned(), place);
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        let (table, name) = self.table_mut(key)?;
        table.remove(name)
    }

    /// The table with a setting, and the setting's name there.
    fn table_mut<'a>(&mut self, key: &'a str) -> Option<(&mut Table, &'a str)> {
        match key.split_once('.') {
            Some((section, name)) => Some((self.values.get_mut(section)?.as_table_mut()?, name)),
            None => Some((&mut self.values, key)),
        }
    }

    fn check(&self, section: &str, table: &Table, mistakes: &mut Vec<String>) {
        for (key, value) in table {
            let key = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
            let place = self.place(&key);
            let begins_with_key =
                |other: &str| other.split_once('.').is_some_and(|(section, _)| section == key);
            let is_section = section.is_empty() && SETTINGS.iter().any(|other| begins_with_key(other.key));
            match (SETTINGS.iter().find(|setting| setting.key == key), value) {
                (Some(setting), value) => {
                    if let Err(mistake) = setting.kind.check(value) {
                        mistakes.push(format!("{place}: {key} {mistake}"));
                    }
                }
                (None, Value::Table(inner)) if is_section => self.check(&key, inner, mistakes),
                (None, _) if is_section => {
                    mistakes.push(format!("{place}: {key} must be a section: write [{key}]"));
                }
                (None, _) => {
                    let hint = hint(&key, SETTINGS.iter().map(|setting| setting.key));
                    mistakes.push(format!("{place}: unknown setting {key}{hint}"));
                }
            }
        }
    }

    /// Puts the text of each secret's file in the place of the secret.
    fn read_secrets(&mut self, mistakes: &mut Vec<String>) {
        for setting in SETTINGS {
            let Some(secret) = setting.secret() else { continue };
            // An empty path has been reported.
            let Some(Value::String(path)) = self.take(setting.key) else { continue };
            if path.is_empty() {
                continue;
            }
            let place = self.place(setting.key).to_owned();
            if self.get(secret.key).is_some() {
                mistakes
                    .push(format!("{place}: {} and {} are both set; remove one", secret.key, setting.key));
                continue;
            }
            let text = match file::read_secret(Path::new(&path)) {
                Ok(text) => Value::String(text),
                Err(why) => {
                    mistakes.push(format!(
                        "{place}: {why}. Name a file that this user can read, with the secret only"
                    ));
                    continue;
                }
            };
            if let Err(mistake) = secret.kind.check(&text) {
                mistakes.push(format!("{place}: the text in {path} {mistake}"));
            }
            self.put(secret.key, text, format!("{place} ({path})"));
        }
    }
}

/// The place of each key of a text, and of each key of its sections.
fn places(name: &str, text: &str) -> BTreeMap<String, String> {
    let mut places = BTreeMap::new();
    // Invalid TOML has been reported.
    let Ok(table) = DeTable::parse(text) else { return places };
    let place = |start: usize| format!("{name}:{}", settings::line_of(text, start));
    for (key, value) in table.get_ref() {
        places.insert(key.get_ref().to_string(), place(key.span().start));
        if let DeValue::Table(section) = value.get_ref() {
            for inner in section.keys() {
                let place = place(inner.span().start);
                places.insert(format!("{}.{}", key.get_ref(), inner.get_ref()), place);
            }
        }
    }
    places
}

/// Kubernetes sets such variables in every container of a namespace with a service called `muster…`.
fn is_service_link(name: &str) -> bool {
    ["_SERVICE_HOST", "_SERVICE_PORT", "_TCP", "_UDP"].iter().any(|part| name.contains(part))
        || name.ends_with("_PORT")
}

/// Variables of `muster host` (docs/hosts.md), which a demo passes on to its host.
fn is_of_hosts(name: &str) -> bool {
    name.starts_with("MUSTER_HOST_") || ["MUSTER_SHIM", "MUSTER_AGENT"].contains(&name)
}
