//! Someone allows more: on top of a month's budget, or of the tokens of an hour.

use std::time::Duration;

use serde_json::json;

use super::{
    budget::Terms,
    input::AllowSpendingInput,
    limit_queries, limits,
    monthly_totals::{self, Guarded, Of},
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

/// More may be spent of a limit.
#[derive(Debug)]
pub struct Allowed {
    /// The limit.
    pub of: Guarded,
    /// The approval that asks for it.
    pub approval: Option<ApprovalId>,
}

impl DomainEvent for Allowed {}

/// Allows an agent, or the organization, to spend more, resolves the approval that asks for it, and lets turns go on. Less than
/// nothing takes back what was allowed.
///
/// # Errors
/// `NOT_FOUND` for the agent or the approval; `VALIDATION_FAILED` unless there is either money or tokens, for tokens without an
/// agent, and for an approval of something else, or with less; `APPROVAL_NOT_PENDING`; `PERMISSION_DENIED` for the approval.
pub async fn allow(scope: &Scope, input: AllowSpendingInput) -> Result<()> {
    check(&input)?;
    if input.approval_id.is_some() {
        scope.require(Permission::ApprovalResolve)?;
    }
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let kind = if input.tokens.is_some() { LimitKind::Tokens } else { LimitKind::Money };
    let of = input.agent_id.map_or(Of::Organization, Of::Agent);
    let waiting = hold(&tx, of, kind).await?;
    if let Some(micro) = input.cost_micro {
        money(&tx, of, micro).await?;
    }
    if let (Some(tokens), Of::Agent(agent)) = (input.tokens, of) {
        queries::allow_tokens(&tx, agent, tokens, tx.now.plus(Duration::from_hours(1))).await?;
    }
    record(&tx, of, &input);
    if !takes_back(&input) {
        emit(&tx, Allowed { of: of.limit(kind), approval: input.approval_id }).await?;
        go_on(&tx, of, kind, &waiting).await?;
    }
    tx.commit().await
}

/// Holds those who wait for it, before the months are written: the agent itself, or all that wait for the organization.
async fn hold(tx: &Tx, of: Of, kind: LimitKind) -> Result<Vec<LockedAgent>> {
    let ids = match of {
        Of::Agent(agent) => vec![agent],
        Of::Organization => limit_queries::waiting_agents(tx, kind).await?,
    };
    let mut held = Vec::with_capacity(ids.len());
    for agent in ids {
        match (agents::lock_agent(tx, agent).await?, of) {
            (Some(standing), _) => held.push(standing),
            (None, Of::Agent(_)) => return Err(Problem::not_found("agent", agent)),
            (None, Of::Organization) => {}
        }
    }
    Ok(held)
}

fn takes_back(input: &AllowSpendingInput) -> bool {
    input.cost_micro.is_some_and(|micro| micro < 0)
}

fn check(input: &AllowSpendingInput) -> Result<()> {
    if input.cost_micro.is_some() == input.tokens.is_some() {
        let detail = "Give either `costMicro` or `tokens`.";
        return Err(Problem::invalid_at("/cost_micro", "REQUIRED", detail));
    }
    if input.cost_micro == Some(0) {
        let detail = "`costMicro` must not be 0.";
        return Err(Problem::invalid_at("/cost_micro", "NOT_ALLOWED", detail));
    }
    if takes_back(input) && input.approval_id.is_some() {
        let detail = "The approval asks for more. Leave `approvalId` out to take back what was allowed.";
        return Err(Problem::invalid_at("/cost_micro", "TOO_SMALL", detail));
    }
    if input.tokens.is_some() && input.agent_id.is_none() {
        let detail = "`agentId` is required with `tokens`: the tokens of an hour are each agent's.";
        return Err(Problem::invalid_at("/agent_id", "REQUIRED", detail));
    }
    Ok(())
}

/// On top of this month's budget.
async fn money(tx: &Tx, of: Of, micro: i64) -> Result<()> {
    let terms = match of {
        Of::Agent(agent) => Terms::of(tx, agent).await?,
        Of::Organization => Terms::of_organization(tx).await?,
    };
    let (_, from, _) = months::at(tx, of, &terms, tx.now).await?;
    months::allow(tx, of, from, micro).await
}

/// Lets those go on that waited for it, if it is enough for them.
async fn go_on(tx: &Tx, of: Of, kind: LimitKind, waiting: &[LockedAgent]) -> Result<()> {
    for agent in waiting {
        release::allowed(tx, agent, kind).await?;
    }
    if of == Of::Organization {
        // Those that were refused since they were looked for look again by themselves.
        limits::recheck(tx, None);
    }
    Ok(())
}

fn record(tx: &Tx, of: Of, input: &AllowSpendingInput) {
    let (kind, id) = match of {
        Of::Agent(agent) => (RecordKind::Agent, agent.0),
        Of::Organization => (RecordKind::Organization, tx.scope.org.0),
    };
    let changes = json!({ "cost_micro": input.cost_micro, "tokens": input.tokens });
    let (op, operation) = (ChangeOp::Updated, "allowSpending");
    audit::record(tx, audit::Entry { operation, op, kind, id, changes });
}
