//! SQL of accounts.

use sea_orm::Value;

use super::{
    directory::{AccountFilter, MadeToken},
    operator::OrganizationRef,
};
use crate::{
    base::{
        ids::{OrgId, SessionId, UserId},
        permission::Role,
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        store::{
            Db, Transaction, Tx,
            sql::{InstallationSql, RunSql, RunWritingSql as _, every_org_sql, installation_sql, row, sql},
        },
    },
};

row! {
    /// An account.
    pub(super) struct FoundAccount {
        id: UserId,
        email: String,
        name: String,
        email_confirmed_at: Option<Timestamp>,
        disabled_at: Option<Timestamp>,
        has_password: bool,
        has_second_factor: bool,
        created_at: Timestamp,
    }
}

/// Accounts, ordered by id.
pub(super) async fn accounts(db: &Db, filter: AccountFilter) -> Result<Vec<FoundAccount>> {
    const ACCOUNTS: &str = "SELECT id, email, name, email_confirmed_at, disabled_at, \
         (password_hash IS NOT NULL) AS has_password, (totp_confirmed_at IS NOT NULL) AS has_second_factor, created_at \
         FROM users";
    const ORDERED: &str = " ORDER BY id";
    let sql = match filter {
        AccountFilter::All => installation_sql!(ACCOUNTS, ORDERED),
        AccountFilter::MembersOf(_) => installation_sql!(
            ACCOUNTS,
            " WHERE id IN (SELECT user_id FROM members WHERE organization_id = $1)",
            ORDERED
        ),
        AccountFilter::One(_) => installation_sql!(ACCOUNTS, " WHERE id = $1", ORDERED),
    };
    db.installation().all(sql, values(filter)).await
}

row! {
    /// A membership.
    pub(super) struct FoundMembership {
        user_id: UserId,
        organization_id: OrgId,
        organization_name: String,
        role: Role,
        created_at: Timestamp,
        require_second_factor: bool,
    }
}

/// Memberships, ordered by person and organization.
pub(super) async fn memberships(db: &Db, filter: AccountFilter) -> Result<Vec<FoundMembership>> {
    const MEMBERSHIPS: &str = "SELECT m.user_id, m.organization_id, o.name AS organization_name, m.role, m.created_at, \
         o.require_second_factor FROM members m JOIN organizations o ON o.id = m.organization_id";
    const ORDERED: &str = " ORDER BY m.user_id, m.organization_id";
    let sql = match filter {
        AccountFilter::All => installation_sql!(MEMBERSHIPS, ORDERED),
        AccountFilter::MembersOf(_) => installation_sql!(
            MEMBERSHIPS,
            " WHERE m.user_id IN (SELECT user_id FROM members WHERE organization_id = $1)",
            ORDERED
        ),
        AccountFilter::One(_) => installation_sql!(MEMBERSHIPS, " WHERE m.user_id = $1", ORDERED),
    };
    db.installation().all(sql, values(filter)).await
}

fn values(filter: AccountFilter) -> Vec<Value> {
    match filter {
        AccountFilter::All => Vec::new(),
        AccountFilter::MembersOf(org) => vec![org.into()],
        AccountFilter::One(user) => vec![user.into()],
    }
}

/// The organizations that a person belongs to.
pub(super) async fn organizations_of(tx: &Transaction, user: UserId) -> Result<Vec<OrgId>> {
    tx.column(installation_sql!("SELECT organization_id FROM members WHERE user_id = $1"), [user.into()])
        .await
}

/// A person's role in an organization.
pub(super) async fn role_in(db: &Db, org: OrgId, user: UserId) -> Result<Option<Role>> {
    let sql = installation_sql!("SELECT role FROM members WHERE organization_id = $1 AND user_id = $2");
    db.installation().scalar(sql, [org.into(), user.into()]).await
}

/// The number of a person's unused recovery codes.
pub(super) async fn unused_codes(core: &Core, user: UserId) -> Result<i64> {
    let sql = installation_sql!("SELECT COUNT(*) FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL");
    Ok(core.db.installation().scalar(sql, [user.into()]).await?.unwrap_or(0))
}

/// The active service tokens that a person created. They belong to organizations and outlive the account.
pub(super) async fn made_tokens(core: &Core, user: UserId) -> Result<Vec<MadeToken>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id, name FROM service_tokens WHERE created_by = $1 AND revoked_at IS NULL \
         AND (expires_at IS NULL OR expires_at > $2) ORDER BY organization_id, id"
    );
    core.db.every_org().all(sql, [user.into(), core.clock.now().into()]).await
}

/// The number of a person's open sessions.
pub(super) async fn open_sessions(tx: &Transaction, user: UserId, now: Timestamp) -> Result<i64> {
    let sql = installation_sql!(
        "SELECT COUNT(DISTINCT family) FROM sessions WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2"
    );
    Ok(tx.scalar(sql, [user.into(), now.into()]).await?.unwrap_or(0))
}

/// Revokes a person's sessions, except all generations of this one.
pub(super) async fn revoke_sessions(
    tx: &Transaction,
    user: UserId,
    except: Option<SessionId>,
    now: Timestamp,
) -> Result<()> {
    let sql = installation_sql!(
        "UPDATE sessions SET revoked_at = $1 WHERE user_id = $2 AND revoked_at IS NULL \
         AND family NOT IN (SELECT family FROM sessions WHERE user_id = $2 AND id = $3)"
    );
    let except = except.map_or(0, |session| session.0);
    tx.execute(sql, [now.into(), user.into(), except.into()]).await?;
    Ok(())
}

/// Locks the organizations that a person is an OWNER of. For PostgreSQL.
pub(super) async fn lock_owned(tx: &Transaction, user: UserId) -> Result<()> {
    let sql = installation_sql!(
        "SELECT id FROM organizations WHERE id IN (SELECT organization_id FROM members WHERE user_id = $1 \
         AND role = 'OWNER') ORDER BY id FOR NO KEY UPDATE"
    );
    tx.column::<OrgId>(sql, [user.into()]).await?;
    Ok(())
}

/// To be completed with a condition.
const ORGANIZATIONS: &str = "SELECT o.id, o.name FROM members m JOIN organizations o ON o.id = m.organization_id \
     WHERE m.user_id = $1 AND ";

/// The organizations that a person is an OWNER of and that have no other OWNER whose account is enabled.
pub(super) async fn without_other_owner(
    runner: &impl RunSql<Sql = InstallationSql>,
    user: UserId,
) -> Result<Vec<OrganizationRef>> {
    let sql = installation_sql!(
        ORGANIZATIONS,
        "m.role = 'OWNER' AND NOT EXISTS (SELECT 1 FROM members x JOIN users u ON u.id = x.user_id \
         WHERE x.organization_id = m.organization_id AND x.user_id <> $1 AND x.role = 'OWNER' \
         AND u.disabled_at IS NULL) ORDER BY o.id"
    );
    runner.all(sql, [user.into()]).await
}

/// The person's organizations that require a second factor.
pub(super) async fn requiring_factor(tx: &Transaction, user: UserId) -> Result<Vec<OrganizationRef>> {
    tx.all(installation_sql!(ORGANIZATIONS, "o.require_second_factor ORDER BY o.id"), [user.into()]).await
}

/// The address of an erased invitation.
const ERASED_ADDRESS: &str = "erased@erased.invalid";

/// Replaces a person's address in invitations, and revokes open ones. Returns their number.
pub(super) async fn erase_invitations(
    tx: &Transaction,
    (user, folded): (Option<UserId>, &str),
    now: Timestamp,
) -> Result<u64> {
    let sql = installation_sql!(
        "UPDATE invitations SET email = $1, email_folded = $1, \
         revoked_at = CASE WHEN accepted_at IS NULL THEN COALESCE(revoked_at, $2) ELSE revoked_at END \
         WHERE accepted_by = $3 OR email_folded = $4"
    );
    tx.execute(sql, [ERASED_ADDRESS.into(), now.into(), user.into(), folded.into()]).await
}

/// Replaces a person's address in the invitations to an organization that they accepted.
pub(super) async fn erase_accepted(tx: &Tx, user: UserId) -> Result<()> {
    let sql = sql!(
        "UPDATE invitations SET email = $2, email_folded = $2 WHERE organization_id = $org AND accepted_by = $3"
    );
    tx.execute(sql, [ERASED_ADDRESS.into(), user.into()]).await?;
    Ok(())
}
