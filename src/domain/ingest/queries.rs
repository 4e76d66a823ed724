//! SQL of ingest.

use sea_orm::Value;

use crate::{
    base::{
        enums::LinkState,
        ids::{ChannelId, OrgId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
};

/// A channel's lease.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub org: OrgId,
    pub channel: ChannelId,
    /// A name that only the process that holds the lease has.
    pub holder: String,
}

/// The parameters `$1` to `$3`.
fn lease_values(lease: &Lease) -> [Value; 3] {
    [lease.org.into(), lease.channel.into(), lease.holder.clone().into()]
}

/// Takes a lease until then, unless another process has it. Returns whether it was taken.
pub(super) async fn take_lease(core: &Core, lease: &Lease, until: Timestamp) -> Result<bool> {
    let sql = every_org_sql!(
        "INSERT INTO channel_listeners (organization_id, channel_id, holder, until) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (organization_id, channel_id) DO UPDATE SET holder = excluded.holder, until = excluded.until \
         WHERE channel_listeners.until <= $5"
    );
    let values =
        lease_values(lease).into_iter().chain([until.into(), core.clock.now().into()]).collect::<Vec<_>>();
    Ok(core.db.every_org().execute(sql, values).await? > 0)
}

/// The cursor of the channel of a lease.
pub(super) async fn cursor_of_lease(core: &Core, lease: &Lease) -> Result<Option<String>> {
    let sql = every_org_sql!(
        "SELECT cursor FROM channel_listeners WHERE organization_id = $1 AND channel_id = $2 AND holder = $3"
    );
    Ok(core.db.every_org().scalar(sql, lease_values(lease)).await?.flatten())
}

/// Extends a lease until then. Returns whether it was still held.
pub(super) async fn extend_lease(core: &Core, lease: &Lease, until: Timestamp) -> Result<bool> {
    let sql = every_org_sql!(
        "UPDATE channel_listeners SET until = $4 WHERE organization_id = $1 AND channel_id = $2 AND holder = $3"
    );
    let values = lease_values(lease).into_iter().chain([until.into()]).collect::<Vec<_>>();
    Ok(core.db.every_org().execute(sql, values).await? == 1)
}

/// Stores whether the vendor is reachable. Returns whether that changed.
pub(super) async fn store_link(
    core: &Core,
    lease: &Lease,
    state: LinkState,
    cause: Option<String>,
) -> Result<bool> {
    let sql = every_org_sql!(
        "UPDATE channel_listeners SET link = $4, cause = $5, \
         linked_at = CASE WHEN link = $4 AND linked_at IS NOT NULL THEN linked_at ELSE $6 END \
         WHERE organization_id = $1 AND channel_id = $2 AND holder = $3 \
         AND (link IS NULL OR link <> $4 OR COALESCE(cause, '') <> COALESCE($5, ''))"
    );
    let link = [state.as_str().into(), cause.into(), core.clock.now().into()];
    let values = lease_values(lease).into_iter().chain(link).collect::<Vec<_>>();
    Ok(core.db.every_org().execute(sql, values).await? == 1)
}

/// Stores the channel's cursor, if its lease is still held. Returns whether it is.
pub(super) async fn store_cursor(tx: &Tx, lease: &Lease, cursor: String) -> Result<bool> {
    let sql = sql!(
        "UPDATE channel_listeners SET cursor = $4 \
         WHERE organization_id = $org AND channel_id = $2 AND holder = $3 AND until > $5"
    );
    let values = [lease.channel.into(), lease.holder.clone().into(), cursor.into(), tx.now.into()];
    Ok(tx.execute(sql, values).await? == 1)
}

row! {
    /// A channel without a listener.
    pub(super) struct UnheardChannel {
        organization_id: OrgId,
        id: ChannelId,
    }
}

/// The channels without a listener, longest waiting first: at most `most`, and at most `of_one` of an organization.
pub(super) async fn unheard_channels(core: &Core, of_one: i64, most: i64) -> Result<Vec<UnheardChannel>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id FROM (SELECT c.organization_id, c.id, COALESCE(l.until, c.created_at) AS due, \
         ROW_NUMBER() OVER (PARTITION BY c.organization_id ORDER BY COALESCE(l.until, c.created_at), c.id) AS nth \
         FROM channels c LEFT JOIN channel_listeners l ON l.organization_id = c.organization_id AND l.channel_id = c.id \
         WHERE c.transport IN ('CALENDAR', 'CODE_HOST', 'DISCORD', 'DRIVE', 'EMAIL', 'SLACK', 'TELEGRAM') \
         AND c.is_active AND c.archived_at IS NULL AND c.direction <> 'OUTBOUND' \
         AND (c.transport IN ('CODE_HOST', 'TELEGRAM') OR NOT c.webhook_registered) \
         AND (c.transport <> 'CALENDAR' OR c.calendar_url IS NOT NULL OR c.provider_connected) \
         AND (c.transport <> 'DRIVE' OR c.drive_pass_sealed IS NOT NULL OR c.provider_connected) \
         AND (l.until IS NULL OR l.until <= $1)) AS waiting WHERE nth <= $2 ORDER BY due, id LIMIT $3"
    );
    core.db.every_org().all(sql, [core.clock.now().into(), of_one.into(), most.into()]).await
}

/// Removes all but the newest refusals of a channel.
pub(super) async fn trim_refusals(tx: &Tx, channel: ChannelId, kept: i64) -> Result<()> {
    let sql = sql!(
        "DELETE FROM channel_refusals WHERE organization_id = $org AND channel_id = $2 AND origin_id IN \
         (SELECT origin_id FROM channel_refusals WHERE organization_id = $org AND channel_id = $2 \
         ORDER BY last_at DESC, origin_id LIMIT 1000 OFFSET $3)"
    );
    tx.execute(sql, [channel.into(), kept.into()]).await?;
    Ok(())
}

/// Lists a skipped message, replacing its previous entry.
pub(super) async fn list_skipped(
    tx: &Tx,
    channel: ChannelId,
    vendor_id: &str,
    (subject, reason): (Option<String>, &str),
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO channel_skips (organization_id, channel_id, vendor_id, subject, reason, skipped_at) \
         VALUES ($org, $2, $3, $4, $5, $6) ON CONFLICT (organization_id, channel_id, vendor_id) \
         DO UPDATE SET subject = excluded.subject, reason = excluded.reason, skipped_at = excluded.skipped_at"
    );
    let values = [channel.into(), vendor_id.into(), subject.into(), reason.into(), tx.now.into()];
    tx.execute(sql, values).await?;
    Ok(())
}

/// Removes all but the newest skipped messages of a channel.
pub(super) async fn trim_skipped(tx: &Tx, channel: ChannelId, kept: i64) -> Result<()> {
    let sql = sql!(
        "DELETE FROM channel_skips WHERE organization_id = $org AND channel_id = $2 AND vendor_id IN \
         (SELECT vendor_id FROM channel_skips WHERE organization_id = $org AND channel_id = $2 \
         ORDER BY skipped_at DESC, vendor_id DESC LIMIT 1000 OFFSET $3)"
    );
    tx.execute(sql, [channel.into(), kept.into()]).await?;
    Ok(())
}

/// The chats of a channel in which its agent is working on an answer: at most `most`.
pub(super) async fn chats_being_answered(
    scope: &Scope,
    channel: ChannelId,
    most: i64,
) -> Result<Vec<String>> {
    let sql = sql!(
        "SELECT DISTINCT c.target FROM turns t \
         JOIN conversations c ON c.organization_id = t.organization_id AND c.id = t.conversation_id \
         WHERE t.organization_id = $org AND c.channel_id = $2 AND t.state = 'RUNNING' AND c.target IS NOT NULL \
         AND c.taken_over_by IS NULL LIMIT $3"
    );
    scope.column(sql, [channel.into(), most.into()]).await
}
