//! Changes of records, as subscribers are notified of them.

use crate::base::{
    enums::{ChangeOp, RecordKind},
    ids::{OrgId, UserId},
};

/// A committed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The record's organization.
    pub org: OrgId,
    pub kind: RecordKind,
    /// The record's id; for a member, the user's.
    pub id: i64,
    pub op: ChangeOp,
    /// The parent record, where subscribers filter by it: a conversation's agent, a message's conversation.
    pub of: Option<i64>,
    /// The only person to notify, for a change to private state such as how far they have read.
    pub only: Option<UserId>,
}

impl Event {
    /// A change announced to everyone who may see the record.
    #[must_use]
    pub fn new(org: OrgId, op: ChangeOp, kind: RecordKind, id: impl Into<i64>) -> Self {
        Self { org, kind, id: id.into(), op, of: None, only: None }
    }

    /// Sets the record's parent.
    #[must_use]
    pub fn with_parent(self, parent: impl Into<i64>) -> Self {
        Self { of: Some(parent.into()), ..self }
    }

    /// Restricts the notification to this person.
    #[must_use]
    pub fn only(self, person: UserId) -> Self {
        Self { only: Some(person), ..self }
    }
}

/// The events of one transaction, one for each record: created stays created, and deleted ends it.
pub fn merged(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut merged: Vec<Event> = Vec::new();
    for event in events {
        let is_same = |other: &&mut Event| {
            (other.org, other.kind, other.id, other.only) == (event.org, event.kind, event.id, event.only)
        };
        match merged.iter_mut().find(is_same) {
            Some(earlier) => {
                earlier.of = earlier.of.or(event.of);
                if earlier.op != ChangeOp::Created || event.op == ChangeOp::Deleted {
                    earlier.op = event.op;
                }
            }
            None => merged.push(event),
        }
    }
    merged
}

/// Notifies subscribers of committed changes.
pub trait Publish: Send + Sync {
    /// Notifies them of one.
    fn publish(&self, event: Event);
}
