//! A person's own name, e-mail address, and password.
//!
//! A mailed link proves an address, sets a new password, or both; see `links.rs`. Answers never reveal whether an
//! address of another person has an account: a password reset is answered before the lookup, and a change to an address
//! that is already taken is answered like any other but sends no mail.

use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};
use secrecy::SecretString;
use serde_json::json;

use super::{
    letters::{Notice, notify},
    links::{self, Purpose},
    queries,
    users::{announce, by_email, by_id, is_email},
};
use crate::{
    base::{
        ids::UserId,
        plain::{NAME_RULE, is_name},
        problem::{Code, Problem, Result},
    },
    core::{
        Core, Request,
        access::{Person, password},
        audit::{PersonalEntry, record_personal},
        store::Transaction,
    },
    domain::people::{
        SignInOrigin,
        entity::users,
        signing_in::{
            queries::delete_challenges,
            sessions::{is_recent, lock_unchanged},
            throttle::{self, Key},
        },
    },
};

/// Mails a link that confirms the person's address. Does nothing if it is already confirmed.
///
/// # Errors
/// `RATE_LIMITED`.
pub async fn request_email_confirmation(request: &Request, person: &Person) -> Result<()> {
    let core = &request.core;
    let user = by_id(core.db.read(), person.id).await?;
    if user.email_confirmed_at.is_some() {
        return Ok(());
    }
    throttle::charge(core, &[Key::mail(&user.email)]).await?;
    let tx = request.begin().await?;
    links::send(core, &tx, &user, Purpose::Confirm, &user.email).await?;
    record_personal(
        &tx,
        request,
        PersonalEntry::done("requestEmailConfirmation", user.id, json!({})).by(&user.name),
    );
    Ok(tx.commit().await?)
}

/// Confirms an address with a link mailed to it. If the person asked to change to this address, the account's address
/// changes.
///
/// # Errors
/// `LINK_INVALID`; `NAME_TAKEN` if another account took the address in the meantime; `RATE_LIMITED`.
pub async fn confirm_email(request: &Request, token: &SecretString) -> Result<()> {
    let core = &request.core;
    let address = Key::address(request.ip);
    throttle::charge(core, std::slice::from_ref(&address)).await?;
    let tx = request.begin().await?;
    let (user, email) = links::redeem(core, &tx, Purpose::Confirm, token).await?;
    if user.disabled_at.is_some() {
        return Err(links::invalid());
    }
    let mut row = user.clone().into_active_model();
    let mut changes = json!({ "email_confirmed": true });
    if user.email != email {
        if by_email(&tx, &email).await?.is_some_and(|other| other.id != user.id) {
            return Err(Problem::name_taken("user", &email));
        }
        row.email = Set(email.clone());
        links::withdraw(core, &tx, user.id, Purpose::Reset).await?;
        notify(core, &tx, &user, &user.email, Notice::EmailChanged, &SignInOrigin::of(request));
        changes["email"] = json!(email);
    }
    row.email_confirmed_at = Set(Some(core.clock.now()));
    row.updated_at = Set(core.clock.now());
    row.update(&tx).await?;
    throttle::refund(&tx, &address).await?;
    record_personal(&tx, request, PersonalEntry::done("confirmEmail", user.id, changes).by(&user.name));
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(())
}

/// Mails a link for setting a new password, if the account exists. Answers before anything is looked up.
///
/// # Errors
/// `RATE_LIMITED`, by the IP address of the request.
pub async fn request_password_reset(request: &std::sync::Arc<Request>, email: &str) -> Result<()> {
    let core = &request.core;
    throttle::charge(core, &[Key::address(request.ip)]).await?;
    let (request, email) = (std::sync::Arc::clone(request), email.trim().to_owned());
    core.tasks.spawn(async move {
        if let Err(problem) = send_reset(&request, &email).await
            && problem.code != Code::RateLimited
        {
            crate::core::telemetry::problem(&problem, &request.id);
        }
    });
    Ok(())
}

async fn send_reset(request: &Request, email: &str) -> Result<()> {
    let core = &request.core;
    let user = by_email(core.db.read(), email).await?;
    let Some(user) = user.filter(|user| user.disabled_at.is_none()) else { return Ok(()) };
    throttle::charge(core, &[Key::reset(&user.email)]).await?;
    let tx = request.begin().await?;
    links::send(core, &tx, &user, Purpose::Reset, &user.email).await?;
    // The caller has proved no identity, so the audit entry says ANONYMOUS.
    let entry = PersonalEntry::done("requestPasswordReset", user.id, json!({}));
    record_personal(&tx, request, entry);
    Ok(tx.commit().await?)
}

/// Sets a new password with a link. Ends all of the person's sessions.
///
/// # Errors
/// `LINK_INVALID`; `VALIDATION_FAILED` for a password that breaks the rules, after which the link still works;
/// `RATE_LIMITED`.
pub async fn reset_password(request: &Request, token: &SecretString, new: &SecretString) -> Result<()> {
    let core = &request.core;
    let address = Key::address(request.ip);
    throttle::charge(core, std::slice::from_ref(&address)).await?;
    let hash = core.access.passwords.hash(new).await.map_err(Problem::internal)?;
    let tx = request.begin().await?;
    let (user, email) = links::redeem(core, &tx, Purpose::Reset, token).await?;
    if user.disabled_at.is_some() || user.email != email {
        return Err(links::invalid());
    }
    check_password(new, &user.email, "newPassword")?;
    set_password(core, &tx, &user, hash, None).await?;
    let forgiven = [Key::account(&email), Key::pair(&email, request.ip)];
    throttle::forgive(&tx, &forgiven).await?;
    throttle::refund(&tx, &address).await?;
    notify(core, &tx, &user, &user.email, Notice::PasswordChanged, &SignInOrigin::of(request));
    record_personal(
        &tx,
        request,
        PersonalEntry::done("resetPassword", user.id, json!({ "password": "changed" })).by(&user.name),
    );
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(())
}

/// Changes the password. Ends the person's other sessions.
///
/// # Errors
/// `SIGN_IN_FAILED` for a wrong current password; `VALIDATION_FAILED`; `RATE_LIMITED`.
pub async fn change_password(
    request: &Request,
    person: &Person,
    current: &SecretString,
    new: &SecretString,
) -> Result<()> {
    let core = &request.core;
    let user = require_password(request, person.id, Some(current)).await?;
    if user.password_hash.is_none() {
        let detail = "The account has no password yet. Set one with `requestPasswordReset`.";
        return Err(Problem::new(Code::Conflict, detail));
    }
    check_password(new, &user.email, "newPassword")?;
    let hash = core.access.passwords.hash(new).await.map_err(Problem::internal)?;
    let tx = request.begin().await?;
    let user = lock_unchanged(&tx, &user).await?;
    set_password(core, &tx, &user, hash, Some(person)).await?;
    notify(core, &tx, &user, &user.email, Notice::PasswordChanged, &SignInOrigin::of(request));
    record_personal(
        &tx,
        request,
        PersonalEntry::done("changePassword", user.id, json!({ "password": "changed" })).by(&user.name),
    );
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(())
}

/// Stores a password. Without `keep`, a mailed link has also proved the address. Ends everything that an intruder with
/// the old password may have started; the session of `keep` stays.
async fn set_password(
    core: &Core,
    tx: &Transaction,
    user: &users::Model,
    hash: String,
    keep: Option<&Person>,
) -> Result<()> {
    let now = core.clock.now();
    let mut row = user.clone().into_active_model();
    row.password_hash = Set(Some(hash));
    if keep.is_none() {
        row.email_confirmed_at = Set(Some(user.email_confirmed_at.unwrap_or(now)));
    }
    row.updated_at = Set(now);
    row.update(tx).await?;
    end_access(core, tx, user, keep).await
}

/// Ends the person's sessions, except that of `keep`, and the links that could set a password or change the
/// address.
pub async fn end_access(
    core: &Core,
    tx: &Transaction,
    user: &users::Model,
    keep: Option<&Person>,
) -> Result<()> {
    links::withdraw(core, tx, user.id, Purpose::Reset).await?;
    links::withdraw_others(core, tx, user.id, &user.email).await?;
    end_sessions(core, tx, user.id, keep).await
}

/// Ends the person's sessions, except all generations of `keep`'s.
pub async fn end_sessions(core: &Core, tx: &Transaction, user: UserId, keep: Option<&Person>) -> Result<()> {
    queries::revoke_sessions(tx, user, keep.map(|person| person.session), core.clock.now()).await?;
    delete_challenges(tx, user).await
}

/// Mails a link to a new address. Using the link changes the account's address.
///
/// # Errors
/// `SIGN_IN_FAILED` for a wrong password; `VALIDATION_FAILED`; `RATE_LIMITED`.
pub async fn change_email(
    request: &Request,
    person: &Person,
    email: &str,
    password: Option<&SecretString>,
) -> Result<()> {
    let (core, email) = (&request.core, email.trim());
    if !is_email(email) {
        let detail = format!("`{email}` is not a valid e-mail address.");
        return Err(Problem::invalid_parameter("email", "NOT_ALLOWED", detail));
    }
    let user = require_proof(request, person, password).await?;
    throttle::charge(core, &[Key::mail(email)]).await?;
    let tx = request.begin().await?;
    let user = lock_unchanged(&tx, &user).await?;
    let taken = by_email(&tx, email).await?.is_some_and(|other| other.id != user.id);
    if !taken {
        links::send(core, &tx, &user, Purpose::Confirm, email).await?;
    }
    record_personal(
        &tx,
        request,
        PersonalEntry::done("changeEmail", user.id, json!({ "requested": email })).by(&user.name),
    );
    Ok(tx.commit().await?)
}

/// Changes the name.
pub async fn change_name(request: &Request, person: &Person, name: &str) -> Result<()> {
    let (core, name) = (&request.core, name.trim());
    if !is_name(name) {
        return Err(Problem::invalid_parameter("name", "NOT_ALLOWED", NAME_RULE));
    }
    let tx = request.begin().await?;
    let user = by_id(&tx, person.id).await?;
    let mut row = user.clone().into_active_model();
    row.name = Set(name.to_owned());
    row.updated_at = Set(core.clock.now());
    row.update(&tx).await?;
    announce(core, &tx, user.id).await?;
    record_personal(
        &tx,
        request,
        PersonalEntry::done("changeName", user.id, json!({ "name": name })).by(&user.name),
    );
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(())
}

/// Checks the person's password, if they have one: a session left open must not be enough to take over the
/// account. Returns the person as they were when the check began, because comparing takes a while.
pub async fn require_password(
    request: &Request,
    user: UserId,
    password: Option<&SecretString>,
) -> Result<users::Model> {
    let core = &request.core;
    let user = by_id(core.db.read(), user).await?;
    let Some(stored) = user.password_hash.as_deref() else { return Ok(user) };
    let wrong = || Problem::new(Code::SignInFailed, "The password is incorrect.");
    let password = password.ok_or_else(wrong)?;
    let counter = Key::password(user.id);
    throttle::charge(core, std::slice::from_ref(&counter)).await?;
    if !core.access.passwords.verify(password, Some(stored)).await.map_err(Problem::internal)? {
        return Err(wrong());
    }
    throttle::forgive(&core.db.installation(), &[counter]).await?;
    Ok(user)
}

/// Requires the password or, for an account without one, a recent sign-in: a session that was left open must not be
/// enough to take over the account.
pub async fn require_proof(
    request: &Request,
    person: &Person,
    password: Option<&SecretString>,
) -> Result<users::Model> {
    let user = require_password(request, person.id, password).await?;
    if user.password_hash.is_none() && !is_recent(&request.core, person.session).await? {
        let detail = "Your account has no password, so this requires a sign-in within the last ten minutes. Sign out, sign \
                      in again, and try again.";
        return Err(Problem::new(Code::SignInAgain, detail));
    }
    Ok(user)
}

pub fn check_password(new: &SecretString, email: &str, argument: &str) -> Result<()> {
    password::check_rules(new, email).map_err(|rule| {
        let detail = format!("Password refused: {rule}.");
        Problem::invalid_parameter(argument, "NOT_ALLOWED", detail)
    })
}
