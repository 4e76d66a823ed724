//! Whether someone who writes in a chat may decide: asked of the database each time, not of a cache.

use std::sync::Arc;

use sea_orm::QueryResult;

use crate::{
    base::{
        enums::DecidedVia,
        ids::{ChannelId, OrgId, UserId},
        permission::{Permission, Role},
        problem::{Problem, Result},
    },
    core::{
        Core, Request,
        access::{Caller, Chatting, Membership, Scope},
        store::Tx,
    },
    slices::notifications::REACHABLE,
};

/// The condition is on the link `l`: `$3`.
fn sql(condition: &str) -> String {
    format!(
        "SELECT u.id, u.name, m.role FROM channel_links l \
         JOIN members m ON m.organization_id = l.organization_id AND m.user_id = l.user_id \
         JOIN users u ON u.id = l.user_id JOIN organizations o ON o.id = l.organization_id \
         WHERE l.organization_id = $1 AND l.channel_id = $2 AND {condition} AND {REACHABLE}"
    )
}

/// The scope of the member who has linked this id of the vendor, and decides. `None`: no one, or no one who may, which has a line in the
/// audit log.
///
/// # Errors
/// The database is unreachable.
pub(super) async fn of_origin(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    origin: &str,
) -> Result<Option<Scope>> {
    let values = vec![org.into(), channel.into(), origin.into()];
    let row = core.db.one(sql("l.origin_id = $3"), values).await?;
    let theirs = read(core, (org, channel), row)?;
    Ok(theirs.filter(|scope| scope.require(Permission::ApprovalResolve).is_ok()))
}

/// The scope of a member in the chat that they have linked. `None`: they have none, or may not decide.
///
/// # Errors
/// The database is unreachable.
pub(super) async fn of_member(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    user: UserId,
) -> Result<Option<Scope>> {
    let values = vec![org.into(), channel.into(), user.into()];
    let row = core.db.one(sql("l.user_id = $3"), values).await?;
    Ok(read(core, (org, channel), row)?.filter(|scope| scope.may(Permission::ApprovalResolve)))
}

/// The same, whatever they may do, as the transaction sees it.
///
/// # Errors
/// The database is unreachable.
pub(super) async fn in_transaction(
    tx: &Tx,
    (org, channel): (OrgId, ChannelId),
    origin: &str,
) -> Result<Option<Scope>> {
    let values = vec![org.into(), channel.into(), origin.into()];
    let row = tx.rows(&sql("l.origin_id = $3"), values).await?.pop();
    read(&tx.scope.core, (org, channel), row)
}

/// What this scope is refused has a line in the audit log, like a decision in the panel.
fn read(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    row: Option<QueryResult>,
) -> Result<Option<Scope>> {
    let Some(row) = row else { return Ok(None) };
    let role: Role = row.try_get_by::<String, _>(2)?.parse().map_err(Problem::internal)?;
    let person = Chatting { id: row.try_get_by(0)?, name: row.try_get_by(1)?, channel };
    let mut request = Request::new(core, Caller::Chatting(Arc::new(person)));
    request.via = DecidedVia::Channel;
    let permissions = core.policy.role_permissions(org, role);
    let membership = Membership { role: Some(role), permissions };
    let operation = core.access.permits.name("answerApproval");
    Ok(Some(Scope::new(&Arc::new(request), org, membership, operation)))
}
