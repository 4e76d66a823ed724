//! The channels' rows: finding and locking them, and finishing a change of one.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, Select, sea_query::Expr};

use super::entity::channels;
use crate::{
    base::{
        enums::{ChangeOp, ChannelDirection, RecordKind, Transport},
        ids::{AgentId, ChannelId},
        problem::{Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        audit,
        store::{Tx, for_update},
    },
    domain::agents,
};

pub(super) fn connected(scope: &Scope) -> Select<channels::Entity> {
    scope.find::<channels::Entity>().filter(channels::Column::ArchivedAt.is_null())
}

/// The channel, if it is active.
pub(crate) async fn active(scope: &Scope, id: ChannelId) -> Result<Option<channels::Model>> {
    let found = connected(scope).filter(channels::Column::Id.eq(id));
    Ok(found.filter(channels::Column::IsActive.eq(true)).one(scope.core.db.read()).await?)
}

/// The channel with this inbound path.
#[expect(clippy::disallowed_methods, reason = "the path names no organization: it is what finds it")]
pub(crate) async fn find(core: &Core, slug: &str) -> Result<Option<channels::Model>> {
    let found = channels::Entity::find().filter(channels::Column::InboundSlug.eq(slug));
    Ok(found.filter(channels::Column::ArchivedAt.is_null()).one(core.db.read()).await?)
}

/// The active channels that receive from an installation of the GitHub App.
#[expect(clippy::disallowed_methods, reason = "GitHub names no organization: the installation finds it")]
pub(crate) async fn of_installation(core: &Core, installation: i64) -> Result<Vec<channels::Model>> {
    use channels::Column;
    let found = channels::Entity::find().filter(Column::CodeHostInstallationId.eq(installation));
    let found = found.filter(Column::CodeHostHost.is_null()).filter(Column::ArchivedAt.is_null());
    let found = found.filter(Column::Transport.eq(Transport::CodeHost)).filter(Column::IsActive.eq(true));
    Ok(found.filter(Column::Direction.ne(ChannelDirection::Outbound)).all(core.db.read()).await?)
}

/// Locks the channel until the transaction ends.
pub(crate) async fn lock(tx: &Tx, id: ChannelId) -> Result<Option<channels::Model>> {
    let found = for_update(connected(&tx.scope).filter(channels::Column::Id.eq(id)));
    Ok(found.one(tx.connection()).await?)
}

/// Locks the channel, which must exist.
pub(super) async fn load(tx: &Tx, id: ChannelId) -> Result<channels::Model> {
    lock(tx, id).await?.ok_or_else(|| Problem::not_found("channel", id))
}

/// Records that a message came in, unless the channel was switched off or deleted. Returns whether it was recorded.
pub(crate) async fn note_activity(tx: &Tx, id: ChannelId) -> Result<bool> {
    use channels::Column;
    let seen = tx.scope.update::<channels::Entity>().filter(Column::Id.eq(id));
    let seen = seen.filter(Column::ArchivedAt.is_null()).filter(Column::IsActive.eq(true));
    let seen = seen.col_expr(Column::LastActivityAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    Ok(seen.rows_affected > 0)
}

/// Writes the audit entry, announces the agent to its subscribers, and commits.
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
