//! Approvals that end because someone has fixed what they are about, in the transaction that fixes it: a host that is allowed
//! now, more to spend, a model credential that is accepted again, a channel that is on again, someone who may write now.
//! Or because it was deleted: then no one can do anything about it. Callers hold the agent if there is one.

use sea_orm::{ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::json;

use super::{
    NewApproval, answers,
    decide::end_pending,
    end::End,
    entity::approvals,
    question::Answer,
    raise::raise,
    risk_check::authorized,
    rows::{asked, load},
    state::{Action, Step},
};
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalOutcome, ApprovalStatus, LimitKind, Severity},
        ids::{AgentId, ChannelId, ModelCredentialId, ServerId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::store::Tx,
    domain::{
        agents::{self, LockedAgent},
        model_credentials, network,
        spending::{self, GuardedLimit, LimitsChanged, UsedUp},
    },
};

/// The tool as which connections are judged.
pub const NETWORK: &str = "network";

/// Whether an agent asks for a connection.
pub(super) fn is_connection(approval: &approvals::Model) -> bool {
    approval.request.as_ref().is_some_and(|request| request["tool"] == NETWORK)
}

/// A host is allowed: approves the request for a connection to it.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`; `VALIDATION_FAILED` for one that asks for something else.
pub async fn host_allowed(tx: &Tx, allowed: &network::Allowed) -> Result<()> {
    let Some(id) = allowed.approval else { return Ok(()) };
    let approval = load(tx, id).await?;
    let input = approval.request.as_ref().filter(|request| request["tool"] == NETWORK);
    let input = input.map(|request| &request["input"]);
    let fits = input.is_some_and(|input| {
        let port = input["port"].as_i64().unwrap_or_default();
        let is_host = input["host"].as_str().is_some_and(|host| network::covers(&allowed.host, host));
        is_host && port == allowed.port
    });
    if !fits {
        return Err(other("The approval does not ask for a connection to this host and port."));
    }
    let step = Action::Answer.apply(approval.kind, approval.status)?;
    let approve = Answer { options: vec!["approve".to_owned()], text: None };
    let accepted = asked(&approval)?.accept(&approve)?;
    let Step::Verdict = step else { return Err(other("The approval does not ask for an action.")) };
    let end = End::new(ApprovalStatus::Resolved, accepted.verdict()?);
    let agent = match approval.agent_id {
        Some(agent) => agents::lock_agent(tx, agent).await?,
        None => None,
    };
    end_pending(tx, (&approval, agent), "allowHost", End { answer: Some(accepted), ..end }).await
}

/// More may be spent: resolves the COST_GUARD that asks for it, or withdraws those of this limit.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`; `VALIDATION_FAILED` for one that is about something else.
pub async fn spending_allowed(tx: &Tx, allowed: &spending::Allowed) -> Result<()> {
    let Some(id) = allowed.approval else {
        return withdraw_guards(tx, |of| of == allowed.of).await;
    };
    let approval = load(tx, id).await?;
    if guarded(&approval) != Some(allowed.of) {
        return Err(other("The approval is not about this limit."));
    }
    let step = Action::Resolve.apply(approval.kind, approval.status)?;
    let Step::Close(status, outcome) = step else { return Err(other("The approval asks a question.")) };
    // No agent waits for its answer, so none has to be held.
    end_pending(tx, (&approval, None), "allowSpending", End::new(status, outcome)).await
}

fn other(detail: &str) -> Problem {
    Problem::invalid_at("/approval_id", "NOT_ALLOWED", detail)
}

/// Tells people that nothing is left to spend. Not while they are asked already, nor if they have dismissed it `since` then; if
/// `is_notice`, not if they were notified `since` then at all. What was withdrawn was about other limits.
pub async fn guard_cost(tx: &Tx, used_up: &UsedUp) -> Result<()> {
    let UsedUp { of, amount, since, is_notice, .. } = *used_up;
    let is_told = |guard: &approvals::Model| match guard.outcome {
        None => is_open(guard, tx.now),
        Some(ApprovalOutcome::Withdrawn) => false,
        Some(outcome) => guard.created_at >= since && (is_notice || outcome == ApprovalOutcome::Dismissed),
    };
    let known = guards(tx, since).await?;
    if known.iter().any(|guard| guarded(guard) == Some(of) && is_told(guard)) {
        return Ok(());
    }
    // Amounts are decimals in strings, as in the schema.
    let (cost_micro, tokens) = match of.kind {
        LimitKind::Tokens => (None, Some(amount)),
        LimitKind::Money | LimitKind::Usage => (Some(amount.to_string()), None),
    };
    let new = NewApproval {
        body: Some(used_up.body.clone()),
        severity: Severity::High,
        agent_id: Some(of.agent.unwrap_or(used_up.cause)),
        spending: Some(json!({ "agent_id": of.agent, "tokens": tokens, "cost_micro": cost_micro })),
        expires_at: Some(used_up.until),
        ..NewApproval::new(ApprovalKind::CostGuard, used_up.title)
    };
    raise(tx, new).await?;
    Ok(())
}

/// Withdraws what [`guard_cost`] raised about limits that are others now.
pub async fn limits_changed(tx: &Tx, changed: &LimitsChanged) -> Result<()> {
    withdraw_guards(tx, |of| changed.agent.is_none() || of.agent == changed.agent).await
}

async fn withdraw_guards(tx: &Tx, is_other: impl Fn(GuardedLimit) -> bool) -> Result<()> {
    for approval in guards(tx, tx.now).await? {
        if is_open(&approval, tx.now) && guarded(&approval).is_some_and(&is_other) {
            answers::withdraw(tx, &approval).await?;
        }
    }
    Ok(())
}

/// The limit that an approval is about.
fn guarded(approval: &approvals::Model) -> Option<GuardedLimit> {
    let spending = approval.spending.as_ref()?;
    let kind = if spending["tokens"].is_null() { LimitKind::Money } else { LimitKind::Tokens };
    Some(GuardedLimit { agent: spending["agent_id"].as_i64().map(AgentId), kind })
}

/// Whether it waits for people. One past its end does not, even if the job hasn't ended it yet.
fn is_open(guard: &approvals::Model, now: Timestamp) -> bool {
    guard.status == ApprovalStatus::Pending && guard.expires_at.is_none_or(|at| at > now)
}

/// The guards that are open or were raised since then.
async fn guards(tx: &Tx, since: Timestamp) -> Result<Vec<approvals::Model>> {
    let wanted =
        Condition::any().add(Expr::cust("status = 'PENDING'")).add(approvals::Column::CreatedAt.gte(since));
    let open = tx
        .scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::Kind.eq(ApprovalKind::CostGuard))
        .filter(wanted)
        .order_by_asc(approvals::Column::Id);
    Ok(open.all(tx.connection()).await?)
}

/// Asks people, once, for a model credential that the provider accepts.
pub async fn require_credential(tx: &Tx, rejection: &model_credentials::Rejected) -> Result<()> {
    let id = rejection.credential;
    if rejected(tx, id).count(tx.connection()).await? > 0 {
        return Ok(());
    }
    let title = format!("The provider rejects the model credential “{}”", rejection.name);
    let new = NewApproval {
        body: Some(rejection.detail.clone()).filter(|detail| !detail.trim().is_empty()),
        severity: Severity::High,
        model_credential_id: Some(id),
        ..NewApproval::new(ApprovalKind::AuthRequired, title)
    };
    raise(tx, new).await?;
    Ok(())
}

/// Withdraws what [`require_credential`] asked for.
pub async fn credential_accepted(tx: &Tx, id: ModelCredentialId) -> Result<()> {
    let rejected = rejected(tx, id);
    withdraw_all(tx, rejected).await
}

/// Withdraws what told people that a channel had failed: it is on again.
pub async fn withdraw_channel_errors(tx: &Tx, id: ChannelId) -> Result<()> {
    let errors = about(tx, id, ApprovalKind::ChannelError);
    withdraw_all(tx, errors).await
}

/// Withdraws what asked whether this origin may write to the channel: it may now.
pub async fn withdraw_access_requests(tx: &Tx, id: ChannelId, origin: &str) -> Result<()> {
    let requests = about(tx, id, ApprovalKind::AccessRequest);
    let requests = requests.filter(approvals::Column::OriginId.eq(origin));
    withdraw_all(tx, requests).await
}

/// Withdraws everything about a channel: it was deleted.
pub async fn channel_deleted(tx: &Tx, id: ChannelId) -> Result<()> {
    let all = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(id));
    withdraw_all(tx, all).await
}

/// Withdraws what was asked for an agent that was deleted: access to its model, and more to spend. What its channels were about
/// stays, and what it ran into of the organization's limits.
pub async fn agent_deleted(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    authorized(tx, agent).await?;
    withdraw_guards(tx, |of| of.agent == Some(agent.id)).await
}

/// Withdraws the alerts of a server: it was deleted.
pub async fn server_deleted(tx: &Tx, id: ServerId) -> Result<()> {
    let alerts = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ServerId.eq(id));
    withdraw_all(tx, alerts).await
}

/// Approvals of this kind about a channel.
fn about(tx: &Tx, channel: ChannelId, kind: ApprovalKind) -> sea_orm::Select<approvals::Entity> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(channel));
    found.filter(approvals::Column::Kind.eq(kind))
}

async fn withdraw_all(tx: &Tx, of: sea_orm::Select<approvals::Entity>) -> Result<()> {
    let open = of.filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    for approval in open.order_by_asc(approvals::Column::Id).all(tx.connection()).await? {
        answers::withdraw(tx, &approval).await?;
    }
    Ok(())
}

fn rejected(tx: &Tx, id: ModelCredentialId) -> sea_orm::Select<approvals::Entity> {
    tx.scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::ModelCredentialId.eq(id))
        .filter(approvals::Column::Kind.eq(ApprovalKind::AuthRequired))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending))
}
