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
    judge::authorized,
    question::Answer,
    raise::raise,
    rows::{asked, load},
    state::{Action, Step},
};
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalOutcome, ApprovalStatus, LimitKind, Severity},
        ids::{AgentId, ApprovalId, ChannelId, ModelCredentialId, ServerId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::store::Tx,
    slices::agents::{self, LockedAgent},
};

/// The tool as which connections are judged.
pub const NETWORK: &str = "network";

/// Whether an agent asks for a connection.
pub(super) fn is_connection(approval: &approvals::Model) -> bool {
    approval.request.as_ref().is_some_and(|request| request["tool"] == NETWORK)
}

/// Approves an agent's request for a connection, if it `is_asked` for this host and port.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`; `VALIDATION_FAILED` for one that asks for something else.
pub async fn approve_connection(
    tx: &mut Tx,
    id: ApprovalId,
    is_asked: impl Fn(&str, i64) -> bool,
) -> Result<()> {
    let approval = load(tx, id).await?;
    let input = approval.request.as_ref().filter(|request| request["tool"] == NETWORK);
    let input = input.map(|request| &request["input"]);
    let fits = input.is_some_and(|input| {
        let port = input["port"].as_i64().unwrap_or_default();
        input["host"].as_str().is_some_and(|host| is_asked(host, port))
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

/// Resolves a COST_GUARD of this limit.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`; `VALIDATION_FAILED` for one that is about something else.
pub async fn resolve_spending(tx: &mut Tx, id: ApprovalId, of: Guarded) -> Result<()> {
    let approval = load(tx, id).await?;
    if guarded(&approval) != Some(of) {
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

/// The limit that a COST_GUARD is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The agent whose limit it is. None: the organization's.
    pub agent: Option<AgentId>,
    /// Money, or the tokens of an hour.
    pub kind: LimitKind,
}

/// What a COST_GUARD proposes to allow on top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The limit that is reached.
    pub of: Guarded,
    /// How much: millionths, or tokens for the next 60 minutes.
    pub amount: i64,
    /// When it is over, because there is something to spend again.
    pub until: Timestamp,
}

/// Tells people that nothing is left to spend. Not while they are asked already, nor if they have dismissed it `since` then; if
/// `is_notice`, not if they were told `since` then at all. What was withdrawn was about other limits. `cause` is the agent that
/// could not go on.
///
/// # Errors
/// The database is unreachable.
pub async fn guard_cost(
    tx: &mut Tx,
    cause: AgentId,
    proposal: Proposal,
    (title, body): (&str, String),
    (since, is_notice): (Timestamp, bool),
) -> Result<()> {
    let is_told = |guard: &approvals::Model| match guard.outcome {
        None => is_open(guard, tx.now),
        Some(ApprovalOutcome::Withdrawn) => false,
        Some(outcome) => guard.created_at >= since && (is_notice || outcome == ApprovalOutcome::Dismissed),
    };
    let Proposal { of, amount, until } = proposal;
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
        body: Some(body),
        severity: Severity::High,
        agent_id: Some(of.agent.unwrap_or(cause)),
        spending: Some(json!({ "agent_id": of.agent, "tokens": tokens, "cost_micro": cost_micro })),
        expires_at: Some(until),
        ..NewApproval::new(ApprovalKind::CostGuard, title)
    };
    raise(tx, new).await?;
    Ok(())
}

/// Withdraws what [`guard_cost`] raised about limits that are others now.
///
/// # Errors
/// The database is unreachable.
pub async fn withdraw_guards(tx: &mut Tx, is_other: impl Fn(Guarded) -> bool) -> Result<()> {
    for approval in guards(tx, tx.now).await? {
        if is_open(&approval, tx.now) && guarded(&approval).is_some_and(&is_other) {
            answers::withdraw(tx, &approval).await?;
        }
    }
    Ok(())
}

/// The limit that an approval is about.
fn guarded(approval: &approvals::Model) -> Option<Guarded> {
    let spending = approval.spending.as_ref()?;
    let kind = if spending["tokens"].is_null() { LimitKind::Money } else { LimitKind::Tokens };
    Some(Guarded { agent: spending["agent_id"].as_i64().map(AgentId), kind })
}

/// Whether it waits for people. One past its end does not, even if the round hasn't ended it yet.
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
///
/// # Errors
/// The database is unreachable.
pub async fn require_credential(tx: &mut Tx, id: ModelCredentialId, name: &str, detail: &str) -> Result<()> {
    if rejected(tx, id).count(tx.connection()).await? > 0 {
        return Ok(());
    }
    let title = format!("The provider rejects the model credential “{name}”");
    let new = NewApproval {
        body: Some(detail.to_owned()).filter(|detail| !detail.trim().is_empty()),
        severity: Severity::High,
        model_credential_id: Some(id),
        ..NewApproval::new(ApprovalKind::AuthRequired, title)
    };
    raise(tx, new).await?;
    Ok(())
}

/// Withdraws what [`require_credential`] asked for.
///
/// # Errors
/// The database is unreachable.
pub async fn credential_accepted(tx: &mut Tx, id: ModelCredentialId) -> Result<()> {
    let rejected = rejected(tx, id);
    withdraw_all(tx, rejected).await
}

/// Withdraws what told people that a channel had failed: it is on again.
///
/// # Errors
/// The database is unreachable.
pub async fn withdraw_channel_errors(tx: &mut Tx, id: ChannelId) -> Result<()> {
    let errors = about(tx, id, ApprovalKind::ChannelError);
    withdraw_all(tx, errors).await
}

/// Withdraws what asked whether this origin may write to the channel: it may now.
///
/// # Errors
/// The database is unreachable.
pub async fn withdraw_access_requests(tx: &mut Tx, id: ChannelId, origin: &str) -> Result<()> {
    let requests = about(tx, id, ApprovalKind::AccessRequest);
    let requests = requests.filter(approvals::Column::OriginId.eq(origin));
    withdraw_all(tx, requests).await
}

/// Withdraws everything about a channel: it was deleted.
///
/// # Errors
/// The database is unreachable.
pub async fn channel_deleted(tx: &mut Tx, id: ChannelId) -> Result<()> {
    let all = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(id));
    withdraw_all(tx, all).await
}

/// Withdraws what was asked for an agent that was deleted: access to its model, and more to spend. What its channels were about
/// stays, and what it ran into of the organization's limits.
///
/// # Errors
/// The database is unreachable.
pub async fn agent_deleted(tx: &mut Tx, agent: &LockedAgent) -> Result<()> {
    authorized(tx, agent).await?;
    withdraw_guards(tx, |of| of.agent == Some(agent.id)).await
}

/// Withdraws the alerts of a server: it was deleted.
///
/// # Errors
/// The database is unreachable.
pub async fn server_deleted(tx: &mut Tx, id: ServerId) -> Result<()> {
    let alerts = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ServerId.eq(id));
    withdraw_all(tx, alerts).await
}

/// Approvals of this kind about a channel.
fn about(tx: &Tx, channel: ChannelId, kind: ApprovalKind) -> sea_orm::Select<approvals::Entity> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(channel));
    found.filter(approvals::Column::Kind.eq(kind))
}

async fn withdraw_all(tx: &mut Tx, of: sea_orm::Select<approvals::Entity>) -> Result<()> {
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
