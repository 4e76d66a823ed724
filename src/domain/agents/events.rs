//! What agents tell the features above them, and ask of them.

use serde_json::Value;

use super::LockedAgent;
use crate::{
    base::ids::AgentId,
    core::handlers::{DomainEvent, Question},
};

/// An agent was deleted.
#[derive(Debug)]
pub struct Deleted {
    /// The agent, as it was before.
    pub agent: LockedAgent,
}

impl DomainEvent for Deleted {}

/// The deletion of an agent was taken back.
#[derive(Debug)]
pub struct Restored {
    pub agent: AgentId,
}

impl DomainEvent for Restored {}

/// An agent gets another server or image. Its row is not written yet.
#[derive(Debug)]
pub struct Moved {
    /// The agent, as it was before.
    pub agent: LockedAgent,
    /// Whether it gets another server.
    pub has_other_server: bool,
}

impl DomainEvent for Moved {}

/// An edit has changed what an agent may spend, or its access to a model.
#[derive(Debug)]
pub struct Edited {
    pub agent: LockedAgent,
    /// Whether it has another budget or cost guard.
    pub has_other_limits: bool,
    /// Whether it has other access to a model.
    pub has_other_access: bool,
}

impl DomainEvent for Edited {}

/// Whether an agent has credentials of its own.
#[derive(Debug)]
pub struct HasCredentials(pub AgentId);

impl Question for HasCredentials {
    type Answer = bool;
}

/// Makes these everything of their kind that an agent works with, apart from what is archived. The answer is what changed, if
/// anything did.
#[derive(Debug)]
pub struct Equip<Id> {
    pub agent: AgentId,
    /// What it gets.
    pub wanted: Vec<Id>,
}

impl<Id: Send + Sync + 'static> Question for Equip<Id> {
    type Answer = Option<Value>;
}
