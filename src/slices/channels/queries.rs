//! SQL of channels.

use crate::{
    base::{
        ids::{ChannelId, OrgId},
        problem::Result,
    },
    core::{
        Core,
        access::Scope,
        store::sql::{Door as _, every_org_sql, row, sql},
    },
};

row! {
    /// A channel of any organization.
    pub(super) struct Place {
        organization_id: OrgId,
        id: ChannelId,
    }
}

/// The active channels that have this word among their warnings.
pub(super) async fn channels_with_warning(core: &Core, word: &str) -> Result<Vec<Place>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id FROM channels WHERE is_active AND archived_at IS NULL \
         AND CAST(warnings AS TEXT) LIKE $1 ORDER BY id"
    );
    core.db.every_org().all(sql, [format!("%\"{word}%").into()]).await
}

row! {
    /// What a channel's whitelist says of an origin.
    pub(super) struct Whitelisted {
        names_some: bool,
        names_it: bool,
    }
}

/// What the channel's whitelist says of an origin and its place.
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
