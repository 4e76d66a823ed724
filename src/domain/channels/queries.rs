//! SQL of channels.

use sea_orm::{
    DbBackend,
    sea_query::{Expr, IntoCondition},
};

use crate::{
    base::{
        ids::{ChannelId, OrgId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            Tx,
            sql::{RunSql as _, every_org_sql, row, sql},
        },
    },
};

/// The condition that a channel alerts this person when it fails.
pub(super) fn alerts(tx: &Tx, user: UserId) -> impl IntoCondition {
    let sql = match tx.scope.core.db.backend() {
        DbBackend::Postgres => "CAST(alert_recipient_user_ids AS JSONB) @> CAST($1 AS TEXT)::JSONB",
        _ => "EXISTS (SELECT 1 FROM json_each(alert_recipient_user_ids) WHERE value = CAST(? AS BIGINT))",
    };
    Expr::cust_with_values(sql, [user.0.to_string()])
}

/// Whether another channel, of any organization, has one of these digests of a bot token: a vendor does not know
/// organizations.
pub(super) async fn has_another(tx: &Tx, channel: ChannelId, digests: &[Vec<u8>]) -> Result<bool> {
    let sql =
        sql!("SELECT id FROM channels WHERE bot_hash = $3 AND NOT (organization_id = $org AND id = $2)");
    for digest in digests {
        if tx.scalar::<ChannelId>(sql, [channel.into(), digest.clone().into()]).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether another channel, of any organization, is connected to the account with this name: an address at Google, a
/// login at GitHub.
pub(super) async fn shares_account(scope: &Scope, channel: ChannelId, account: &str) -> Result<bool> {
    let sql = sql!(
        "SELECT id FROM channels WHERE ((provider_connected AND provider_email = $3) \
         OR (code_host_oauth_authorized AND code_host_oauth_user_login = $3)) \
         AND NOT (organization_id = $org AND id = $2) LIMIT 1"
    );
    Ok(scope.scalar::<ChannelId>(sql, [channel.into(), account.into()]).await?.is_some())
}

row! {
    /// A channel of any organization.
    pub(super) struct ChannelKey {
        organization_id: OrgId,
        id: ChannelId,
    }
}

/// The active channels that have this word among their warnings.
pub(super) async fn channels_with_warning(core: &Core, word: &str) -> Result<Vec<ChannelKey>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id FROM channels WHERE is_active AND archived_at IS NULL \
         AND CAST(warnings AS TEXT) LIKE $1 ORDER BY id"
    );
    core.db.every_org().all(sql, [format!("%\"{word}%").into()]).await
}

/// The channels whose access tokens lapse before this time, and can be refreshed.
pub(super) async fn channels_to_refresh(core: &Core, before: Timestamp) -> Result<Vec<ChannelKey>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id FROM channels WHERE oauth_access_until <= $1 \
         AND oauth_refresh_token_sealed IS NOT NULL AND archived_at IS NULL ORDER BY id"
    );
    core.db.every_org().all(sql, [before.into()]).await
}

row! {
    /// Whether a channel's whitelist has entries, and whether it names an origin.
    pub(super) struct Whitelisted {
        names_some: bool,
        names_it: bool,
    }
}

/// Looks up an origin and its place in the channel's whitelist.
pub(super) async fn whitelisted(
    scope: &Scope,
    channel: ChannelId,
    origins: [&str; 2],
) -> Result<Option<Whitelisted>> {
    const LIST: &str =
        "EXISTS (SELECT 1 FROM channel_whitelist WHERE organization_id = $org AND channel_id = $2";
    let sql = sql!("SELECT ", LIST, ") AS names_some, ", LIST, " AND origin_id IN ($3, $4)) AS names_it");
    let [origin, place] = origins;
    scope.one(sql, [channel.into(), origin.into(), place.into()]).await
}
