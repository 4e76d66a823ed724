//! What the operator of the installation does to accounts: locks somebody out and lets them in again, helps those who
//! have lost what they sign in with. No policy binds the operator, and no request leads here.
//!
//! A service that runs is another process than the command line: it remembers a credential for
//! [`CREDENTIALS_KEPT`](crate::core::access::CREDENTIALS_KEPT), and asks about open sockets and streams every
//! [`RECHECK`](crate::fields::RECHECK).

use sea_orm::{ActiveModelTrait, ConnectionTrait, DbBackend, IntoActiveModel, QueryResult, Set, Statement};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;

use super::{
    credentials::{end_sessions, end_ways_in},
    directory::{MadeToken, made_tokens},
    entity::users,
    factor,
    letters::{Notice, notify_by_operator},
    links::{self, Purpose},
    throttle::{self, Key},
    users::hold,
};
use crate::{
    base::{
        ids::{OrgId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        audit::{Origin, PersonalEntry, record_personal},
        store::Transaction,
    },
};

/// An organization, as the operator is told of it.
#[derive(Clone, Debug, Serialize)]
pub struct House {
    /// Identifies it.
    pub id: OrgId,
    /// The name.
    pub name: String,
}

/// What disabling an account has done, and what it leaves.
#[derive(Clone, Debug, Serialize)]
pub struct Disabled {
    /// Whose account.
    pub id: UserId,
    /// The address.
    pub email: String,
    /// False if it was disabled before.
    pub changed: bool,
    /// Since when.
    pub disabled_at: Timestamp,
    /// How many sessions were open.
    pub sessions_ended: i64,
    /// Those of the person's organizations that have no OWNER who can sign in.
    pub organizations_without_owner: Vec<House>,
    /// The service tokens that the person has made: they are the organizations', and still work.
    pub service_tokens: Vec<MadeToken>,
}

/// What enabling an account has done.
#[derive(Clone, Debug, Serialize)]
pub struct Enabled {
    /// Whose account.
    pub id: UserId,
    /// The address.
    pub email: String,
    /// False if it was enabled before.
    pub changed: bool,
}

/// An account whose second factor was removed.
#[derive(Clone, Debug, Serialize)]
pub struct WithoutFactor {
    /// Whose account.
    pub id: UserId,
    /// The address.
    pub email: String,
    /// How many sessions were open.
    pub sessions_ended: i64,
    /// Those of the person's organizations that let them in only once they have set up another one.
    pub organizations_requiring_one: Vec<House>,
}

/// An account whose password was removed, and the link that sets another one. It is shown this once.
#[derive(Debug)]
pub struct NewLink {
    /// Whose account.
    pub id: UserId,
    /// The address.
    pub email: String,
    /// How many sessions were open.
    pub sessions_ended: i64,
    /// Whether the account is disabled: the link works once it no longer is.
    pub is_disabled: bool,
    /// The link's token.
    pub token: SecretString,
    /// Until when it is good.
    pub expires_at: Timestamp,
}

/// Locks somebody out: ends every session, sign-in and link of theirs. Also the last OWNER of an organization: an account
/// in wrong hands can't wait. What that leaves is told.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn disable(core: &Core, user: UserId) -> Result<Disabled> {
    let tx = core.db.begin().await?;
    lock_owned(core, &tx, user).await?;
    let person = hold(&tx, user).await?;
    let changed = person.disabled_at.is_none();
    let disabled_at = person.disabled_at.unwrap_or_else(|| core.clock.now());
    let mut sessions_ended = 0;
    if changed {
        set_disabled(core, &tx, &person, Some(disabled_at)).await?;
        sessions_ended = end_everything(core, &tx, &person).await?;
        links::withdraw(core, &tx, user, Purpose::Confirm).await?;
        let changes = json!({ "disabled_at": disabled_at, "sessions": "revoked" });
        record_personal(&tx, Origin::operator(core), PersonalEntry::done("disableUser", user, changes));
    }
    let organizations_without_owner = houses(core, &tx, user, WITHOUT_OWNER).await?;
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(Disabled {
        id: user,
        email: person.email,
        changed,
        disabled_at,
        sessions_ended,
        organizations_without_owner,
        service_tokens: made_tokens(core, user).await?,
    })
}

/// Lets somebody in again, with what they signed in with before; sessions from before stay ended.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn enable(core: &Core, user: UserId) -> Result<Enabled> {
    let tx = core.db.begin().await?;
    let person = hold(&tx, user).await?;
    let changed = person.disabled_at.is_some();
    if changed {
        set_disabled(core, &tx, &person, None).await?;
        // What was let through in the moment before every process knew, and what somebody's SQL has left.
        end_sessions(core, &tx, user, None).await?;
        links::withdraw_others(core, &tx, user, &person.email).await?;
        let changes = json!({ "disabled_at": null });
        record_personal(&tx, Origin::operator(core), PersonalEntry::done("enableUser", user, changes));
    }
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(Enabled { id: user, email: person.email, changed })
}

/// Removes a second factor that was lost, with its recovery codes. Every session ends, and the person is told by mail.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` where there is none.
pub async fn reset_second_factor(core: &Core, user: UserId) -> Result<WithoutFactor> {
    let tx = core.db.begin().await?;
    let person = hold(&tx, user).await?;
    if person.totp_confirmed_at.is_none() {
        let detail = format!("{} has no second factor.", person.email);
        return Err(Problem::new(Code::Conflict, detail));
    }
    factor::remove(core, &tx, &person).await?;
    throttle::forgive(core, &tx, &[Key::second_factor(user)]).await?;
    let sessions_ended = end_everything(core, &tx, &person).await?;
    notify_by_operator(core, &tx, &person, Notice::SecondFactorReset);
    let changes = json!({ "second_factor": false, "sessions": "revoked" });
    record_personal(&tx, Origin::operator(core), PersonalEntry::done("resetSecondFactor", user, changes));
    let organizations_requiring_one = houses(core, &tx, user, REQUIRING_FACTOR).await?;
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(WithoutFactor { id: user, email: person.email, sessions_ended, organizations_requiring_one })
}

/// Takes somebody's password away and makes a link that sets another one, for the operator to hand over. Every session
/// ends, and the person is told by mail. A second factor stays.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn reset_password(core: &Core, user: UserId) -> Result<NewLink> {
    let tx = core.db.begin().await?;
    let person = hold(&tx, user).await?;
    let mut row = person.clone().into_active_model();
    row.password_hash = Set(None);
    row.updated_at = Set(core.clock.now());
    row.update(&tx).await?;
    let sessions_ended = end_everything(core, &tx, &person).await?;
    let (token, expires_at) = links::by_hand(core, &tx, &person, Purpose::Reset).await?;
    throttle::forgive(core, &tx, &[Key::account(&person.email), Key::password(user)]).await?;
    notify_by_operator(core, &tx, &person, Notice::PasswordReset);
    let changes = json!({ "password": "changed", "sessions": "revoked" });
    record_personal(&tx, Origin::operator(core), PersonalEntry::done("resetUserPassword", user, changes));
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    let is_disabled = person.disabled_at.is_some();
    Ok(NewLink { id: user, email: person.email, sessions_ended, is_disabled, token, expires_at })
}

async fn set_disabled(
    core: &Core,
    tx: &Transaction,
    person: &users::Model,
    disabled_at: Option<Timestamp>,
) -> Result<()> {
    let mut row = person.clone().into_active_model();
    row.disabled_at = Set(disabled_at);
    row.updated_at = Set(core.clock.now());
    row.update(tx).await?;
    Ok(())
}

/// Ends the sessions and whatever could bring somebody else in: sign-ins under way, links to a new password, links that
/// would make another address the account's. How many sessions were open.
async fn end_everything(core: &Core, tx: &Transaction, person: &users::Model) -> Result<i64> {
    let sql = "SELECT COUNT(DISTINCT family) FROM sessions WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2";
    let values = [person.id.0.into(), core.clock.now().0.into()];
    let open = tx.query_one_raw(Statement::from_sql_and_values(core.db.backend(), sql, values)).await?;
    end_ways_in(core, tx, person, None).await?;
    Ok(open.map_or(Ok(0), |row| row.try_get_by(0))?)
}

/// Holds the organizations that the person is an OWNER of, as everybody does who counts owners. Before the person: whoever
/// accepts an invitation takes them in this order.
async fn lock_owned(core: &Core, tx: &Transaction, user: UserId) -> Result<()> {
    if core.db.backend() == DbBackend::Postgres {
        let sql = "SELECT 1 FROM organizations WHERE id IN (SELECT organization_id FROM members WHERE user_id = $1 \
                   AND role = 'OWNER') ORDER BY id FOR NO KEY UPDATE";
        let statement = Statement::from_sql_and_values(core.db.backend(), sql, [user.0.into()]);
        tx.query_all_raw(statement).await?;
    }
    Ok(())
}

const WITHOUT_OWNER: &str = "m.role = 'OWNER' AND NOT EXISTS (SELECT 1 FROM members x JOIN users u ON u.id = x.user_id \
                             WHERE x.organization_id = m.organization_id AND x.role = 'OWNER' AND u.disabled_at IS NULL)";
const REQUIRING_FACTOR: &str = "o.require_second_factor";

/// Those of the person's organizations of which this holds.
async fn houses(core: &Core, tx: &Transaction, user: UserId, condition: &str) -> Result<Vec<House>> {
    let sql = format!(
        "SELECT o.id, o.name FROM members m JOIN organizations o ON o.id = m.organization_id \
         WHERE m.user_id = $1 AND {condition} ORDER BY o.id"
    );
    let rows =
        tx.query_all_raw(Statement::from_sql_and_values(core.db.backend(), sql, [user.0.into()])).await?;
    let read = |row: &QueryResult| -> Result<House> {
        Ok(House { id: row.try_get_by(0)?, name: row.try_get_by(1)? })
    };
    rows.iter().map(read).collect()
}
