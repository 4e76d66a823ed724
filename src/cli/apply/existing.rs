//! What exists: an organization as the service shows it, in the form of files.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::{
    kinds::{Form, KINDS, Kind},
    policy::{self, Policy},
    records::{Fields, Names, fields_of, key_of, sorted},
};
use crate::{
    base::{permission::Permission, problem::Code},
    cli::{
        Failure,
        remote::{Refusal, Remote, taken},
    },
};

/// A record.
pub struct Record {
    pub kind: Kind,
    pub key: String,
    pub fields: Fields,
    /// The agents that have it, by name.
    pub agents: BTreeSet<String>,
    /// An agent's status.
    pub status: String,
    /// Whether an agent waits for a restart since an earlier change.
    pub restart_pending: bool,
}

impl Record {
    /// Whether an agent has a program now.
    pub fn is_up(&self) -> bool {
        self.kind == Kind::Agent && !matches!(self.status.as_str(), "STOPPED" | "ERROR")
    }
}

/// An allowed host, as `host:port`.
pub struct Host {
    pub id: i64,
    pub entry: String,
}

pub struct Existing {
    pub id: i64,
    pub name: String,
    /// What the caller may do.
    pub permissions: BTreeSet<String>,
    /// In the order of [`KINDS`].
    pub records: Vec<Record>,
    pub names: Names,
    pub hosts: Vec<Host>,
    /// `None`: the caller may not see them.
    pub policy: Option<Policy>,
}

/// The permissions that the caller lacks for reading, so that all are named at once.
#[derive(Default)]
struct Missing(BTreeSet<String>);

impl Missing {
    /// The answer. Empty if it needs a permission that the caller lacks.
    fn note<T: Default>(&mut self, answer: Result<T, Refusal>) -> Result<T, Refusal> {
        match answer {
            Err(Refusal { permission: Some(permission), .. }) => {
                self.0.insert(permission);
                Ok(T::default())
            }
            answer => answer,
        }
    }

    fn into_result(self) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        let all = self.0.into_iter().collect::<Vec<_>>().join(", ");
        let detail = format!("You do not have all permissions that this needs. Missing: {all}.");
        Err(Failure::with_code(Code::PermissionDenied, detail))
    }
}

impl Existing {
    pub async fn read(remote: &Remote) -> Result<Self, Failure> {
        let mut missing = Missing::default();
        let mut organization = missing.note(remote.call("Organization", Map::new()).await)?;
        let organization = taken(&mut organization, "organization");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let permissions: BTreeSet<String> =
            organization["viewerPermissions"].as_array().into_iter().flatten().map(text).collect();
        let mut existing = Self {
            id: organization["id"].as_i64().unwrap_or_default(),
            name: text(&organization["name"]),
            permissions,
            records: Vec::new(),
            names: Names::default(),
            hosts: hosts(&organization["allowedHosts"]),
            policy: None,
        };
        for member in missing.note(remote.list("Members").await)? {
            let id = member["id"].as_i64().unwrap_or_default();
            existing.names.add_member(id, member["email"].as_str().unwrap_or_default());
        }
        for about in &KINDS {
            let rows = match about.kind {
                Kind::Settings => vec![organization.clone()],
                Kind::ModelCredential => {
                    organization["modelCredentials"].as_array().cloned().unwrap_or_default()
                }
                _ => missing.note(remote.list(about.list).await)?,
            };
            existing.add(about.kind, rows);
        }
        missing.into_result()?;
        existing.equip_agents();
        if existing.permissions.contains(Permission::PolicyView.as_str()) {
            existing.policy = Some(policy::read(remote, existing.id).await?);
        }
        Ok(existing)
    }

    /// Adds the records of a kind, after those that they name.
    fn add(&mut self, kind: Kind, rows: Vec<Value>) {
        for row in rows {
            let fields = fields_of(kind.about().fields, &row, &self.names);
            // Channels of a deleted agent belong to none.
            if kind == Kind::Channel && !fields.contains_key("agent") {
                continue;
            }
            let (id, key) = (row["id"].as_i64().unwrap_or_default(), key_of(kind, &fields));
            let is_archived = !row["archivedAt"].is_null();
            self.names.add(kind, id, &key, is_archived);
            if is_archived {
                continue;
            }
            let agents = row["agents"].as_array().into_iter().flatten();
            self.records.push(Record {
                kind,
                key,
                fields,
                agents: agents.filter_map(|agent| Some(agent["name"].as_str()?.to_owned())).collect(),
                status: row["status"].as_str().unwrap_or_default().to_owned(),
                restart_pending: row["restartPending"] == true,
            });
        }
    }

    /// Gives agents the lists of what they have, which the other records show.
    fn equip_agents(&mut self) {
        let mut had: HashMap<(Kind, String), Vec<String>> = HashMap::new();
        for record in self.records.iter().filter(|record| !record.kind.about().assign.is_empty()) {
            for agent in &record.agents {
                had.entry((record.kind, agent.clone())).or_default().push(record.key.clone());
            }
        }
        for agent in self.records.iter_mut().filter(|record| record.kind == Kind::Agent) {
            for field in Kind::Agent.about().fields {
                if let Form::Assigned(kind) = field.form
                    && let Some(names) = had.remove(&(kind, agent.key.clone()))
                {
                    agent.fields.insert(field.key.to_owned(), sorted(names.into_iter()));
                }
            }
        }
    }

    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.kind == kind)
    }

    pub fn find(&self, kind: Kind, key: &str) -> Option<&Record> {
        self.all(kind).find(|record| record.key == key)
    }

    /// The records that share a name, which files can't tell apart: only channels can.
    pub fn doubles(&self) -> impl Iterator<Item = &Record> {
        let mut known = BTreeSet::new();
        self.all(Kind::Channel).filter(move |record| !known.insert(&record.key))
    }
}

fn hosts(shown: &Value) -> Vec<Host> {
    let host = |host: &Value| Host {
        id: host["id"].as_i64().unwrap_or_default(),
        entry: format!("{}:{}", host["host"].as_str().unwrap_or_default(), host["port"]),
    };
    shown.as_array().into_iter().flatten().map(host).collect()
}
