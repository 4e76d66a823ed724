//! The operator's commands on accounts: disable and enable them, and help people who lost a password or second factor.
//! No policy applies to the operator. Not reachable by requests.
//!
//! The running service is another process: it caches a credential for
//! [`CREDENTIALS_KEPT`](crate::core::access::CREDENTIALS_KEPT), and checks open sockets and streams every
//! [`RECHECK`](crate::resolvers::RECHECK).

use sea_orm::{ActiveModelTrait, DbBackend, IntoActiveModel, Set};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;

use super::{
    credentials::{end_access, end_sessions},
    directory::MadeToken,
    letters::{Notice, notify_by_operator},
    links::{self, Purpose},
    queries,
    users::lock_user,
};
use crate::{
    base::{
        folding,
        ids::{OrgId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        audit::{Origin, PersonalEntry, record_personal},
        store::{Transaction, sql::row},
    },
    domain::people::{
        entity::users,
        signing_in::{
            factor,
            throttle::{self, Key},
        },
    },
};

row! {
    /// An organization by id and name, in the operator's output.
    #[derive(Clone, Debug, Serialize)]
    pub struct OrganizationRef {
        id: OrgId,
        name: String,
    }
}

/// The result of disabling an account.
#[derive(Clone, Debug, Serialize)]
pub struct Disabled {
    pub id: UserId,
    pub email: String,
    /// False if it was already disabled.
    pub changed: bool,
    pub disabled_at: Timestamp,
    pub sessions_ended: i64,
    /// The person's organizations that now have no OWNER who can sign in.
    pub organizations_without_owner: Vec<OrganizationRef>,
    /// The person's service tokens. They belong to organizations and keep working.
    pub service_tokens: Vec<MadeToken>,
}

/// The result of enabling an account.
#[derive(Clone, Debug, Serialize)]
pub struct Enabled {
    pub id: UserId,
    pub email: String,
    /// False if it was already enabled.
    pub changed: bool,
}

/// An account whose second factor was removed.
#[derive(Clone, Debug, Serialize)]
pub struct WithoutFactor {
    pub id: UserId,
    pub email: String,
    pub sessions_ended: i64,
    /// The person's organizations that require a second factor, and deny access until the person sets up a new one.
    pub organizations_requiring_one: Vec<OrganizationRef>,
}

/// An account whose password was removed, with a link for setting a new one. Shown only once.
#[derive(Debug)]
pub struct NewLink {
    pub id: UserId,
    pub email: String,
    pub sessions_ended: i64,
    /// If the account is disabled, the link works once it is enabled.
    pub is_disabled: bool,
    pub token: SecretString,
    pub expires_at: Timestamp,
}

/// Disables an account and ends all its sessions, sign-ins, and links. Also works for the last OWNER of an
/// organization, because a compromised account can't wait. The result lists the organizations left without an OWNER.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn disable(core: &Core, user: UserId) -> Result<Disabled> {
    let tx = core.db.begin().await?;
    lock_owned(core, &tx, user).await?;
    let person = lock_user(&tx, user).await?;
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
    let organizations_without_owner = queries::without_other_owner(&tx, user).await?;
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(Disabled {
        id: user,
        email: person.email,
        changed,
        disabled_at,
        sessions_ended,
        organizations_without_owner,
        service_tokens: queries::made_tokens(core, user).await?,
    })
}

/// The organizations whose only OWNER with an enabled account is this person.
pub async fn solely_owned(core: &Core, user: UserId) -> Result<Vec<OrganizationRef>> {
    queries::without_other_owner(&core.db.installation(), user).await
}

/// Enables an account again, with the same ways to sign in. Ended sessions stay ended.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn enable(core: &Core, user: UserId) -> Result<Enabled> {
    let tx = core.db.begin().await?;
    let person = lock_user(&tx, user).await?;
    let changed = person.disabled_at.is_some();
    if changed {
        set_disabled(core, &tx, &person, None).await?;
        // Ends sessions opened before every process knew of the change, or left open by manual SQL.
        end_sessions(core, &tx, user, None).await?;
        links::withdraw_others(core, &tx, user, &person.email).await?;
        let changes = json!({ "disabled_at": null });
        record_personal(&tx, Origin::operator(core), PersonalEntry::done("enableUser", user, changes));
    }
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(Enabled { id: user, email: person.email, changed })
}

/// Removes a lost second factor and its recovery codes. Ends all sessions and notifies the person by mail.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` without a second factor.
pub async fn reset_second_factor(core: &Core, user: UserId) -> Result<WithoutFactor> {
    let tx = core.db.begin().await?;
    let person = lock_user(&tx, user).await?;
    if person.totp_confirmed_at.is_none() {
        let detail = format!("{} has no second factor.", person.email);
        return Err(Problem::new(Code::Conflict, detail));
    }
    factor::remove(core, &tx, &person).await?;
    throttle::forgive(&tx, &[Key::second_factor(user)]).await?;
    let sessions_ended = end_everything(core, &tx, &person).await?;
    notify_by_operator(core, &tx, &person, Notice::SecondFactorReset);
    let changes = json!({ "second_factor": false, "sessions": "revoked" });
    record_personal(&tx, Origin::operator(core), PersonalEntry::done("resetSecondFactor", user, changes));
    let organizations_requiring_one = queries::requiring_factor(&tx, user).await?;
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(WithoutFactor { id: user, email: person.email, sessions_ended, organizations_requiring_one })
}

/// Removes a password and creates a link for setting a new one, which the operator hands over. Ends all sessions and
/// notifies the person by mail. A second factor stays.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn reset_password(core: &Core, user: UserId) -> Result<NewLink> {
    let tx = core.db.begin().await?;
    let person = lock_user(&tx, user).await?;
    let mut row = person.clone().into_active_model();
    row.password_hash = Set(None);
    row.updated_at = Set(core.clock.now());
    row.update(&tx).await?;
    let sessions_ended = end_everything(core, &tx, &person).await?;
    let (token, expires_at) = links::create_by_hand(core, &tx, &person, Purpose::Reset).await?;
    throttle::forgive(&tx, &[Key::account(&person.email), Key::password(user)]).await?;
    notify_by_operator(core, &tx, &person, Notice::PasswordReset);
    let changes = json!({ "password": "changed", "sessions": "revoked" });
    record_personal(&tx, Origin::operator(core), PersonalEntry::done("resetUserPassword", user, changes));
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    let is_disabled = person.disabled_at.is_some();
    Ok(NewLink { id: user, email: person.email, sessions_ended, is_disabled, token, expires_at })
}

/// Replaces an address in invitations, and revokes the open ones. Returns their number.
pub async fn erase_invitations(core: &Core, address: &str) -> Result<u64> {
    let tx = core.db.begin().await?;
    let erased = queries::erase_invitations(&tx, (None, &folding::name(address)), core.clock.now()).await?;
    tx.commit().await?;
    Ok(erased)
}

/// Replaces a person's address in the invitations that they accepted in this organization.
pub async fn erase_invitations_of(scope: &Scope, user: UserId) -> Result<()> {
    let tx = scope.begin().await?;
    queries::erase_accepted(&tx, user).await?;
    tx.commit().await
}

/// Replaces the name and the address of a disabled account, and clears everything else in its row. The row stays, because
/// records name its id.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn erase(core: &Core, user: UserId, name: &str) -> Result<()> {
    let tx = core.db.begin().await?;
    let person = lock_user(&tx, user).await?;
    let (email, now) = (format!("erased-{user}@erased.invalid"), core.clock.now());
    queries::erase_invitations(&tx, (Some(user), &person.email_folded), now).await?;
    let mut row = person.into_active_model();
    row.email = Set(email);
    row.name = Set(name.to_owned());
    row.password_hash = Set(None);
    row.email_confirmed_at = Set(None);
    row.avatar_version = Set(None);
    row.totp_secret_sealed = Set(None);
    row.totp_confirmed_at = Set(None);
    row.totp_last_step = Set(None);
    row.preferences = Set(None);
    row.time_zone = Set(None);
    row.updated_at = Set(now);
    row.update(&tx).await?;
    record_personal(&tx, Origin::operator(core), PersonalEntry::done("eraseUser", user, json!({})));
    core.access.cache.invalidate_after(&tx);
    Ok(tx.commit().await?)
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

/// Ends the sessions and every other access of an intruder: sign-ins in progress, password links, and links that would
/// change the address. Returns how many sessions were open.
async fn end_everything(core: &Core, tx: &Transaction, person: &users::Model) -> Result<i64> {
    let open = queries::open_sessions(tx, person.id, core.clock.now()).await?;
    end_access(core, tx, person, None).await?;
    Ok(open)
}

/// Locks the organizations that the person is an OWNER of, as every operation that counts owners does. They are locked
/// before the person: accepting an invitation uses the same order.
async fn lock_owned(core: &Core, tx: &Transaction, user: UserId) -> Result<()> {
    if core.db.backend() == DbBackend::Postgres {
        queries::lock_owned(tx, user).await?;
    }
    Ok(())
}
