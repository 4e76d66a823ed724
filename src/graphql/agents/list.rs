//! The filters and orders of the feed of agents.

use super::Agent;
use crate::{
    base::{
        enums::{AgentSort, AgentStatus, SortOrder},
        ids::ServerId,
    },
    core::access::Scope,
    read::{Keys, Rows},
};

/// The filters of a feed of agents. `None` doesn't filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Vec<AgentStatus>>,
    pub server_id: Option<ServerId>,
    /// Only agents whose name contains every word.
    pub search: Option<String>,
}

/// The agents that pass `filter`.
pub fn rows(scope: &Scope, filter: &Filter) -> Rows<Agent> {
    Rows::of(scope)
        .one_of("t.status", filter.status.as_deref(), AgentStatus::as_str)
        .filter_if("t.server_id = ?", filter.server_id.map(|id| id.0))
        .found(&["t.name_folded"], filter.search.as_deref())
}

/// Failed agents first, then running ones, then the others.
const BY_STATUS: &str = "(CASE t.status WHEN 'ERROR' THEN 0 WHEN 'SPAWNING' THEN 1 WHEN 'RUNNING' THEN 2 \
                         WHEN 'PAUSED' THEN 3 WHEN 'STOPPING' THEN 4 ELSE 5 END)";
const BY_ACTIVITY: &str = "COALESCE((SELECT MAX(c.last_activity_at) FROM conversations c \
                           WHERE c.organization_id = t.organization_id AND c.agent_id = t.id), 0)";

/// The sort keys. `order` may reverse them.
pub fn keys(sort: AgentSort, order: Option<SortOrder>) -> Keys {
    match sort {
        AgentSort::Name => Keys::new("NAME", order.unwrap_or(SortOrder::Asc)).text("t.name_folded"),
        AgentSort::Status => {
            Keys::new("STATUS", order.unwrap_or(SortOrder::Asc)).int(BY_STATUS).text("t.name_folded")
        }
        AgentSort::Activity => Keys::new("ACTIVITY", order.unwrap_or(SortOrder::Desc)).int(BY_ACTIVITY),
        AgentSort::Created => Keys::new("CREATED", order.unwrap_or(SortOrder::Desc)).int("t.created_at"),
    }
}
