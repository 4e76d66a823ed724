//! Decisions: what a person does to an approval. Each is one compare-and-set on the status, so if two people
//! decide at the same moment, one succeeds and the other gets an error.

use sea_orm::{ColumnTrait, Condition, QueryFilter};
use serde_json::{Value, json};

use super::{
    answers, auto_resolve,
    chat_view::require_same,
    end::End,
    entity::approvals,
    question::Answer,
    rows::{asked, load},
    state::{Action, Refused, Step},
};
use crate::{
    base::{
        enums::{ApprovalOutcome, ApprovalStatus, ChangeOp, RecordKind},
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
        conversations,
    },
};

/// An approval has ended.
#[derive(Debug)]
pub struct Closed {
    pub approval: ApprovalId,
}

impl DomainEvent for Closed {}

/// Marks an approval as resolved (specification, operation 5). Only changes its status: fix what it was about
/// first.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`.
pub async fn resolve(scope: &Scope, id: ApprovalId, comment: Option<String>) -> Result<()> {
    close(scope, id, Action::Resolve, "resolveApproval", comment).await
}

/// Dismisses an approval that no longer applies (specification, operation 7).
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`.
pub async fn dismiss(scope: &Scope, id: ApprovalId, comment: Option<String>) -> Result<()> {
    close(scope, id, Action::Dismiss, "dismissApproval", comment).await
}

/// Answers a question, or approves or denies an action (specification, operation 6). The agent gets the answer
/// as a turn.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`, `APPROVAL_NOT_A_QUESTION`, `VALIDATION_FAILED` for an answer that
/// doesn't fit the question; `PERMISSION_DENIED` for a connection that the caller may not allow.
pub async fn answer(scope: &Scope, id: ApprovalId, answer: Answer) -> Result<()> {
    end_by(scope, id, answer, None).await
}

/// The same, by someone who was shown the request with this digest.
///
/// # Errors
/// As [`answer`]; `CONFLICT`: it is another request by now.
pub async fn answer_shown(scope: &Scope, id: ApprovalId, answer: Answer, digest: &str) -> Result<()> {
    end_by(scope, id, answer, Some(digest)).await
}

async fn end_by(scope: &Scope, id: ApprovalId, answer: Answer, shown: Option<&str>) -> Result<()> {
    answer.require_any()?;
    let (tx, approval, agent) = open(scope, id).await?;
    shown.map_or(Ok(()), |digest| require_same(&approval, digest))?;
    let step = Action::Answer.apply(approval.kind, approval.status)?;
    let accepted = asked(&approval)?.accept(&answer)?;
    let end = match step {
        Step::Close(status, outcome) => End::new(status, outcome),
        Step::Verdict => End::new(ApprovalStatus::Resolved, accepted.verdict()?),
    };
    if end.outcome == ApprovalOutcome::Approved && auto_resolve::is_connection(&approval) {
        scope.require(Permission::NetworkEdit)?;
    }
    decide(tx, (&approval, agent), "answerApproval", End { answer: Some(accepted), ..end }).await
}

async fn decide(
    tx: Tx,
    decided: (&approvals::Model, Option<LockedAgent>),
    operation: &'static str,
    end: End,
) -> Result<()> {
    end_pending(&tx, decided, operation, end).await?;
    tx.commit().await
}

async fn close(
    scope: &Scope,
    id: ApprovalId,
    action: Action,
    operation: &'static str,
    comment: Option<String>,
) -> Result<()> {
    let (tx, approval, agent) = open(scope, id).await?;
    let Step::Close(status, outcome) = action.apply(approval.kind, approval.status)? else {
        return Err(Problem::internal(anyhow::anyhow!("{operation} came to a verdict")));
    };
    let comment = comment.map(|comment| comment.trim().to_owned()).filter(|comment| !comment.is_empty());
    decide(tx, (&approval, agent), operation, End { comment, ..End::new(status, outcome) }).await
}

/// Opens a transaction, holds the approval's agent, and loads the approval.
async fn open(scope: &Scope, id: ApprovalId) -> Result<(Tx, approvals::Model, Option<LockedAgent>)> {
    let tx = scope.begin().await?;
    let approval = load(&tx, id).await?;
    let agent = match approval.agent_id {
        Some(agent) => agents::lock_agent(&tx, agent).await?,
        None => None,
    };
    // It may have ended while someone else held the agent.
    let approval = load(&tx, id).await?;
    Ok((tx, approval, agent))
}

/// Writes the decision, if the approval is still pending, with all its consequences.
pub(super) async fn end_pending(
    tx: &Tx,
    (approval, agent): (&approvals::Model, Option<LockedAgent>),
    operation: &'static str,
    end: End,
) -> Result<()> {
    let waits = Condition::any()
        .add(approvals::Column::ExpiresAt.is_null())
        .add(approvals::Column::ExpiresAt.gt(tx.now));
    let won = tx
        .scope
        .update::<approvals::Entity>()
        .set(end.columns(tx)?)
        .filter(approvals::Column::Id.eq(approval.id))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending))
        .filter(waits)
        .exec(tx.connection())
        .await?;
    if won.rows_affected == 0 {
        let status = load(tx, approval.id).await?.status;
        return Err(Refused::NotPending(status).into());
    }
    follow(tx, approval, agent.as_ref(), operation, &end).await
}

/// The consequences of an ending: audit log, agent, conversation, subscribers.
pub(super) async fn follow(
    tx: &Tx,
    approval: &approvals::Model,
    agent: Option<&LockedAgent>,
    operation: &'static str,
    end: &End,
) -> Result<()> {
    let changes = changes(end);
    let entry = audit::Entry {
        operation,
        op: ChangeOp::Updated,
        kind: RecordKind::Approval,
        id: approval.id.0,
        changes,
    };
    audit::record(tx, entry);
    emit(tx, Closed { approval: approval.id }).await?;
    if end.outcome != ApprovalOutcome::Withdrawn
        && let Some(agent) = agent.filter(|agent| waits(approval, agent))
    {
        answers::send(tx, approval, agent, end).await?;
    }
    if let Some(conversation) = approval.conversation_id {
        conversations::decided(tx, conversation).await?;
    }
    Ok(())
}

/// Whether a request of the agent's present launch waits for the decision.
fn waits(approval: &approvals::Model, agent: &LockedAgent) -> bool {
    approval.request_key.is_some() && approval.generation == Some(agent.generation)
}

/// The log names the chosen options. Typed text may contain anything, so it stays with the approval.
fn changes(end: &End) -> Value {
    let mut changes =
        json!({ "status": audit::from_to(ApprovalStatus::Pending, end.status), "outcome": end.outcome });
    if let Some(answer) = &end.answer {
        changes["options"] = json!(answer.options);
        changes["text"] = if answer.text.is_some() { "given".into() } else { Value::Null };
    }
    changes
}
