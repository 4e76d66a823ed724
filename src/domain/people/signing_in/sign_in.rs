//! Signing in: password, then second factor.
//!
//! Every attempt is charged first (`throttle.rs`). Refusing an unknown address takes as long as refusing a known one,
//! and as many statements. A person with a second factor gets a challenge instead of a session: a token, valid for five
//! minutes, that can only be completed with a code.

use std::time::Duration;

use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, sea_query::Expr};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{
    browser::{self, InBrowser},
    factor, queries,
    sessions::{lock_admissible, lock_unchanged, open_for},
    throttle::{self, Attempt, Key},
};
use crate::{
    base::{
        enums::SessionKind,
        ids::UserId,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core, Request,
        access::token::{Token, TokenHash, TokenKind},
        audit::{self, Origin, PersonalEntry, record_personal},
        request_notes::RequestNotes,
        store::{
            Transaction,
            sql::{InstallationSql, RunWritingSql},
        },
    },
    domain::people::{
        SignInOrigin, SignedIn,
        accounts::{
            letters::{Notice, notify},
            users::{by_email, by_id},
        },
        entity::users,
    },
};

/// How long a challenge is valid. Short, as it could be stolen.
const CHALLENGE_TTL: Duration = Duration::from_mins(5);
/// How long the code from a provider's sign-in is valid. Short, as it stays in the browser's history.
const CODE_TTL: Duration = Duration::from_mins(1);
/// How long the code in an operator's link is valid. Short, as others may see it.
const LINK_TTL: Duration = Duration::from_mins(10);

/// The result of a correct password.
#[derive(Debug)]
pub enum SignInResult {
    Session(SessionCredentials),
    /// A second factor is required.
    Challenge(Challenge),
}

/// The credentials of a new session.
#[derive(Debug)]
pub enum SessionCredentials {
    /// A program's, with tokens.
    Tokens(SignedIn),
    /// A browser's, with a cookie.
    Browser(InBrowser),
}

/// A sign-in waiting for its second factor.
#[derive(Debug)]
pub struct Challenge {
    /// The token to send with the code. Shown only once.
    pub token: SecretString,
    pub expires_at: Timestamp,
}

/// The step that a challenge row waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    SecondFactor,
    Exchange,
}

impl Awaited {
    const fn parts(self) -> (&'static str, TokenKind) {
        match self {
            Self::SecondFactor => ("SECOND_FACTOR", TokenKind::Challenge),
            Self::Exchange => ("CODE", TokenKind::Code),
        }
    }
}

/// How many requests a password comparison counts as while an IP address or account is throttled, so that guessing is
/// costly.
const COMPARING: u32 = 10;

/// Signs a person in, or asks for their second factor.
///
/// # Errors
/// `SIGN_IN_FAILED`, regardless of the reason; `RATE_LIMITED`.
pub async fn sign_in(
    request: &Request,
    kind: SessionKind,
    email: &str,
    password: &SecretString,
) -> Result<SignInResult> {
    let core = &request.core;
    let user = by_email(core.db.read(), email).await?;
    let is_known = is_known_client(request, user.as_ref()).await?;
    let attempt = throttle::charge_sign_in(core, email, request.ip).await?;
    let id = user.as_ref().map(|user| user.id);
    let attempt = match attempt {
        Attempt { put_off: Some(put_off), wait } if !may_be_compared(request) => {
            record_failure(request, id, "signIn", wait);
            return Err(put_off);
        }
        attempt => attempt,
    };
    let stored = user.as_ref().and_then(|user| user.password_hash.as_deref());
    let matches = core.access.passwords.verify(password, stored).await.map_err(Problem::internal)?;
    let is_free = attempt.put_off.is_none();
    let good = |user: &users::Model| matches && user.disabled_at.is_none() && (is_free || is_known);
    let Some(mut user) = user.filter(good) else {
        record_failure(request, id, "signIn", attempt.wait);
        return Err(attempt.put_off.unwrap_or_else(refused));
    };
    let runner = core.db.installation();
    throttle::forgive(&runner, &[Key::pair(email, request.ip), Key::account(email)]).await?;
    if is_free {
        throttle::refund(&runner, &Key::address(request.ip)).await?;
    }
    if user.password_hash.as_deref().is_some_and(|stored| core.access.passwords.is_outdated(stored)) {
        rehash(core, &mut user, password).await?;
    }
    admit(request, kind, &user).await
}

/// Charges the IP address for a password comparison, which is as expensive as many requests. Applies while an IP
/// address or account is throttled, to known and unknown clients alike.
fn may_be_compared(request: &Request) -> bool {
    let notes = RequestNotes::default();
    let Some(limits) = &request.core.rate_limits else { return true };
    (0..COMPARING).all(|_| limits.charge_address(request.ip, &notes).is_ok())
}

fn refused() -> Problem {
    Problem::new(Code::SignInFailed, "The e-mail address or password is incorrect.")
}

/// Whether the account has had a session from this IP address.
async fn is_known_client(request: &Request, user: Option<&users::Model>) -> Result<bool> {
    let ip = request.ip.map(|ip| ip.to_string()).unwrap_or_default();
    queries::has_session_from(&request.core, user.map(|user| user.id), ip).await
}

/// Writes the audit entry for a failed attempt, and logs throttled ones.
fn record_failure(request: &Request, user: Option<UserId>, operation: &'static str, wait: Duration) {
    if let Some(user) = user.filter(|_| !wait.is_zero()) {
        tracing::warn!(user = user.0, wait_seconds = wait.as_secs(), operation, "sign_in.throttled");
    }
    let from = (request.ip, request.id.as_str());
    audit::refused_account(&request.core, operation, user, Code::SignInFailed, from);
}

/// Stores the password's hash at the current cost, unless the password has been replaced in the meantime.
#[expect(clippy::disallowed_methods, reason = "a person belongs to no organization")]
async fn rehash(core: &Core, user: &mut users::Model, password: &SecretString) -> Result<()> {
    let hash = core.access.passwords.hash(password).await.map_err(Problem::internal)?;
    let stored = users::Entity::update_many()
        .col_expr(users::Column::PasswordHash, Expr::value(hash.as_str()))
        .filter(users::Column::Id.eq(user.id))
        .filter(users::Column::PasswordHash.eq(user.password_hash.clone()))
        .exec(core.db.writer())
        .await?;
    if stored.rows_affected == 1 {
        user.password_hash = Some(hash);
    }
    Ok(())
}

/// Opens a session for a person whose first factor is proven, or a challenge if they have a second one.
pub async fn admit(request: &Request, kind: SessionKind, user: &users::Model) -> Result<SignInResult> {
    let core = &request.core;
    if user.totp_confirmed_at.is_some() {
        let tx = request.begin().await?;
        lock_unchanged(&tx, user).await?;
        let (token, expires_at) =
            challenge(core, &tx, user.id, (Awaited::SecondFactor, CHALLENGE_TTL)).await?;
        tx.commit().await?;
        return Ok(SignInResult::Challenge(Challenge { token, expires_at }));
    }
    Ok(SignInResult::Session(enter(request, kind, user).await?))
}

async fn enter(request: &Request, kind: SessionKind, user: &users::Model) -> Result<SessionCredentials> {
    Ok(match kind {
        SessionKind::Tokens => SessionCredentials::Tokens(open_for(request, user).await?),
        SessionKind::Browser => SessionCredentials::Browser(browser::open_for(request, user).await?),
    })
}

/// Completes a sign-in with a code from the second factor or a recovery code.
///
/// # Errors
/// `LINK_INVALID` for a challenge that has ended; `SIGN_IN_FAILED` for a wrong code; `RATE_LIMITED`.
pub async fn complete_sign_in(
    request: &Request,
    kind: SessionKind,
    challenge: &SecretString,
    code: &SecretString,
) -> Result<SessionCredentials> {
    let core = &request.core;
    let hash = hash_of(challenge, Awaited::SecondFactor)?;
    let awaited = (Awaited::SecondFactor.parts().0, hash);
    let challenged = queries::challenged(&core.db.installation(), awaited, core.clock.now()).await?;
    let user = awaiting(core.db.read(), challenged).await?;
    let wait = factor::charge(core, user.id, code).await?;
    let tx = request.begin().await?;
    let user = by_id(&tx, user.id).await?;
    let Some(proof) = factor::check(core, &tx, &user, code).await? else {
        tx.rollback().await?;
        record_failure(request, Some(user.id), "completeSignIn", wait);
        return Err(Problem::new(Code::SignInFailed, "The code is incorrect or was already used."));
    };
    use_up(core, &tx, hash).await?;
    throttle::forgive(&tx, &[Key::second_factor(user.id)]).await?;
    let client = SignInOrigin::of(request);
    let changes = if proof == factor::Proof::RecoveryCode {
        notify(core, &tx, &user, &user.email, Notice::RecoveryCodeUsed, &client);
        json!({ "recovery_code": "used" })
    } else {
        json!({})
    };
    let entry = PersonalEntry::done("completeSignIn", user.id, changes).by(&user.name);
    record_personal(&tx, request, entry);
    tx.commit().await?;
    enter(request, kind, &user).await
}

/// Issues a code for a person who signed in at a provider. [`exchange`] accepts it once.
pub async fn issue_code(core: &Core, user: UserId) -> Result<SecretString> {
    Ok(challenge(core, &core.db.installation(), user, (Awaited::Exchange, CODE_TTL)).await?.0)
}

/// Issues a code for a link that the operator hands over. It signs in a person without a password, which the audit log
/// records. A second factor is still required. Returns the code and its expiry.
///
/// # Errors
/// `SIGN_IN_FAILED` for a disabled account.
pub async fn create_link(core: &Core, user: UserId) -> Result<(SecretString, Timestamp)> {
    let known = by_id(core.db.read(), user).await?;
    let tx = core.db.begin().await?;
    let user = lock_admissible(&tx, &known).await?;
    let issued = challenge(core, &tx, user.id, (Awaited::Exchange, LINK_TTL)).await?;
    let entry = PersonalEntry::done("createSignInLink", user.id, json!({}));
    record_personal(&tx, Origin::operator(core), entry);
    tx.commit().await?;
    Ok(issued)
}

/// Exchanges the code from a provider's sign-in or an operator's link for a session or a challenge.
///
/// # Errors
/// `LINK_INVALID`; `RATE_LIMITED`.
pub async fn exchange(request: &Request, kind: SessionKind, code: &SecretString) -> Result<SignInResult> {
    let core = &request.core;
    let address = Key::address(request.ip);
    throttle::charge(core, std::slice::from_ref(&address)).await?;
    let hash = hash_of(code, Awaited::Exchange)?;
    let tx = request.begin().await?;
    let awaited = (Awaited::Exchange.parts().0, hash);
    let challenged = queries::challenged(&tx, awaited, core.clock.now()).await?;
    let user = awaiting(&tx, challenged).await?;
    use_up(core, &tx, hash).await?;
    throttle::refund(&tx, &address).await?;
    let entry = PersonalEntry::done("exchangeSignInCode", user.id, json!({})).by(&user.name);
    record_personal(&tx, request, entry);
    tx.commit().await?;
    admit(request, kind, &user).await
}

async fn challenge(
    core: &Core,
    runner: &impl RunWritingSql<Sql = InstallationSql>,
    user: UserId,
    (awaited, ttl): (Awaited, Duration),
) -> Result<(SecretString, Timestamp)> {
    let (kind, token_kind) = awaited.parts();
    let (token, hash) = Token::generate(token_kind);
    let now = core.clock.now();
    let expires_at = now.plus(ttl);
    queries::insert_challenge(runner, user, (kind, hash), (now, expires_at)).await?;
    Ok((token, expires_at))
}

fn hash_of(token: &SecretString, awaited: Awaited) -> Result<TokenHash> {
    let token = Token::parse_kind(awaited.parts().1, token.expose_secret().trim());
    Ok(token.ok_or_else(over)?.hash)
}

/// The person of a sign-in that is still open.
async fn awaiting(db: &impl ConnectionTrait, challenged: Option<UserId>) -> Result<users::Model> {
    let user = by_id(db, challenged.ok_or_else(over)?).await?;
    if user.disabled_at.is_some() { Err(over()) } else { Ok(user) }
}

/// Uses up a challenge. If two requests do so at once, only one succeeds.
async fn use_up(core: &Core, tx: &Transaction, hash: TokenHash) -> Result<()> {
    let used = queries::use_challenge(tx, hash, core.clock.now()).await?;
    if used == 1 { Ok(()) } else { Err(over()) }
}

fn over() -> Problem {
    Problem::new(Code::LinkInvalid, "This sign-in has ended. Start again.")
}
