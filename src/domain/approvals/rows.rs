//! Finds approvals' rows, and reads their questions.

use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter};

use super::{entity::approvals, question::Question};
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalStatus},
        ids::{ApprovalId, ChannelId},
        problem::{Problem, Result},
    },
    core::store::Tx,
};

/// Loads an approval. Past its deadline it is EXPIRED, even if the expiry job hasn't run yet.
pub(super) async fn load(tx: &Tx, id: ApprovalId) -> Result<approvals::Model> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::Id.eq(id));
    let mut found = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("approval", id))?;
    if found.status == ApprovalStatus::Pending && found.expires_at.is_some_and(|at| at <= tx.now) {
        found.status = ApprovalStatus::Expired;
    }
    Ok(found)
}

/// Counts the pending approvals of this kind about a channel.
pub async fn count_pending(tx: &Tx, channel: ChannelId, kind: ApprovalKind) -> Result<u64> {
    let open = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(channel));
    let open = open.filter(approvals::Column::Kind.eq(kind));
    let open = open.filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    Ok(open.count(tx.connection()).await?)
}

/// The question of an approval. In old rows, an ACTION may lack its two options.
pub(super) fn question_of(approval: &approvals::Model) -> Result<Question> {
    match &approval.question {
        Some(question) => serde_json::from_value(question.clone()).map_err(Problem::internal),
        None => Ok(Question::approve_or_deny(&approval.title)),
    }
}
