//! A request as people see it outside of the panel, with a digest: a decision counts only for the content that was
//! shown.

use sea_orm::{ColumnTrait, QueryFilter};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Question, entity::approvals, rows::question_of};
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalOutcome, ApprovalStatus},
        ids::{AgentId, ApprovalId},
        problem::{Code, Problem, Result},
    },
    core::access::Scope,
};

/// A request as it is shown in chats.
#[derive(Clone, Debug)]
pub struct Shown {
    pub id: ApprovalId,
    /// ACTION or QUESTION; other kinds appear only in the panel.
    pub kind: ApprovalKind,
    /// EXPIRED once past its deadline, even if the expiry job hasn't run.
    pub status: ApprovalStatus,
    pub outcome: Option<ApprovalOutcome>,
    pub by: Option<String>,
    pub title: String,
    pub body: Option<String>,
    /// {tool, input, digest}
    pub request: Option<Value>,
    pub question: Question,
    /// From 0 to 100.
    pub risk: Option<i64>,
    pub agent: Option<AgentId>,
    /// Of the content that is shown, in hexadecimal.
    pub digest: String,
}

/// Loads a request. `None`: the organization doesn't have it.
pub async fn load_shown(scope: &Scope, id: ApprovalId) -> Result<Option<Shown>> {
    let found = scope.find::<approvals::Entity>().filter(approvals::Column::Id.eq(id));
    let Some(approval) = found.one(scope.core.db.read()).await? else { return Ok(None) };
    let now = scope.core.clock.now();
    let is_late =
        approval.status == ApprovalStatus::Pending && approval.expires_at.is_some_and(|at| at <= now);
    Ok(Some(Shown {
        id,
        kind: approval.kind,
        status: if is_late { ApprovalStatus::Expired } else { approval.status },
        outcome: approval.outcome,
        question: question_of(&approval)?,
        digest: digest(&approval),
        by: approval.decided_by_name,
        title: approval.title,
        body: approval.body,
        request: approval.request,
        risk: approval.risk,
        agent: approval.agent_id,
    }))
}

/// A quarter of a SHA-256, so that it fits into a button.
fn digest(approval: &approvals::Model) -> String {
    let shown = json!([approval.kind, approval.title, approval.body, approval.request, approval.question]);
    let digest = Sha256::digest(shown.to_string());
    hex::encode(&digest[..8])
}

/// Refuses a decision about other content than was shown.
///
/// # Errors
/// `CONFLICT`.
pub(super) fn require_shown(approval: &approvals::Model, shown: &str) -> Result<()> {
    if digest(approval) == shown {
        return Ok(());
    }
    Err(Problem::new(Code::Conflict, "The request has changed since it was shown."))
}
