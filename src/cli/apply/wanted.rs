//! The contents of files: their records, and every mistake that a file shows by itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use super::{
    kinds::{Field, Form, KINDS, Kind},
    language::Language,
    records::{Fields, key_of, normal, sorted},
    tree::{Content, Mistake, Node},
};
use crate::{base::plain::without_controls, cli::Failure, resolvers::validate::meant};

/// The key of the list of allowed hosts.
const HOSTS: &str = "allowed_hosts";
/// The key of the organization's own rules.
const POLICY: &str = "policy";

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    file: Arc<str>,
    pub line: usize,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Everything that is wrong, in the order found.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<String>);

impl Mistakes {
    pub fn at(&mut self, place: &FileLine, what: impl fmt::Display) {
        self.0.push(format!("{place}: {}", without_controls(&what.to_string())));
    }

    pub fn add(&mut self, what: impl fmt::Display) {
        self.0.push(without_controls(&what.to_string()));
    }

    /// # Errors
    /// Lists every mistake.
    pub fn into_result(self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::invalid(self.0.join("\n"))) }
    }
}

/// A record of a file.
pub struct Record {
    pub kind: Kind,
    pub key: String,
    /// With secrets as references.
    pub fields: Fields,
    node: Node,
    file: Arc<str>,
}

impl Record {
    /// The line of the value at a pointer into the record.
    pub fn place(&self, pointer: &str) -> FileLine {
        FileLine { file: Arc::clone(&self.file), line: self.node.line_of(pointer) }
    }
}

/// The contents of all files together.
#[derive(Default)]
pub struct Wanted {
    pub records: Vec<Record>,
    /// The kinds that have a section in a file, even an empty one.
    pub sections: BTreeSet<Kind>,
    /// The complete list of allowed hosts, as `host:port`.
    pub hosts: Option<(FileLine, BTreeSet<String>)>,
    /// The organization's own rules, with [`super::policy::HERE`] for its id.
    pub policy: Option<(FileLine, String)>,
}

impl Wanted {
    /// Reads files. A file that can't be read, or is not in its language, ends it.
    pub fn read(paths: &[PathBuf], mistakes: &mut Mistakes) -> Result<Self, Failure> {
        let mut wanted = Self::default();
        for path in paths {
            let shown = path.display();
            let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            let Some(language) = Language::of(extension) else {
                return Err(Failure::invalid(format!(
                    "{shown}: the name must end in .yaml, .yml, .json or .toml"
                )));
            };
            let text = std::fs::read_to_string(path).map_err(|error| Failure::of_file(path, &error))?;
            let documents = language.read(&text);
            let documents = documents.map_err(|Mistake { line, what }| {
                Failure::invalid(without_controls(&format!("{shown}:{line}: {what}")))
            })?;
            let folder = path.parent().unwrap_or(Path::new(""));
            let mut reading = Reading {
                file: shown.to_string().into(),
                folder,
                mistakes: &mut *mistakes,
                wanted: &mut wanted,
            };
            for document in &documents {
                reading.document(document);
            }
        }
        wanted.refuse_repeated(mistakes);
        Ok(wanted)
    }

    /// A record is in one place only.
    fn refuse_repeated(&self, mistakes: &mut Mistakes) {
        let mut known = BTreeMap::new();
        for record in &self.records {
            let place = record.place("");
            if let Some(first) = known.insert((record.kind, &record.key), place.clone()) {
                let word = record.kind.about().word;
                let name =
                    if record.key.is_empty() { word.to_owned() } else { format!("{word} {}", record.key) };
                mistakes.at(&place, format!("{name} is already at {first}"));
            }
        }
    }

    pub fn find(&self, kind: Kind, key: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.kind == kind && record.key == key)
    }
}

/// One file as it is read.
struct Reading<'a> {
    file: Arc<str>,
    folder: &'a Path,
    mistakes: &'a mut Mistakes,
    wanted: &'a mut Wanted,
}

impl Reading<'_> {
    fn place(&self, node: &Node) -> FileLine {
        FileLine { file: Arc::clone(&self.file), line: node.line }
    }

    fn wrong(&mut self, node: &Node, what: impl fmt::Display) {
        let place = self.place(node);
        self.mistakes.at(&place, what);
    }

    fn document(&mut self, document: &Node) {
        let entries = match &document.content {
            Content::Map(entries) => entries,
            Content::Scalar(Value::Null) => return,
            _ => return self.wrong(document, "a file is a map of sections, such as `agents:`"),
        };
        for (key, node) in entries {
            match (key.as_str(), KINDS.iter().find(|about| about.section == key)) {
                (_, Some(about)) => self.section(about.kind, node),
                (HOSTS, _) => self.hosts(node),
                (POLICY, _) => self.policy(node),
                _ => {
                    let known = KINDS.iter().map(|about| about.section).chain([HOSTS, POLICY]);
                    let meant = meant(key, known);
                    self.wrong(node, format!("unknown section `{key}`{meant}"));
                }
            }
        }
    }

    fn section(&mut self, kind: Kind, node: &Node) {
        self.wanted.sections.insert(kind);
        match (&node.content, kind) {
            (Content::Map(_), Kind::Settings) => self.record(kind, node),
            (Content::List(items), _) if kind != Kind::Settings => {
                for item in items {
                    self.record(kind, item);
                }
            }
            (Content::Scalar(Value::Null), _) => {}
            (_, Kind::Settings) => self.wrong(node, "`settings` is a map"),
            _ => self.wrong(node, format!("`{}` is a list", kind.about().section)),
        }
    }

    fn record(&mut self, kind: Kind, node: &Node) {
        let about = kind.about();
        let Content::Map(_) = node.content else {
            return self.wrong(node, format!("each of `{}` is a map", about.section));
        };
        let fields = self.fields(about.fields, node);
        let required: &[&str] = match kind {
            Kind::Settings => &[],
            Kind::Channel => &["name", "agent"],
            _ => &["name"],
        };
        let missing: Vec<&&str> =
            required.iter().filter(|key| !fields.get(**key).is_some_and(Value::is_string)).collect();
        if let Some(key) = missing.first() {
            return self.wrong(node.get(key).unwrap_or(node), format!("`{key}` is required, as text"));
        }
        let key = key_of(kind, &fields);
        let record = Record { kind, key, fields, node: node.clone(), file: Arc::clone(&self.file) };
        self.wanted.records.push(record);
    }

    /// The fields of a record or of an object in it, without those that have the default.
    fn fields(&mut self, table: &[Field], node: &Node) -> Fields {
        let Content::Map(entries) = &node.content else { return Fields::new() };
        let mut fields = Fields::new();
        for (key, node) in entries {
            let Some(field) = table.iter().find(|field| field.key == key) else {
                let meant = meant(key, table.iter().map(|field| field.key));
                self.wrong(node, format!("unknown key `{key}`{meant}"));
                continue;
            };
            let value = self.value(field, node);
            if value != field.unset() {
                fields.insert(key.clone(), value);
            }
        }
        fields
    }

    fn value(&mut self, field: &Field, node: &Node) -> Value {
        if matches!(node.content, Content::Scalar(Value::Null)) {
            return field.unset();
        }
        match &field.form {
            Form::Plain => normal(&node.value()),
            Form::Line => trimmed(node),
            Form::Long => node.value(),
            Form::Trimmed => match node.text().map(str::trim) {
                Some("") => Value::Null,
                Some(text) => text.into(),
                None => node.value(),
            },
            Form::Secret(_) => self.reference(node),
            Form::Object(inner, _) => {
                let Content::Map(_) = node.content else {
                    self.wrong(node, format!("`{}` is a map", field.key));
                    return Value::Null;
                };
                let inner = self.fields(inner, node);
                if inner.is_empty() { Value::Null } else { Value::Object(inner) }
            }
            Form::Name(..) => match node.text() {
                Some(name) => name.trim().into(),
                None => {
                    self.wrong(node, format!("`{}` is a name", field.key));
                    Value::Null
                }
            },
            Form::Members(_) | Form::Assigned(_) | Form::Origins => sorted(self.texts(node).into_iter()),
            Form::Secrets => self.secrets(node),
        }
    }

    /// The texts of a list.
    fn texts(&mut self, node: &Node) -> Vec<String> {
        let items = match &node.content {
            Content::List(items) => items.as_slice(),
            _ => &[],
        };
        let texts: Vec<String> =
            items.iter().filter_map(|item| Some(item.text()?.trim().to_owned())).collect();
        if texts.len() != items.len() || !matches!(node.content, Content::List(_)) {
            self.wrong(node, "this is a list of texts");
        }
        texts
    }

    /// A secret is somewhere else: a file with secrets would be one.
    fn reference(&mut self, node: &Node) -> Value {
        let entries = match &node.content {
            Content::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        let reference = match entries {
            [(key, name)] if key == "env" => name.text().map(|name| json!({ "env": name })),
            [(key, path)] if key == "file" => {
                path.text().map(|path| json!({ "file": self.folder.join(path).display().to_string() }))
            }
            _ => None,
        };
        reference.unwrap_or_else(|| {
            self.wrong(node, "a secret is written as `{env: VARIABLE}` or `{file: PATH}`");
            Value::Null
        })
    }

    /// The fields of a credential.
    fn secrets(&mut self, node: &Node) -> Value {
        let Content::List(items) = &node.content else {
            self.wrong(node, "`fields` is a list of maps with `label`, `type` and `value`");
            return json!([]);
        };
        items.iter().map(|item| self.secret_field(item)).collect()
    }

    fn secret_field(&mut self, node: &Node) -> Value {
        let mut field = Map::new();
        let Content::Map(entries) = &node.content else {
            self.wrong(node, "a field is a map with `label`, `type` and `value`");
            return Value::Null;
        };
        for (key, node) in entries {
            let value = match key.as_str() {
                "label" => trimmed(node),
                "type" => node.value(),
                "value" => self.reference(node),
                _ => {
                    let meant = meant(key, ["label", "type", "value"].into_iter());
                    self.wrong(node, format!("unknown key `{key}`{meant}"));
                    continue;
                }
            };
            let is_default = key == "type" && value == "secret";
            if !value.is_null() && !is_default {
                field.insert(key.clone(), value);
            }
        }
        Value::Object(field)
    }

    fn hosts(&mut self, node: &Node) {
        let hosts = self.texts(node);
        let mut all = BTreeSet::new();
        for host in hosts {
            match entry(&host) {
                Some(entry) => {
                    all.insert(entry);
                }
                None => self.wrong(node, format!("`{host}` is not a host, or a host and a port")),
            }
        }
        let place = self.place(node);
        if let Some((first, _)) = self.wanted.hosts.replace((place, all)) {
            self.wrong(node, format!("`{HOSTS}` is already at {first}"));
        }
    }

    fn policy(&mut self, node: &Node) {
        let text = match &node.content {
            Content::Scalar(Value::Null) => "",
            _ => match node.text() {
                Some(text) => text,
                None => return self.wrong(node, "`policy` is the text of the organization's own rules"),
            },
        };
        let place = self.place(node);
        if let Some((first, _)) = self.wanted.policy.replace((place, text.to_owned())) {
            self.wrong(node, format!("`{POLICY}` is already at {first}"));
        }
    }
}

/// The text without spaces at either end. Another value as it is: the schema refuses it.
fn trimmed(node: &Node) -> Value {
    node.text().map_or_else(|| node.value(), |text| text.trim().into())
}

/// An allowed host as `host:port`; the port is 443 unless it is given.
fn entry(text: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().ok()?),
        None => (text, 443),
    };
    let is_host = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '/'));
    is_host.then(|| format!("{}:{port}", host.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a file, without the folder's name.
    fn mistakes(name: &str, text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut mistakes = Mistakes::default();
        let read = Wanted::read(&[path], &mut mistakes).and_then(|_| mistakes.into_result());
        let said = read.map_or_else(|failure| failure.to_string(), |()| String::new());
        said.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn every_mistake_has_its_file_and_line() {
        let text = "\
agents:
  - name: a
    model_overide: x
    server: 7
    model_credential: hunter2
  - role: r
  - name: a
skils: []
settings: [1]
channels:
  - name: m
    agent: a
    email: {imap: {hots: h}}
credentials:
  - name: c
    fields: [{label: l, value: {env: X, file: y}}]
allowed_hosts: [\"a:b\"]
";
        let expected = "\
a.yaml:3: unknown key `model_overide` (did you mean `model_override`?)
a.yaml:4: `server` is a name
a.yaml:5: a secret is written as `{env: VARIABLE}` or `{file: PATH}`
a.yaml:6: `name` is required, as text
a.yaml:8: unknown section `skils` (did you mean `skills`?)
a.yaml:9: `settings` is a map
a.yaml:13: unknown key `hots` (did you mean `host`?)
a.yaml:16: a secret is written as `{env: VARIABLE}` or `{file: PATH}`
a.yaml:17: `a:b` is not a host, or a host and a port
a.yaml:7: agent a is already at a.yaml:2";
        assert_eq!(mistakes("a.yaml", text), expected);
        assert_eq!(
            mistakes("a.toml", "[[agents]]\nname = \"a\"\nserver = 7\n"),
            "a.toml:3: `server` is a name"
        );
        assert_eq!(mistakes("a.txt", ""), "a.txt: the name must end in .yaml, .yml, .json or .toml");
        assert_eq!(mistakes("a.yaml", "- a\n"), "a.yaml:1: a file is a map of sections, such as `agents:`");
    }

    #[test]
    fn a_secret_in_the_file_is_not_repeated() {
        assert!(!mistakes("a.yaml", "agents: [{name: a, model_credential: hunter2}]").contains("hunter2"));
    }

    #[test]
    fn hosts_have_a_port() {
        let entries = ["Example.org", "*.a.example:8443", "a b", "", "a:99999"].map(entry);
        let entries = entries.each_ref().map(Option::as_deref);
        assert_eq!(entries, [Some("example.org:443"), Some("*.a.example:8443"), None, None, None]);
    }
}
