//! Users: people who can sign in. A user belongs to no organization.

use std::sync::Arc;

use async_graphql::SimpleObject;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, NotSet, QueryFilter, Set,
};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;

use super::{
    directory::{self, AccountFilter},
    queries,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        folding,
        ids::{OrgId, UserId},
        permission::Role,
        plain::{NAME_RULE, is_name},
        problem::{Code, Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        Core, Event,
        access::password,
        audit::{Origin, PersonalEntry, record_personal},
        mail,
        store::{Db, Transaction, Tx, for_update},
    },
    domain::people::{entity::users, signing_in::queries::delete_first_code},
};

/// A new user.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Unique regardless of case.
    pub email: String,
    pub name: String,
    pub password: SecretString,
    pub confirmed: bool,
}

/// A person.
#[derive(Clone, Debug, SimpleObject)]
pub struct User {
    /// Identifies the person.
    pub id: UserId,
    /// The name.
    pub name: String,
    /// The e-mail address.
    pub email: String,
    /// Whether the address has been confirmed.
    pub email_confirmed: bool,
    /// Whether signing in requires a second factor.
    pub has_second_factor: bool,
    /// The path of the person's picture.
    pub avatar_url: Option<String>,
    /// When the account was created.
    pub created_at: Timestamp,
}

impl From<users::Model> for User {
    fn from(row: users::Model) -> Self {
        let avatar_url = row.avatar_version.map(|version| format!("/avatars/user/{}?v={version}", row.id));
        Self {
            id: row.id,
            name: row.name,
            email: row.email,
            email_confirmed: row.email_confirmed_at.is_some(),
            has_second_factor: row.totp_confirmed_at.is_some(),
            avatar_url,
            created_at: row.created_at,
        }
    }
}

/// One of a person's organizations, and their role in it.
#[derive(Clone, Debug, SimpleObject, Serialize)]
pub struct Membership {
    /// The organization.
    pub organization_id: OrgId,
    /// The organization's name.
    pub organization_name: String,
    /// The person's role in it.
    pub role: Role,
    /// When the person became a member.
    pub created_at: Timestamp,
    /// Whether the organization requires its members to have a second factor.
    pub requires_second_factor: bool,
}

/// Creates a user, or gives one created by [`invite_user`] a name and a password.
///
/// # Errors
/// `VALIDATION_FAILED`; `NAME_TAKEN` for an address already in use.
pub async fn create_user(core: &Core, new: NewUser) -> Result<UserId> {
    let (email, name) = (new.email.trim(), new.name.trim());
    check(email, name, Some(&new.password))?;
    let hash = core.access.passwords.hash(&new.password).await.map_err(Problem::internal)?;
    let now = core.clock.now();
    let tx = core.db.begin().await?;
    delete_first_code(&tx).await?;
    let existing = by_email(&tx, email).await?;
    if existing.as_ref().is_some_and(|row| row.password_hash.is_some()) {
        return Err(Problem::name_taken("user", email));
    }
    let is_new = existing.is_none();
    let mut row = existing.map_or_else(|| blank(email, now), IntoActiveModel::into_active_model);
    row.name = Set(name.to_owned());
    row.password_hash = Set(Some(hash));
    row.updated_at = Set(now);
    if new.confirmed {
        row.email_confirmed_at = Set(Some(now));
    }
    let row = if is_new { row.insert(&tx).await? } else { row.update(&tx).await? };
    let changes = json!({ "email": row.email, "password": "changed", "email_confirmed": new.confirmed });
    let entry = PersonalEntry::done("createUser", row.id, changes);
    record_personal(&tx, Origin::operator(core), entry);
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(row.id)
}

/// Finds the user with this address, or creates one without a password, named after the address. Such a user
/// can't sign in with a password until [`create_user`] sets one.
///
/// # Errors
/// `VALIDATION_FAILED` for an invalid address.
pub async fn invite_user(core: &Core, email: &str) -> Result<UserId> {
    let email = email.trim();
    let name = email.split('@').next().unwrap_or(email);
    check(email, name, None)?;
    let tx = core.db.begin().await?;
    let id = match by_email(&tx, email).await? {
        Some(row) => row.id,
        None => {
            let row = users::ActiveModel { name: Set(name.to_owned()), ..blank(email, core.clock.now()) };
            delete_first_code(&tx).await?;
            let id = row.insert(&tx).await?.id;
            let entry = PersonalEntry::done("createUser", id, json!({ "email": email }));
            record_personal(&tx, Origin::operator(core), entry);
            id
        }
    };
    tx.commit().await?;
    Ok(id)
}

/// Finds the user with this address.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn find_user(core: &Core, email: &str) -> Result<UserId> {
    find_user_in(&core.db, email).await
}

/// [`find_user`] without a running service.
///
/// # Errors
/// As [`find_user`].
pub async fn find_user_in(db: &Db, email: &str) -> Result<UserId> {
    let found = by_email(db.read(), email).await?;
    Ok(found.ok_or_else(|| unknown_user(email))?.id)
}

/// Finds a user by the operator's reference: an id or address.
///
/// # Errors
/// `NOT_FOUND`.
#[expect(clippy::disallowed_methods, reason = "a person belongs to no organization")]
pub async fn find_user_by(db: &Db, reference: &str) -> Result<UserId> {
    let Ok(id) = reference.trim().parse() else { return find_user_in(db, reference).await };
    let found = users::Entity::find_by_id(UserId(id)).one(db.read()).await?;
    Ok(found.ok_or_else(|| unknown_user(reference))?.id)
}

fn unknown_user(reference: &str) -> Problem {
    let detail = format!("There is no user `{}`. `muster user list` shows all users.", reference.trim());
    Problem::new(Code::NotFound, detail)
}

/// A person's role in an organization. None for a person who isn't a member.
///
/// # Errors
/// `NOT_FOUND` for an unknown address.
pub async fn find_role_in(db: &Db, org: OrgId, email: &str) -> Result<Option<Role>> {
    let user = find_user_in(db, email).await?;
    queries::role_in(db, org, user).await
}

/// A person's own record.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn user(core: &Core, id: UserId) -> Result<User> {
    Ok(by_id(core.db.read(), id).await?.into())
}

/// Whether signing in requires a second factor.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn has_second_factor(connection: &impl ConnectionTrait, id: UserId) -> Result<bool> {
    Ok(by_id(connection, id).await?.totp_confirmed_at.is_some())
}

/// Records the version of a person's picture.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn set_avatar(
    connection: &impl ConnectionTrait,
    id: UserId,
    version: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    let mut row = by_id(connection, id).await?.into_active_model();
    row.avatar_version = Set(version);
    row.updated_at = Set(now);
    row.update(connection).await?;
    Ok(())
}

/// Announces the changed member to subscribers in each of the person's organizations.
pub async fn announce(core: &Core, tx: &Transaction, id: UserId) -> Result<()> {
    for org in queries::organizations_of(tx, id).await? {
        tx.announce(
            Arc::clone(&core.events) as _,
            Event::new(org, ChangeOp::Updated, RecordKind::Member, id),
        );
    }
    Ok(())
}

/// The organizations a person belongs to, ordered by id.
pub async fn memberships(core: &Core, id: UserId) -> Result<Vec<Membership>> {
    let found = directory::memberships(&core.db, AccountFilter::One(id)).await?;
    Ok(found.into_iter().map(|(_, membership)| membership).collect())
}

/// A person's name, for texts by the service.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn name_of(tx: &Tx, id: UserId) -> Result<String> {
    Ok(by_id(tx.connection(), id).await?.name)
}

/// The row with this id.
#[expect(clippy::disallowed_methods, reason = "a person belongs to no organization")]
pub async fn by_id(db: &impl ConnectionTrait, id: UserId) -> Result<users::Model> {
    users::Entity::find_by_id(id).one(db).await?.ok_or_else(gone)
}

/// Locks the row with this id until the transaction ends.
#[expect(clippy::disallowed_methods, reason = "a person belongs to no organization")]
pub async fn lock_user(tx: &Transaction, id: UserId) -> Result<users::Model> {
    for_update(users::Entity::find_by_id(id)).one(tx).await?.ok_or_else(gone)
}

fn gone() -> Problem {
    Problem::new(Code::NotFound, "The user no longer exists.")
}

/// Whether this is a valid address to which mail can be sent. A domain without a dot is a slip of the keyboard.
pub fn is_email(email: &str) -> bool {
    let options = email_address::Options::default().with_required_tld();
    email.len() <= 254
        && email_address::EmailAddress::parse_with_options(email, options).is_ok()
        && mail::can_be_sent_to(email)
}

/// The row with this address, regardless of case.
#[expect(clippy::disallowed_methods, reason = "a person belongs to no organization")]
pub async fn by_email(db: &impl ConnectionTrait, email: &str) -> Result<Option<users::Model>> {
    Ok(users::Entity::find().filter(users::Column::EmailFolded.eq(folding::address(email))).one(db).await?)
}

pub fn blank(email: &str, now: Timestamp) -> users::ActiveModel {
    users::ActiveModel {
        id: NotSet,
        email: Set(email.to_owned()),
        created_at: Set(now),
        updated_at: Set(now),
        ..Default::default()
    }
}

/// Lists every invalid value of a new user.
pub fn check(email: &str, name: &str, password: Option<&SecretString>) -> Result<()> {
    let mut violations = Vec::new();
    if !is_email(email) {
        let detail = format!("`{email}` is not a valid e-mail address.");
        violations.push(Violation::at("/email", "NOT_ALLOWED", detail));
    }
    if name.is_empty() || name.chars().count() > 120 {
        violations.push(Violation::at("/name", "NOT_ALLOWED", "A name must have 1 to 120 characters."));
    } else if !is_name(name) {
        violations.push(Violation::at("/name", "NOT_ALLOWED", NAME_RULE));
    }
    if let Some(Err(rule)) = password.map(|password| password::check_rules(password, email)) {
        violations.push(Violation::at("/password", "NOT_ALLOWED", format!("Password refused: {rule}.")));
    }
    Problem::fail_if_any(violations)
}
