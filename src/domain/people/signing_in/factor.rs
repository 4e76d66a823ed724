//! The second factor: six-digit codes from an app (TOTP, RFC 6238), and ten recovery codes in case the app is
//! lost.
//!
//! The secret is sealed, and takes effect once a first code has confirmed it. Each code works once: the time
//! step of the last accepted code is stored, and the accepting UPDATE requires a later step, so if two requests
//! send the same code only one succeeds. Recovery codes have 80 random bits; the database stores their hashes.

use std::time::Duration;

use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sha2::{Digest, Sha256};
use totp_rs::{Builder, Totp};

use super::{
    queries,
    throttle::{self, Key},
};
use crate::{
    base::{
        ids::{OrgId, UserId},
        problem::{Code, Problem, Result},
    },
    core::{
        Core, Request,
        access::Person,
        audit::{PersonalEntry, record_personal},
        sealing::{SealContext, random_bytes},
        store::Transaction,
    },
    domain::people::{
        SignInOrigin,
        accounts::{
            credentials::require_proof,
            letters::{Notice, notify},
            users::{by_id, lock_user},
        },
        entity::users,
    },
};

/// Crockford's alphabet: without letters that resemble others or digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A second factor being set up. Shown only once.
#[derive(Debug)]
pub struct Enrolment {
    /// The secret in base32, for typing.
    pub secret: String,
    /// The same secret as a URL, for a QR code.
    pub url: String,
}

/// The code that proved the second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A code from the app.
    Totp,
    /// A recovery code, now used up.
    RecoveryCode,
}

/// The context of a person's sealed secret. A person belongs to no organization.
fn seal_context(user: UserId) -> SealContext<'static> {
    SealContext::new(OrgId(0), "users", user.0, "totp_secret")
}

fn totp(secret: &[u8], email: &str) -> Result<Totp> {
    let account = email.replace(':', "_");
    Builder::new()
        .with_secret(secret.to_vec())
        .with_account_name(account)
        .with_issuer(Some("Muster"))
        .build()
        .map_err(|error| Problem::internal(anyhow::anyhow!("a second factor's secret: {error:?}")))
}

/// Starts setting up a second factor. It takes effect once [`confirm`] has accepted a code; starting again replaces the
/// first attempt. Requires the password or a recent sign-in: otherwise a session that was left open would be enough to
/// lock its owner out permanently.
///
/// # Errors
/// `SIGN_IN_FAILED` for a wrong password; `SIGN_IN_AGAIN`; `CONFLICT` if there already is a second factor;
/// `RATE_LIMITED`.
pub async fn begin(request: &Request, person: &Person, password: Option<&SecretString>) -> Result<Enrolment> {
    let core = &request.core;
    require_proof(request, person, password).await?;
    let tx = request.begin().await?;
    // The lock keeps another request from confirming the old secret meanwhile.
    let user = lock_user(&tx, person.id).await?;
    if user.totp_confirmed_at.is_some() {
        return Err(Problem::new(
            Code::Conflict,
            "The account already has a second factor. Remove it first (`disableTotp`).",
        ));
    }
    let secret: [u8; 20] = random_bytes();
    let totp = totp(&secret, &user.email)?;
    let url = totp.to_url().map_err(|error| Problem::internal(anyhow::anyhow!("{error:?}")))?;
    let mut row = user.into_active_model();
    row.totp_secret_sealed = Set(Some(core.sealing.seal_bytes(&secret, &seal_context(person.id))));
    row.totp_last_step = Set(None);
    row.update(&tx).await?;
    record_personal(
        &tx,
        request,
        PersonalEntry::done("beginTotp", person.id, json!({ "totp_secret": "changed" })),
    );
    tx.commit().await?;
    Ok(Enrolment { secret: totp.secret().to_base32(), url })
}

/// Confirms the second factor and turns it on. Returns recovery codes, which are shown only once.
///
/// # Errors
/// `SIGN_IN_FAILED` for a wrong code; `CONFLICT` if setup was not started; `RATE_LIMITED`.
pub async fn confirm(request: &Request, person: &Person, code: &SecretString) -> Result<Vec<String>> {
    let core = &request.core;
    charge(core, person.id, code).await?;
    let tx = request.begin().await?;
    let user = lock_user(&tx, person.id).await?;
    if user.totp_secret_sealed.is_none() || user.totp_confirmed_at.is_some() {
        return Err(Problem::new(Code::Conflict, "Start setting up a second factor first (`beginTotp`)."));
    }
    if !check_totp(core, &tx, &user, code.expose_secret().trim()).await? {
        return Err(wrong());
    }
    let codes = renew_codes(core, &tx, user.id).await?;
    let mut row = by_id(&tx, person.id).await?.into_active_model();
    row.totp_confirmed_at = Set(Some(core.clock.now()));
    row.updated_at = Set(core.clock.now());
    row.update(&tx).await?;
    throttle::forgive(&tx, &[Key::second_factor(user.id)]).await?;
    notify(core, &tx, &user, &user.email, Notice::SecondFactorOn, &SignInOrigin::of(request));
    record_personal(
        &tx,
        request,
        PersonalEntry::done("confirmTotp", user.id, json!({ "second_factor": true })),
    );
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(codes)
}

/// Removes the second factor.
///
/// # Errors
/// `SIGN_IN_FAILED` for a wrong password or code; `SIGN_IN_AGAIN`; `CONFLICT` without a second factor; `RATE_LIMITED`.
pub async fn disable(
    request: &Request,
    person: &Person,
    password: Option<&SecretString>,
    code: &SecretString,
) -> Result<()> {
    let core = &request.core;
    require_proof(request, person, password).await?;
    let tx = begin_with_proof(request, person, code).await?;
    let user = by_id(&tx, person.id).await?;
    remove(core, &tx, &user).await?;
    notify(core, &tx, &user, &user.email, Notice::SecondFactorOff, &SignInOrigin::of(request));
    record_personal(
        &tx,
        request,
        PersonalEntry::done("disableTotp", user.id, json!({ "second_factor": false })),
    );
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(())
}

/// Removes the secret and the recovery codes.
pub async fn remove(core: &Core, tx: &Transaction, user: &users::Model) -> Result<()> {
    let mut row = user.clone().into_active_model();
    row.totp_secret_sealed = Set(None);
    row.totp_confirmed_at = Set(None);
    row.totp_last_step = Set(None);
    row.updated_at = Set(core.clock.now());
    row.update(tx).await?;
    queries::delete_recovery_codes(tx, user.id).await
}

/// Replaces the recovery codes. The new ones are shown only once.
///
/// # Errors
/// As [`disable`].
pub async fn regenerate(request: &Request, person: &Person, code: &SecretString) -> Result<Vec<String>> {
    let core = &request.core;
    let tx = begin_with_proof(request, person, code).await?;
    let user = by_id(&tx, person.id).await?;
    let codes = renew_codes(core, &tx, person.id).await?;
    notify(core, &tx, &user, &user.email, Notice::RecoveryCodesRenewed, &SignInOrigin::of(request));
    record_personal(
        &tx,
        request,
        PersonalEntry::done("regenerateRecoveryCodes", person.id, json!({ "recovery_codes": "changed" })),
    );
    tx.commit().await?;
    Ok(codes)
}

/// Checks the person's second factor and returns a transaction that has locked the person. The person is locked before
/// their recovery codes: the operator's reset of a second factor uses the same order.
async fn begin_with_proof(request: &Request, person: &Person, code: &SecretString) -> Result<Transaction> {
    let core = &request.core;
    charge(core, person.id, code).await?;
    let tx = request.begin().await?;
    let user = lock_user(&tx, person.id).await?;
    if user.totp_confirmed_at.is_none() {
        return Err(Problem::new(Code::Conflict, "The account has no second factor."));
    }
    check(core, &tx, &user, code).await?.ok_or_else(wrong)?;
    throttle::forgive(&tx, &[Key::second_factor(user.id)]).await?;
    Ok(tx)
}

/// Charges an attempt. Recovery codes can't be guessed, so they are free: an attacker who guesses codes of the app does
/// not block them.
pub async fn charge(core: &Core, user: UserId, code: &SecretString) -> Result<Duration> {
    if is_totp(code.expose_secret()) {
        return throttle::charge(core, &[Key::second_factor(user)]).await;
    }
    Ok(Duration::ZERO)
}

/// Accepts a code of either kind and returns which it was, or None if it is wrong.
pub async fn check(
    core: &Core,
    tx: &Transaction,
    user: &users::Model,
    code: &SecretString,
) -> Result<Option<Proof>> {
    let code = code.expose_secret().trim();
    if is_totp(code) {
        let good = user.totp_confirmed_at.is_some() && check_totp(core, tx, user, code).await?;
        return Ok(good.then_some(Proof::Totp));
    }
    let used = queries::use_recovery_code(tx, user.id, hash(user.id, code), core.clock.now()).await?;
    Ok((used == 1).then_some(Proof::RecoveryCode))
}

fn is_totp(code: &str) -> bool {
    let digits = code.trim().bytes().filter(|byte| *byte != b' ');
    digits.clone().count() == 6 && digits.into_iter().all(|byte| byte.is_ascii_digit())
}

async fn check_totp(core: &Core, tx: &Transaction, user: &users::Model, code: &str) -> Result<bool> {
    let Some(sealed) = &user.totp_secret_sealed else { return Ok(false) };
    let secret = core.sealing.open_bytes(sealed, &seal_context(user.id)).map_err(Problem::internal)?;
    let seconds = u64::try_from(core.clock.now().unix_seconds()).unwrap_or_default();
    let code: String = code.chars().filter(|letter| !letter.is_whitespace()).collect();
    let Some(step) = totp(secret.expose_secret(), &user.email)?.check(&code, seconds) else {
        return Ok(false);
    };
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    Ok(queries::take_step(tx, user.id, step).await? == 1)
}

async fn renew_codes(core: &Core, tx: &Transaction, user: UserId) -> Result<Vec<String>> {
    queries::delete_recovery_codes(tx, user).await?;
    let mut codes = Vec::with_capacity(10);
    for _ in 0..10 {
        let code = recovery_code();
        queries::insert_recovery_code(tx, user, hash(user, &code), core.clock.now()).await?;
        codes.push(code);
    }
    Ok(codes)
}

/// `abcd-efgh-jkmn-pqrs`: 80 bits.
fn recovery_code() -> String {
    let bytes: [u8; 16] = random_bytes();
    let mut code = String::with_capacity(19);
    for (n, byte) in bytes.iter().enumerate() {
        if n > 0 && n % 4 == 0 {
            code.push('-');
        }
        code.push(char::from(ALPHABET[usize::from(byte % 32)]));
    }
    code
}

/// Hashes the code as typed; capitals, spaces, and dashes don't matter.
fn hash(user: UserId, code: &str) -> Vec<u8> {
    let code: String =
        code.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    Sha256::digest(format!("{user}:{code}")).to_vec()
}

fn wrong() -> Problem {
    Problem::new(Code::SignInFailed, "The code is incorrect or was already used.")
}
