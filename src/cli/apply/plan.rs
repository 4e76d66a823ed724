//! A plan: the changes in an order that works, for `execute`, for people, and for programs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{kinds::Kind, records::Fields, wanted::FileLine};
use crate::base::{numerals::with_noun, plain::without_controls};

/// A change.
pub struct PlannedChange {
    /// What it is, such as `update agent support`.
    pub title: String,
    /// What it changes, a line each.
    pub lines: Vec<String>,
    pub work: Work,
    /// Where a file asks for it.
    pub place: Option<FileLine>,
}

pub enum Work {
    Create {
        kind: Kind,
        key: String,
        fields: Fields,
    },
    Update {
        kind: Kind,
        key: String,
        fields: Fields,
    },
    /// Sets the agents that have a record, by name.
    Assign {
        kind: Kind,
        key: String,
        agents: BTreeSet<String>,
    },
    /// Sets the members who may use a credential, by address.
    Share {
        key: String,
        members: Vec<String>,
    },
    /// Changes who may write to a channel.
    Origins {
        key: String,
        added: Vec<String>,
        removed: Vec<String>,
    },
    AllowHost {
        host: String,
        port: i64,
    },
    RemoveHost {
        id: i64,
    },
    Remove {
        kind: Kind,
        key: String,
    },
    Policy {
        text: String,
        version: String,
    },
    Restart {
        agent: String,
    },
}

#[derive(Default)]
pub struct Plan {
    pub steps: Vec<PlannedChange>,
    /// What changes nothing, but should be known.
    pub notes: Vec<String>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The plan for people.
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            text.push_str(&format!("{}\n", without_controls(&step.title)));
            for line in &step.lines {
                text.push_str(&format!("    {}\n", without_controls(line)));
            }
        }
        for note in &self.notes {
            text.push_str(&format!("Note: {}\n", without_controls(note)));
        }
        let summary = if self.is_empty() {
            "Nothing to change: the organization is as the files say.".to_owned()
        } else {
            format!("{}.", with_noun(self.steps.len(), "change"))
        };
        text.push_str(&summary);
        text
    }

    /// The plan for programs.
    pub fn json(&self) -> Value {
        let step = |step: &PlannedChange| json!({ "change": step.title, "details": step.lines });
        json!({ "changes": self.steps.iter().map(step).collect::<Value>(), "notes": self.notes })
    }
}
