//! What people are shown of a request outside of the panel, and a digest of it: a decision counts only for what was shown.

use sea_orm::{ColumnTrait, QueryFilter};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Question, entity::approvals, rows::asked};
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalOutcome, ApprovalStatus},
        ids::{AgentId, ApprovalId},
        problem::{Code, Problem, Result},
    },
    core::access::Scope,
};

/// A request, as people are shown it.
#[derive(Clone, Debug)]
pub struct Shown {
    pub id: ApprovalId,
    /// ACTION or QUESTION; others are not asked outside of the panel.
    pub kind: ApprovalKind,
    /// Its state. One past its deadline has expired.
    pub status: ApprovalStatus,
    pub outcome: Option<ApprovalOutcome>,
    pub by: Option<String>,
    pub title: String,
    pub body: Option<String>,
    /// {tool, input, digest}
    pub request: Option<Value>,
    /// What can be answered.
    pub question: Question,
    /// From 0 to 100.
    pub risk: Option<i64>,
    pub agent: Option<AgentId>,
    /// Of what is shown: hexadecimal.
    pub digest: String,
}

/// A request. `None`: the organization doesn't have it.
pub async fn shown(scope: &Scope, id: ApprovalId) -> Result<Option<Shown>> {
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
        question: asked(&approval)?,
        digest: digest(&approval),
        by: approval.decided_by_name,
        title: approval.title,
        body: approval.body,
        request: approval.request,
        risk: approval.risk,
        agent: approval.agent_id,
    }))
}

/// Half of a SHA-256 would do; a quarter of one fits into a button.
fn digest(approval: &approvals::Model) -> String {
    let shown = json!([approval.kind, approval.title, approval.body, approval.request, approval.question]);
    let digest = Sha256::digest(shown.to_string());
    hex::encode(&digest[..8])
}

/// Refuses a decision about something else than what was shown.
///
/// # Errors
/// `CONFLICT`.
pub(super) fn require_same(approval: &approvals::Model, shown: &str) -> Result<()> {
    if digest(approval) == shown {
        return Ok(());
    }
    Err(Problem::new(Code::Conflict, "The request has changed since it was shown."))
}
