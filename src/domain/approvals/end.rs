//! The end of an approval, and the columns that store it.

use sea_orm::Set;

use super::{entity::approvals, question::AcceptedAnswer};
use crate::{
    base::{
        enums::{ApprovalOutcome, ApprovalStatus, DecidedVia},
        problem::{Problem, Result},
    },
    core::{access::Caller, store::Tx},
};

pub(super) struct ApprovalEnd {
    pub status: ApprovalStatus,
    pub outcome: ApprovalOutcome,
    pub answer: Option<AcceptedAnswer>,
    pub comment: Option<String>,
    /// The service decided, even if a caller's change was the cause.
    pub by_service: bool,
}

impl ApprovalEnd {
    pub fn new(status: ApprovalStatus, outcome: ApprovalOutcome) -> Self {
        Self { status, outcome, answer: None, comment: None, by_service: false }
    }

    /// The agent no longer waits.
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
