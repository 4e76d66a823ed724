//! Decisions: what a person does to an approval. Each is one compare-and-set on the status, so if two people
//! decide at the same moment, one succeeds and the other gets an error.

use sea_orm::{ColumnTrait, Condition, QueryFilter, Set};
use serde_json::{Value, json};

use super::{
    answers,
    entity::approvals,
    question::{Accepted, Answer, Question},
    state::{Action, Refused, Step},
};
use crate::{
    base::{
        enums::{ApprovalOutcome, ApprovalStatus, ChangeOp, DecidedVia, RecordKind},
        ids::ApprovalId,
        problem::{Problem, Result},
    },
    core::{
        access::{Caller, Scope},
        audit,
        store::Tx,
    },
    slices::{
        agents::{self, Standing},
        conversations,
    },
};

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
/// doesn't fit the question.
pub async fn answer(scope: &Scope, id: ApprovalId, answer: Answer) -> Result<()> {
    answer.require_any()?;
    let (tx, approval, agent) = open(scope, id).await?;
    let step = Action::Answer.apply(approval.kind, approval.status)?;
    let accepted = asked(&approval)?.accept(&answer)?;
    let end = match step {
        Step::Close(status, outcome) => End::new(status, outcome),
        Step::Verdict => End::new(ApprovalStatus::Resolved, accepted.verdict()?),
    };
    decide(tx, (&approval, agent), "answerApproval", End { answer: Some(accepted), ..end }).await
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

/// How an approval ends.
pub(super) struct End {
    pub status: ApprovalStatus,
    pub outcome: ApprovalOutcome,
    pub answer: Option<Accepted>,
    pub comment: Option<String>,
    /// Whether the service decided, whoever caused it.
    pub by_service: bool,
}

impl End {
    pub fn new(status: ApprovalStatus, outcome: ApprovalOutcome) -> Self {
        Self { status, outcome, answer: None, comment: None, by_service: false }
    }

    /// The agent doesn't wait any more.
    pub fn withdrawn() -> Self {
        Self { by_service: true, ..Self::new(ApprovalStatus::Dismissed, ApprovalOutcome::Withdrawn) }
    }

    /// The columns to set. The decider's name is stored too, because it outlives the user.
    pub fn columns(&self, tx: &Tx) -> Result<approvals::ActiveModel> {
        let (caller, via) = if self.by_service {
            (&Caller::System, DecidedVia::System)
        } else {
            (&tx.scope.request.caller, tx.scope.request.via)
        };
        let answer = self.answer.as_ref().map(serde_json::to_value).transpose().map_err(Problem::internal)?;
        Ok(approvals::ActiveModel {
            status: Set(self.status),
            outcome: Set(Some(self.outcome)),
            answer: Set(answer),
            comment: Set(self.comment.clone()),
            decided_by_user_id: Set(caller.user()),
            decided_by_token_id: Set(caller.token()),
            decided_by_name: Set(Some(caller.name().to_owned())),
            decided_by_kind: Set(Some(caller.kind())),
            decided_via: Set(Some(via)),
            resolved_at: Set(Some(tx.now)),
            updated_at: Set(tx.now),
            ..Default::default()
        })
    }
}

/// Opens a transaction, holds the approval's agent, and loads the approval.
async fn open(scope: &Scope, id: ApprovalId) -> Result<(Tx, approvals::Model, Option<Standing>)> {
    let tx = scope.begin().await?;
    let approval = load(&tx, id).await?;
    let agent = match approval.agent_id {
        Some(agent) => agents::standing(&tx, agent).await?,
        None => None,
    };
    // It may have ended while somebody else held the agent.
    let approval = load(&tx, id).await?;
    Ok((tx, approval, agent))
}

/// An approval past its deadline has ended, even if the expiry round hasn't run yet.
async fn load(tx: &Tx, id: ApprovalId) -> Result<approvals::Model> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::Id.eq(id));
    let mut found = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("approval", id))?;
    if found.status == ApprovalStatus::Pending && found.expires_at.is_some_and(|at| at <= tx.now) {
        found.status = ApprovalStatus::Expired;
    }
    Ok(found)
}

/// The question an approval asks. Old rows may hold an action without its two options.
pub(super) fn asked(approval: &approvals::Model) -> Result<Question> {
    match &approval.question {
        Some(question) => serde_json::from_value(question.clone()).map_err(Problem::internal),
        None => Ok(Question::verdict(&approval.title)),
    }
}

/// Writes the decision, if the approval is still pending, with all its consequences.
async fn decide(
    mut tx: Tx,
    (approval, agent): (&approvals::Model, Option<Standing>),
    operation: &'static str,
    end: End,
) -> Result<()> {
    let waits = Condition::any()
        .add(approvals::Column::ExpiresAt.is_null())
        .add(approvals::Column::ExpiresAt.gt(tx.now));
    let won = tx
        .scope
        .update::<approvals::Entity>()
        .set(end.columns(&tx)?)
        .filter(approvals::Column::Id.eq(approval.id))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending))
        .filter(waits)
        .exec(tx.connection())
        .await?;
    if won.rows_affected == 0 {
        let status = load(&tx, approval.id).await?.status;
        return Err(Refused::NotPending(status).into());
    }
    follow(&mut tx, approval, agent.as_ref(), operation, &end).await?;
    tx.commit().await
}

/// The consequences of an ending: audit log, agent, conversation, subscribers. The caller holds the agent.
pub(super) async fn follow(
    tx: &mut Tx,
    approval: &approvals::Model,
    agent: Option<&Standing>,
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
fn waits(approval: &approvals::Model, agent: &Standing) -> bool {
    approval.request_key.is_some() && approval.generation == Some(agent.generation)
}

/// The log names the chosen options. Typed text may contain anything, so it stays with the approval.
fn changes(end: &End) -> Value {
    let mut changes = json!({ "status": [ApprovalStatus::Pending, end.status], "outcome": end.outcome });
    if let Some(answer) = &end.answer {
        changes["options"] = json!(answer.options);
        changes["text"] = if answer.text.is_some() { "given".into() } else { Value::Null };
    }
    changes
}
