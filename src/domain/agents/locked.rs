//! An agent that the transaction has locked.
//!
//! Everything about an agent's work is decided under the lock of its row: messages to it, its turns, its requests, and
//! its host's reports. Functions that decide such things take a [`LockedAgent`], made from a row that the transaction
//! has locked. The agent is locked **before** conversations, turns and approvals ([`locks`](crate::domain::locks)), so
//! that no two transactions deadlock.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use super::{
    entity::agents,
    rows::{announce, find, find_any, not_deleted},
    session, set_status_reason,
};
use crate::{
    base::{
        enums::{AgentStatus, OverrideMode, UsageStatus},
        ids::{AgentId, ServerId},
        json::texts,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::store::{Tx, added},
    domain::{commands::Host, orgs},
};

/// An agent, locked until the transaction ends: its server, launch and state.
#[derive(Clone, Debug)]
pub struct LockedAgent {
    pub id: AgentId,
    /// The server it runs on.
    pub server: ServerId,
    pub status: AgentStatus,
    pub generation: i64,
    /// The revision it was last launched with.
    pub revision: Option<i64>,
    /// Its model's provider has rejected its credential.
    pub auth_failed: bool,
    /// Its model's provider refused its last call because of a limit.
    pub usage_rejected: bool,
}

impl LockedAgent {
    pub(in crate::domain) fn from_row(agent: &agents::Model) -> Self {
        Self {
            id: agent.id,
            server: agent.server_id,
            status: agent.status,
            generation: agent.launch_generation,
            revision: agent.launched_revision,
            auth_failed: agent.auth_failed_at.is_some(),
            usage_rejected: agent.usage_status == Some(UsageStatus::Rejected),
        }
    }

    /// The recipient of commands for it.
    #[must_use]
    pub const fn host(&self) -> Host {
        Host { server: self.server, agent: self.id, generation: self.generation }
    }
}

/// Locks the agent. None if the organization doesn't have it, or has deleted it.
pub async fn lock_agent(tx: &Tx, id: AgentId) -> Result<Option<LockedAgent>> {
    Ok(find(tx, id).await?.as_ref().map(LockedAgent::from_row))
}

/// [`lock_agent`], including a deleted agent, whose late costs are still counted.
pub async fn lock_agent_even_deleted(tx: &Tx, id: AgentId) -> Result<Option<LockedAgent>> {
    Ok(find_any(tx, id).await?.as_ref().map(LockedAgent::from_row))
}

/// Locks the agent for a host that acts for this launch.
///
/// # Errors
/// `NOT_FOUND`; `AGENT_NOT_RUNNING` unless this is the current launch, and RUNNING or PAUSED.
pub async fn lock_present(tx: &Tx, id: AgentId, generation: i64) -> Result<LockedAgent> {
    let agent = lock_agent(tx, id).await?.ok_or_else(|| Problem::not_found("agent", id))?;
    let detail = if agent.generation != generation {
        format!("Launch {generation} is not the agent's current one.")
    } else if matches!(agent.status, AgentStatus::Running | AgentStatus::Paused) {
        return Ok(agent);
    } else {
        format!("The agent's status is {}.", agent.status)
    };
    Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()))
}

/// The rules for an agent's approvals: when it asks, and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRules {
    /// The risk from which it asks.
    pub ask: Option<i64>,
    /// The risk from which actions are refused.
    pub block: Option<i64>,
    pub timeout_minutes: Option<i64>,
    /// The kinds of action that it always asks about, in words.
    pub categories: Vec<String>,
    /// Tools it may not use: names of MCP servers, or kinds of tools.
    pub disabled: Vec<String>,
}

impl ApprovalRules {
    /// Whether the agent may not use this tool. A tool of an MCP server is `server.tool`, or `mcp__server__tool` as
    /// some agents write it.
    #[must_use]
    pub fn disables(&self, kind: &str, tool: &str) -> bool {
        let folded = |text: &str| text.to_lowercase().replace([' ', '-'], "_");
        let (kind, tool) = (folded(kind), folded(tool));
        self.disabled.iter().map(|group| folded(group.trim())).any(|group| {
            kind == group
                || tool.starts_with(&format!("{group}."))
                || tool.starts_with(&format!("mcp__{group}__"))
        })
    }
}

/// The agent's approval rules.
pub async fn load_approval_rules(tx: &Tx, id: AgentId) -> Result<ApprovalRules> {
    let agent = super::rows::load(tx, id).await?;
    Ok(ApprovalRules {
        ask: agent.approval_ask_threshold,
        block: agent.approval_block_threshold,
        timeout_minutes: agent.approval_timeout_minutes,
        categories: texts(&agent.approval_categories),
        disabled: texts(&agent.disabled_tool_groups),
    })
}

/// The agents in this state, in locking order.
pub async fn with_status(tx: &Tx, status: AgentStatus) -> Result<Vec<AgentId>> {
    let found =
        not_deleted(&tx.scope).filter(agents::Column::Status.eq(status)).order_by_asc(agents::Column::Id);
    let found = found.select_only().column(agents::Column::Id).into_tuple();
    Ok(found.all(tx.connection()).await?)
}

/// The number of tokens in the context at which the agent's sessions start over. None: never.
pub async fn session_limit(tx: &Tx, id: AgentId) -> Result<Option<i64>> {
    let agent = super::rows::load(tx, id).await?;
    let inherited = match agent.session_reset_mode {
        OverrideMode::Inherit => orgs::session_limit(tx).await?,
        OverrideMode::Off | OverrideMode::Custom => None,
    };
    Ok(session::limit(agent.session_reset_mode, agent.session_reset_tokens, inherited))
}

/// Adds the cost of a turn.
pub async fn add_cost(tx: &Tx, agent: &LockedAgent, tokens: i64, cost_micro: i64) -> Result<()> {
    if tokens == 0 && cost_micro == 0 {
        return Ok(());
    }
    let changed = tx.scope.update::<agents::Entity>().filter(agents::Column::Id.eq(agent.id));
    let changed = changed
        .col_expr(agents::Column::TokensUsed, Expr::cust(added("tokens_used", tokens)))
        .col_expr(agents::Column::CostMicro, Expr::cust(added("cost_micro", cost_micro)))
        .col_expr(agents::Column::UpdatedAt, Expr::value(tx.now));
    changed.exec(tx.connection()).await?;
    announce(tx, agent.id);
    Ok(())
}

/// Records that the agent's model accepts its credential again.
pub async fn clear_auth_failure(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    let changed = tx.scope.update::<agents::Entity>().filter(agents::Column::Id.eq(agent.id));
    let changed = changed.col_expr(agents::Column::AuthFailedAt, Expr::value(None::<Timestamp>));
    changed.exec(tx.connection()).await?;
    set_status_reason(tx, agent.id, None).await?;
    announce(tx, agent.id);
    Ok(())
}
