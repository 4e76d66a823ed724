//! Allowances: extra money on top of a month's budget, or extra tokens on top of an hour's limit.

use std::time::Duration;

use serde_json::json;

use super::{
    budget::Terms,
    input::AllowSpendingInput,
    limit_queries, limits,
    monthly_totals::{self, BudgetOwner, GuardedLimit},
    queries, release,
};
use crate::{
    base::{
        enums::{ChangeOp, LimitKind, RecordKind},
        ids::ApprovalId,
        permission::Permission,
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{
        agents::{self, LockedAgent},
        orgs,
    },
};

/// An allowance raised a limit.
#[derive(Debug)]
pub struct Allowed {
    pub of: GuardedLimit,
    /// The approval that asked for the allowance.
    pub approval: Option<ApprovalId>,
}

impl DomainEvent for Allowed {}

/// Lets an agent or the organization spend more, resolves the approval that asked for it, and resumes waiting turns. A
/// negative amount takes back an allowance.
///
/// # Errors
/// `NOT_FOUND` for the agent or the approval; `VALIDATION_FAILED` unless exactly one of money and tokens is given, for
/// tokens without an agent, for an approval of another limit, and for an approval with a negative amount;
/// `APPROVAL_NOT_PENDING`; `PERMISSION_DENIED` for the approval.
pub async fn allow(scope: &Scope, input: AllowSpendingInput) -> Result<()> {
    validate(&input)?;
    if input.approval_id.is_some() {
        scope.require(Permission::ApprovalResolve)?;
    }
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let kind = if input.tokens.is_some() { LimitKind::Tokens } else { LimitKind::Money };
    let owner = input.agent_id.map_or(BudgetOwner::Organization, BudgetOwner::Agent);
    let waiting = lock_waiting_agents(&tx, owner, kind).await?;
    if let Some(micro) = input.cost_micro {
        allow_money(&tx, owner, micro).await?;
    }
    if let (Some(tokens), BudgetOwner::Agent(agent)) = (input.tokens, owner) {
        queries::allow_tokens(&tx, agent, tokens, tx.now.plus(Duration::from_hours(1))).await?;
    }
    record_allowance(&tx, owner, &input);
    if !takes_back(&input) {
        emit(&tx, Allowed { of: owner.limit(kind), approval: input.approval_id }).await?;
        release_waiting(&tx, owner, kind, &waiting).await?;
    }
    tx.commit().await
}

/// Locks the agent, or all agents that wait for the organization's limit. Must precede any write to a month's row.
async fn lock_waiting_agents(tx: &Tx, owner: BudgetOwner, kind: LimitKind) -> Result<Vec<LockedAgent>> {
    let ids = match owner {
        BudgetOwner::Agent(agent) => vec![agent],
        BudgetOwner::Organization => limit_queries::waiting_agents(tx, kind).await?,
    };
    let mut held = Vec::with_capacity(ids.len());
    for agent in ids {
        match (agents::lock_agent(tx, agent).await?, owner) {
            (Some(standing), _) => held.push(standing),
            (None, BudgetOwner::Agent(_)) => return Err(Problem::not_found("agent", agent)),
            (None, BudgetOwner::Organization) => {}
        }
    }
    Ok(held)
}

fn takes_back(input: &AllowSpendingInput) -> bool {
    input.cost_micro.is_some_and(|micro| micro < 0)
}

fn validate(input: &AllowSpendingInput) -> Result<()> {
    if input.cost_micro.is_some() == input.tokens.is_some() {
        let detail = "Give either `costMicro` or `tokens`.";
        return Err(Problem::invalid_at("/cost_micro", "REQUIRED", detail));
    }
    if input.cost_micro == Some(0) {
        let detail = "`costMicro` must not be 0.";
        return Err(Problem::invalid_at("/cost_micro", "NOT_ALLOWED", detail));
    }
    if takes_back(input) && input.approval_id.is_some() {
        let detail = "The approval asks for more. Leave `approvalId` out to take back an allowance.";
        return Err(Problem::invalid_at("/cost_micro", "TOO_SMALL", detail));
    }
    if input.tokens.is_some() && input.agent_id.is_none() {
        let detail = "`agentId` is required with `tokens`: the hourly token limit is set for each agent.";
        return Err(Problem::invalid_at("/agent_id", "REQUIRED", detail));
    }
    Ok(())
}

/// Adds money to this month's allowance.
async fn allow_money(tx: &Tx, owner: BudgetOwner, micro: i64) -> Result<()> {
    let terms = match owner {
        BudgetOwner::Agent(agent) => Terms::load(tx, agent).await?,
        BudgetOwner::Organization => Terms::load_for_organization(tx).await?,
    };
    let (_, from, _) = monthly_totals::load(tx, owner, &terms, tx.now).await?;
    monthly_totals::allow(tx, owner, from, micro).await
}

/// Resumes the waiting agents for which the allowance suffices.
async fn release_waiting(
    tx: &Tx,
    owner: BudgetOwner,
    kind: LimitKind,
    waiting: &[LockedAgent],
) -> Result<()> {
    for agent in waiting {
        release::release_if_waiting_for(tx, agent, kind).await?;
    }
    if owner == BudgetOwner::Organization {
        // Agents that were refused since the query are not among `waiting`.
        limits::recheck(tx, None);
    }
    Ok(())
}

fn record_allowance(tx: &Tx, owner: BudgetOwner, input: &AllowSpendingInput) {
    let (kind, id) = match owner {
        BudgetOwner::Agent(agent) => (RecordKind::Agent, agent.0),
        BudgetOwner::Organization => (RecordKind::Organization, tx.scope.org.0),
    };
    let changes = json!({ "cost_micro": input.cost_micro, "tokens": input.tokens });
    let (op, operation) = (ChangeOp::Updated, "allowSpending");
    audit::record(tx, audit::Entry { operation, op, kind, id, changes });
}
