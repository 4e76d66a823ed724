//! Approvals that end because their cause was fixed, in the transaction that fixes it: a host is allowed, a limit is
//! raised, a model credential is accepted again, a channel is on again, a sender is allowed. Or because their subject
//! was deleted, so that no one can act on them. Callers have locked the agent if there is one.

use sea_orm::{ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::json;

use super::{
    NewApproval, answers,
    decide::end_pending,
    end::ApprovalEnd,
    entity::approvals,
    question::Answer,
    raise::raise,
    risk_check::withdraw_model_access_requests,
    rows::{load, question_of},
    state::{Action, Transition},
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

/// The name of the tool that stands for network connections in requests and risk rules.
pub const NETWORK: &str = "network";

/// Whether an approval is a request for a network connection.
pub(super) fn is_connection(approval: &approvals::Model) -> bool {
    approval.request.as_ref().is_some_and(|request| request["tool"] == NETWORK)
}

/// Approves the request for a connection to a host that has been allowed.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`; `VALIDATION_FAILED` for one that asks for something else.
pub async fn approve_allowed_host(tx: &Tx, allowed: &network::Allowed) -> Result<()> {
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
        return Err(wrong_approval("The approval does not ask for a connection to this host and port."));
    }
    let transition = Action::Answer.apply(approval.kind, approval.status)?;
    let approve = Answer { options: vec!["approve".to_owned()], text: None };
    let accepted = question_of(&approval)?.accept(&approve)?;
    let Transition::ByAnswer = transition else {
        return Err(wrong_approval("The approval does not ask for an action."));
    };
    let end = ApprovalEnd::new(ApprovalStatus::Resolved, accepted.outcome()?);
    let agent = match approval.agent_id {
        Some(agent) => agents::lock_agent(tx, agent).await?,
        None => None,
    };
    end_pending(tx, (&approval, agent), "allowHost", ApprovalEnd { answer: Some(accepted), ..end }).await
}

/// Resolves the COST_GUARD for which a limit was raised, or withdraws all COST_GUARDs of this limit.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`; `VALIDATION_FAILED` for one that is about something else.
pub async fn resolve_raised_limit(tx: &Tx, allowed: &spending::Allowed) -> Result<()> {
    let Some(id) = allowed.approval else {
        return withdraw_guards(tx, |of| of == allowed.of).await;
    };
    let approval = load(tx, id).await?;
    if guarded(&approval) != Some(allowed.of) {
        return Err(wrong_approval("The approval is not about this limit."));
    }
    let transition = Action::Resolve.apply(approval.kind, approval.status)?;
    let Transition::Close(status, outcome) = transition else {
        return Err(wrong_approval("The approval asks a question."));
    };
    // No agent waits for the answer, so none has to be locked.
    end_pending(tx, (&approval, None), "allowSpending", ApprovalEnd::new(status, outcome)).await
}

fn wrong_approval(detail: &str) -> Problem {
    Problem::invalid_at("/approval_id", "NOT_ALLOWED", detail)
}

/// Raises a COST_GUARD: nothing is left to spend. Not while one is open, nor if one was dismissed after `since`; if
/// `is_notice`, not if any was raised after `since`. Withdrawn ones don't count, because they were about other limits.
pub async fn raise_cost_guard(tx: &Tx, used_up: &UsedUp) -> Result<()> {
    let UsedUp { of, amount, since, is_notice, .. } = *used_up;
    let is_known = |guard: &approvals::Model| match guard.outcome {
        None => is_open(guard, tx.now),
        Some(ApprovalOutcome::Withdrawn) => false,
        Some(outcome) => guard.created_at >= since && (is_notice || outcome == ApprovalOutcome::Dismissed),
    };
    let raised = find_guards(tx, since).await?;
    if raised.iter().any(|guard| guarded(guard) == Some(of) && is_known(guard)) {
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

/// Withdraws the approvals of [`raise_cost_guard`] about limits that have changed.
pub async fn withdraw_outdated_guards(tx: &Tx, changed: &LimitsChanged) -> Result<()> {
    withdraw_guards(tx, |of| changed.agent.is_none() || of.agent == changed.agent).await
}

async fn withdraw_guards(tx: &Tx, is_other: impl Fn(GuardedLimit) -> bool) -> Result<()> {
    for approval in find_guards(tx, tx.now).await? {
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

/// Whether it waits for people. One past its expiry does not, even if the job hasn't ended it yet.
fn is_open(guard: &approvals::Model, now: Timestamp) -> bool {
    guard.status == ApprovalStatus::Pending && guard.expires_at.is_none_or(|at| at > now)
}

/// The COST_GUARDs that are pending or were raised after `since`.
async fn find_guards(tx: &Tx, since: Timestamp) -> Result<Vec<approvals::Model>> {
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

/// Raises an AUTH_REQUIRED for a model credential that the provider rejects, unless one is open.
pub async fn request_credential(tx: &Tx, rejection: &model_credentials::Rejected) -> Result<()> {
    let id = rejection.credential;
    if credential_requests(tx, id).count(tx.connection()).await? > 0 {
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

/// Withdraws the approvals of [`request_credential`].
pub async fn withdraw_credential_requests(tx: &Tx, id: ModelCredentialId) -> Result<()> {
    let requests = credential_requests(tx, id);
    withdraw_all(tx, requests).await
}

/// Withdraws the CHANNEL_ERRORs of a channel that is on again.
pub async fn withdraw_channel_errors(tx: &Tx, id: ChannelId) -> Result<()> {
    let errors = of_channel(tx, id, ApprovalKind::ChannelError);
    withdraw_all(tx, errors).await
}

/// Withdraws the ACCESS_REQUESTs of an origin that may now write to the channel.
pub async fn withdraw_access_requests(tx: &Tx, id: ChannelId, origin: &str) -> Result<()> {
    let requests = of_channel(tx, id, ApprovalKind::AccessRequest);
    let requests = requests.filter(approvals::Column::OriginId.eq(origin));
    withdraw_all(tx, requests).await
}

/// Withdraws all approvals about a deleted channel.
pub async fn withdraw_for_deleted_channel(tx: &Tx, id: ChannelId) -> Result<()> {
    let all = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(id));
    withdraw_all(tx, all).await
}

/// Withdraws a deleted agent's requests for access to its model and for higher limits of its own. Approvals about its
/// channels and about the organization's limits stay.
pub async fn withdraw_for_deleted_agent(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    withdraw_model_access_requests(tx, agent).await?;
    withdraw_guards(tx, |of| of.agent == Some(agent.id)).await
}

/// Withdraws the alerts of a deleted server.
pub async fn withdraw_for_deleted_server(tx: &Tx, id: ServerId) -> Result<()> {
    let alerts = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ServerId.eq(id));
    withdraw_all(tx, alerts).await
}

/// Approvals of this kind about a channel.
fn of_channel(tx: &Tx, channel: ChannelId, kind: ApprovalKind) -> sea_orm::Select<approvals::Entity> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(channel));
    found.filter(approvals::Column::Kind.eq(kind))
}

async fn withdraw_all(tx: &Tx, found: sea_orm::Select<approvals::Entity>) -> Result<()> {
    let open = found.filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    for approval in open.order_by_asc(approvals::Column::Id).all(tx.connection()).await? {
        answers::withdraw(tx, &approval).await?;
    }
    Ok(())
}

fn credential_requests(tx: &Tx, id: ModelCredentialId) -> sea_orm::Select<approvals::Entity> {
    tx.scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::ModelCredentialId.eq(id))
        .filter(approvals::Column::Kind.eq(ApprovalKind::AuthRequired))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending))
}
