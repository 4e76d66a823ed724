//! Events and questions of agents for the features above them.

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

/// A deleted agent was restored.
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
    pub has_other_server: bool,
}

impl DomainEvent for Moved {}

/// An edit has changed an agent's spending limits, or its access to a model.
#[derive(Debug)]
pub struct Edited {
    pub agent: LockedAgent,
    /// Another budget or cost guard.
    pub has_other_limits: bool,
    /// Other access to a model.
    pub has_other_access: bool,
}

impl DomainEvent for Edited {}

/// Whether an agent has credentials of its own.
#[derive(Debug)]
pub struct HasCredentials(pub AgentId);

impl Question for HasCredentials {
    type Answer = bool;
}

/// Replaces an agent's assignments of this kind with `wanted`; assignments of archived records stay. The answer is the
/// changes, if there are any.
#[derive(Debug)]
pub struct SetAssignments<Id> {
    pub agent: AgentId,
    pub wanted: Vec<Id>,
}

impl<Id: Send + Sync + 'static> Question for SetAssignments<Id> {
    type Answer = Option<Value>;
}
