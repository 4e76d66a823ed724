//! SQL of membership.

use crate::{
    base::{
        ids::{OrgId, UserId},
        problem::Result,
    },
    core::{
        Core,
        store::sql::{RunSql as _, installation_sql, row},
    },
};

/// The condition on a member that their account is enabled.
pub(super) const ENABLED: &str = "user_id IN (SELECT id FROM users WHERE disabled_at IS NULL)";

/// The condition that the user `u` may be notified about the organization `o`: the account can be used there, and its
/// address is confirmed.
pub const REACHABLE: &str = "u.disabled_at IS NULL AND u.email_confirmed_at IS NOT NULL \
     AND NOT (o.require_second_factor AND u.totp_confirmed_at IS NULL)";

row! {
    /// The names in an invitation.
    pub(super) struct Names {
        organization: String,
        inviter: Option<String>,
    }
}

/// The names of an organization and of an inviter. `None` if the organization does not exist.
pub(super) async fn names(core: &Core, org: OrgId, inviter: Option<UserId>) -> Result<Option<Names>> {
    let sql = installation_sql!(
        "SELECT o.name AS organization, u.name AS inviter FROM organizations o \
         LEFT JOIN users u ON u.id = $2 WHERE o.id = $1"
    );
    core.db.installation().one(sql, [org.into(), inviter.into()]).await
}
