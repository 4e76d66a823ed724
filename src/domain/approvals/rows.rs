//! The approvals' rows: finding them, and the question that one asks.

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

/// An approval past its deadline has ended, even if the expiry job hasn't run yet.
pub(super) async fn load(tx: &Tx, id: ApprovalId) -> Result<approvals::Model> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::Id.eq(id));
    let mut found = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("approval", id))?;
    if found.status == ApprovalStatus::Pending && found.expires_at.is_some_and(|at| at <= tx.now) {
        found.status = ApprovalStatus::Expired;
    }
    Ok(found)
}

/// How many approvals of this kind are open about a channel.
pub async fn pending_of(tx: &Tx, channel: ChannelId, kind: ApprovalKind) -> Result<u64> {
    let open = tx.scope.find::<approvals::Entity>().filter(approvals::Column::ChannelId.eq(channel));
    let open = open.filter(approvals::Column::Kind.eq(kind));
    let open = open.filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    Ok(open.count(tx.connection()).await?)
}

/// The question an approval asks. Old rows may hold an action without its two options.
pub(super) fn asked(approval: &approvals::Model) -> Result<Question> {
    match &approval.question {
        Some(question) => serde_json::from_value(question.clone()).map_err(Problem::internal),
        None => Ok(Question::verdict(&approval.title)),
    }
}
