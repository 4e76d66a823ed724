//! The channels' rows: finding and locking them, and finishing a change of one.

use sea_orm::{ColumnTrait, QueryFilter, Select};

use super::entity::channels;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{AgentId, ChannelId},
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        store::{Tx, held},
    },
    slices::agents,
};

pub(super) fn connected(scope: &Scope) -> Select<channels::Entity> {
    scope.find::<channels::Entity>().filter(channels::Column::ArchivedAt.is_null())
}

/// The channel, if messages pass through it.
pub(super) async fn active(scope: &Scope, id: ChannelId) -> Result<Option<channels::Model>> {
    let found = connected(scope).filter(channels::Column::Id.eq(id));
    Ok(found.filter(channels::Column::IsActive.eq(true)).one(scope.core.db.read()).await?)
}

/// Loads the channel and locks it until the transaction ends.
pub(super) async fn load(tx: &Tx, id: ChannelId) -> Result<channels::Model> {
    let found = held(connected(&tx.scope).filter(channels::Column::Id.eq(id)));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("channel", id))
}

/// Writes the audit entry and commits. Subscribers to the agent get its channels again.
pub(super) async fn finish(
    tx: Tx,
    (op, operation): (ChangeOp, &'static str),
    id: ChannelId,
    agent: AgentId,
    changes: serde_json::Value,
) -> Result<()> {
    audit::record(&tx, audit::Entry { operation, op, kind: RecordKind::Channel, id: id.0, changes });
    agents::announce(&tx, agent);
    tx.commit().await
}
