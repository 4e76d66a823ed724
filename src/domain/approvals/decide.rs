//! Decisions of people. Each is one compare-and-set on the status, so if two people decide at the same moment, one
//! succeeds and the other gets an error.

use sea_orm::{ColumnTrait, Condition, QueryFilter};
use serde_json::{Value, json};

use super::{
    answers, auto_resolve,
    chat_view::require_shown,
    end::ApprovalEnd,
    entity::approvals,
    question::Answer,
    rows::{load, question_of},
    state::{Action, Transition, TransitionError},
};
use crate::{
    base::{
        enums::{ApprovalOutcome, ApprovalStatus, ChangeOp, RecordKind},
        ids::{AgentId, ApprovalId, ConversationId},
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
    pub agent: Option<AgentId>,
    pub conversation: Option<ConversationId>,
}

impl DomainEvent for Closed {}

/// Marks an approval as resolved (specification, operation 5). Only its status changes; the caller fixes the cause
/// first.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`.
pub async fn resolve(scope: &Scope, id: ApprovalId, comment: Option<String>) -> Result<()> {
    close_without_answer(scope, id, Action::Resolve, "resolveApproval", comment).await
}

/// Dismisses an approval that no longer applies (specification, operation 7).
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`.
pub async fn dismiss(scope: &Scope, id: ApprovalId, comment: Option<String>) -> Result<()> {
    close_without_answer(scope, id, Action::Dismiss, "dismissApproval", comment).await
}

/// Answers a question, or approves or denies an action (specification, operation 6). The answer is sent to the waiting
/// agent.
///
/// # Errors
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`, `APPROVAL_NOT_A_QUESTION`, `VALIDATION_FAILED` for an answer that
/// doesn't fit the question; `PERMISSION_DENIED` for a connection that the caller may not allow.
pub async fn answer(scope: &Scope, id: ApprovalId, answer: Answer) -> Result<()> {
    answer_as_shown(scope, id, answer, None).await
}

/// [`answer`], by a person who was shown the request with this digest.
///
/// # Errors
/// As [`answer`]; `CONFLICT` if the request has changed since.
pub async fn answer_shown(scope: &Scope, id: ApprovalId, answer: Answer, digest: &str) -> Result<()> {
    answer_as_shown(scope, id, answer, Some(digest)).await
}

async fn answer_as_shown(scope: &Scope, id: ApprovalId, answer: Answer, shown: Option<&str>) -> Result<()> {
    answer.require_any()?;
    let (tx, approval, agent) = begin_decision(scope, id).await?;
    shown.map_or(Ok(()), |digest| require_shown(&approval, digest))?;
    let transition = Action::Answer.apply(approval.kind, approval.status)?;
    let accepted = question_of(&approval)?.accept(&answer)?;
    let end = match transition {
        Transition::Close(status, outcome) => ApprovalEnd::new(status, outcome),
        Transition::ByAnswer => ApprovalEnd::new(ApprovalStatus::Resolved, accepted.outcome()?),
    };
    if end.outcome == ApprovalOutcome::Approved && auto_resolve::is_connection(&approval) {
        scope.require(Permission::NetworkEdit)?;
    }
    commit_decision(tx, (&approval, agent), "answerApproval", ApprovalEnd { answer: Some(accepted), ..end })
        .await
}

async fn commit_decision(
    tx: Tx,
    decided: (&approvals::Model, Option<LockedAgent>),
    operation: &'static str,
    end: ApprovalEnd,
) -> Result<()> {
    end_pending(&tx, decided, operation, end).await?;
    tx.commit().await
}

async fn close_without_answer(
    scope: &Scope,
    id: ApprovalId,
    action: Action,
    operation: &'static str,
    comment: Option<String>,
) -> Result<()> {
    let (tx, approval, agent) = begin_decision(scope, id).await?;
    let Transition::Close(status, outcome) = action.apply(approval.kind, approval.status)? else {
        return Err(Problem::internal(anyhow::anyhow!("{operation} needs an answer")));
    };
    let comment = comment.map(|comment| comment.trim().to_owned()).filter(|comment| !comment.is_empty());
    commit_decision(
        tx,
        (&approval, agent),
        operation,
        ApprovalEnd { comment, ..ApprovalEnd::new(status, outcome) },
    )
    .await
}

/// Opens a transaction, locks the approval's agent, and loads the approval.
async fn begin_decision(
    scope: &Scope,
    id: ApprovalId,
) -> Result<(Tx, approvals::Model, Option<LockedAgent>)> {
    let tx = scope.begin().await?;
    let approval = load(&tx, id).await?;
    let agent = match approval.agent_id {
        Some(agent) => agents::lock_agent(&tx, agent).await?,
        None => None,
    };
    // It may have ended while another transaction held the lock.
    let approval = load(&tx, id).await?;
    Ok((tx, approval, agent))
}

/// Writes the decision and all its consequences, if the approval is still pending.
pub(super) async fn end_pending(
    tx: &Tx,
    (approval, agent): (&approvals::Model, Option<LockedAgent>),
    operation: &'static str,
    end: ApprovalEnd,
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
        return Err(TransitionError::NotPending(status).into());
    }
    apply_consequences(tx, approval, agent.as_ref(), operation, &end).await
}

/// The consequences of an ending: audit log, agent, conversation, subscribers.
pub(super) async fn apply_consequences(
    tx: &Tx,
    approval: &approvals::Model,
    agent: Option<&LockedAgent>,
    operation: &'static str,
    end: &ApprovalEnd,
) -> Result<()> {
    let changes = audited_changes(end);
    let entry = audit::Entry {
        operation,
        op: ChangeOp::Updated,
        kind: RecordKind::Approval,
        id: approval.id.0,
        changes,
    };
    audit::record(tx, entry);
    let (agent_id, conversation) = (approval.agent_id, approval.conversation_id);
    emit(tx, Closed { approval: approval.id, agent: agent_id, conversation }).await?;
    if end.outcome != ApprovalOutcome::Withdrawn
        && let Some(agent) = agent.filter(|agent| is_waiting(approval, agent))
    {
        answers::send_decision(tx, approval, agent, end).await?;
    }
    if let Some(conversation) = approval.conversation_id {
        conversations::mark_decided(tx, conversation).await?;
    }
    Ok(())
}

/// Whether a request of the agent's current launch waits for the decision.
fn is_waiting(approval: &approvals::Model, agent: &LockedAgent) -> bool {
    approval.request_key.is_some() && approval.generation == Some(agent.generation)
}

/// The log names the chosen options. Typed text may contain anything, so it stays with the approval.
fn audited_changes(end: &ApprovalEnd) -> Value {
    let mut changes =
        json!({ "status": audit::from_to(ApprovalStatus::Pending, end.status), "outcome": end.outcome });
    if let Some(answer) = &end.answer {
        changes["options"] = json!(answer.options);
        changes["text"] = if answer.text.is_some() { "given".into() } else { Value::Null };
    }
    changes
}
