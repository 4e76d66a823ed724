//! Somebody allows more: on top of a month's budget, or of the tokens of an hour.

use std::time::Duration;

use serde_json::json;

use super::{
    graphql::AllowSpendingInput,
    limits,
    months::{self, Of},
    terms::Terms,
};
use crate::{
    base::{
        enums::{ChangeOp, LimitKind, RecordKind},
        ids::AgentId,
        permission::Permission,
        problem::{Problem, Result},
    },
    core::{access::Scope, audit, store::Tx},
    slices::{agents, approvals, orgs},
};

/// How long tokens that were allowed count.
const HOUR: Duration = Duration::from_hours(1);

/// Allows an agent, or the organization, to spend more, resolves the approval that asks for it, and lets turns go on.
///
/// # Errors
/// `NOT_FOUND` for the agent or the approval; `VALIDATION_FAILED` unless there is either money or tokens, for tokens without an
/// agent, and for an approval of something else; `APPROVAL_NOT_PENDING`; `PERMISSION_DENIED` for the approval.
pub async fn allow(scope: &Scope, input: AllowSpendingInput) -> Result<()> {
    check(&input)?;
    if input.approval_id.is_some() {
        scope.require(Permission::ApprovalResolve)?;
    }
    let mut tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let of = match input.agent_id {
        Some(agent) => Of::Agent(
            agents::standing(&tx, agent).await?.ok_or_else(|| Problem::not_found("agent", agent))?.id,
        ),
        None => Of::Organization,
    };
    if let Some(micro) = input.cost_micro {
        money(&tx, of, micro).await?;
    }
    if let (Some(tokens), Of::Agent(agent)) = (input.tokens, of) {
        add_tokens(&tx, agent, tokens).await?;
    }
    record(&tx, of, &input);
    match input.approval_id {
        Some(approval) => approvals::resolve_spending(&mut tx, approval, input.agent_id).await?,
        None => approvals::withdraw_guards(&mut tx, input.agent_id).await?,
    }
    go_on(&tx, of, &input).await?;
    tx.commit().await
}

fn check(input: &AllowSpendingInput) -> Result<()> {
    if input.cost_micro.is_some() == input.tokens.is_some() {
        let detail = "Give either `costMicro` or `tokens`.";
        return Err(Problem::invalid_at("/cost_micro", "REQUIRED", detail));
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

/// On top of the tokens of an hour. What was allowed before and still counts is kept.
async fn add_tokens(tx: &Tx, agent: AgentId, tokens: i64) -> Result<()> {
    let sql = "INSERT INTO token_allowances (organization_id, agent_id, tokens, until_at) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (organization_id, agent_id) DO UPDATE SET until_at = excluded.until_at, \
               tokens = excluded.tokens + CASE WHEN token_allowances.until_at > $5 THEN token_allowances.tokens ELSE 0 END";
    let values =
        vec![tx.scope.org.into(), agent.into(), tokens.into(), tx.now.plus(HOUR).into(), tx.now.into()];
    tx.run(sql, values).await?;
    Ok(())
}

/// Lets those go on that waited for it.
async fn go_on(tx: &Tx, of: Of, input: &AllowSpendingInput) -> Result<()> {
    let kind = if input.tokens.is_some() { LimitKind::Tokens } else { LimitKind::Money };
    let waiting = match of {
        Of::Agent(agent) => vec![agent],
        Of::Organization => limits::waiting(tx, kind).await?,
    };
    for agent in waiting {
        if let Some(agent) = agents::standing(tx, agent).await? {
            limits::eased_of(tx, &agent, &[kind]).await?;
        }
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
