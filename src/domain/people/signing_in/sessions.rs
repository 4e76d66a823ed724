//! Sessions, which keep a person signed in.
//!
//! A browser's session is a cookie (`browser.rs`). A program's session has two tokens. The access token is a JWT that
//! is valid for a few minutes. The refresh token works once: using it opens the next generation of the same family,
//! with its own refresh token. If a refresh token is used a second time, either it or the response was stolen. It is
//! unknown which of the two holders is the thief, so the whole family ends, and the person is notified. Therefore used
//! generations are kept until they would have expired.
//!
//! For [`GRACE`] after its use, the same client may use a token again, in case a response was lost or several tabs
//! refreshed at once. It gets the same successor each time, so that a token never has two. The successor's token isn't
//! stored anywhere: it is derived from the used token and the key file, and can't be derived without both. If the
//! response was stolen rather than lost, two parties have the successor, and the second one to use it, after the grace
//! period, ends the family.

use std::{net::IpAddr, time::Duration};

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, NotSet, QueryFilter, QueryOrder, Set,
    sea_query::Expr,
};
use secrecy::SecretString;
use serde_json::json;
use zeroize::Zeroizing;

use super::queries::is_since;
use crate::{
    base::{
        enums::SessionKind,
        ids::{SessionId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core, Request,
        access::{
            Caller, Person,
            token::{Token, TokenHash, TokenKind},
        },
        audit::{Origin, PersonalEntry, record_personal},
        store::Transaction,
    },
    domain::people::{
        accounts::{
            credentials::end_sessions,
            letters::{Notice, notify},
            users::{by_id, lock_user},
        },
        entity::{sessions, users},
    },
};

/// How long a used refresh token is accepted again, because its response may have been lost. Short, as it also helps a
/// thief.
const GRACE: Duration = Duration::from_secs(10);

/// The origin of a sign-in, as shown in the person's list of sessions.
#[derive(Clone, Debug, Default)]
pub struct SignInOrigin {
    pub ip: Option<IpAddr>,
    pub user_agent: Option<String>,
    /// The request id, as in the response and the log.
    pub request_id: String,
}

impl SignInOrigin {
    /// The origin of a request.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        Self { ip: request.ip, user_agent: request.user_agent.clone(), request_id: request.id.clone() }
    }
}

/// The tokens of a session. Shown only once.
#[derive(Debug)]
pub struct SignedIn {
    pub user: UserId,
    pub session: SessionId,
    /// The token that requests carry.
    pub access_token: SecretString,
    pub access_token_expires_at: Timestamp,
    /// The token that renews the session, once.
    pub refresh_token: SecretString,
    pub refresh_token_expires_at: Timestamp,
}

/// Opens a session if the person's credentials have not changed since they were checked.
///
/// # Errors
/// `SIGN_IN_FAILED` for a disabled account, or one whose password or second factor has changed since.
pub async fn open_for(request: &Request, known: &users::Model) -> Result<SignedIn> {
    let (core, client) = (&request.core, SignInOrigin::of(request));
    let tx = request.begin().await?;
    let (user, signed_in) = open_first(core, &tx, known, &client).await?;
    record_session(core, &tx, "signIn", &user, signed_in.session, &client);
    tx.commit().await?;
    Ok(signed_in)
}

/// Opens a session on the operator's behalf, without proof by the person. The audit log records it as such.
///
/// # Errors
/// `SIGN_IN_FAILED` for a disabled account.
pub async fn create_session(core: &Core, user: UserId, client: SignInOrigin) -> Result<SignedIn> {
    let known = by_id(core.db.read(), user).await?;
    let tx = core.db.begin().await?;
    let (user, signed_in) = open_first(core, &tx, &known, &client).await?;
    let entry = PersonalEntry::done("createSession", user.id, json!({ "session": signed_in.session }));
    record_personal(&tx, Origin::operator(core), entry);
    tx.commit().await?;
    Ok(signed_in)
}

async fn open_first(
    core: &Core,
    tx: &Transaction,
    known: &users::Model,
    client: &SignInOrigin,
) -> Result<(users::Model, SignedIn)> {
    let user = lock_admissible(tx, known).await?;
    let token = Token::generate(TokenKind::Refresh);
    let signed_in = open(core, tx, user.id, (new_family(), 0), token, client).await?;
    Ok((user, signed_in))
}

/// A name for the generations of one sign-in.
pub fn new_family() -> String {
    uuid::Uuid::from_bytes(crate::core::sealing::random_bytes()).to_string()
}

/// [`lock_unchanged`] that also refuses a disabled account.
pub async fn lock_admissible(tx: &Transaction, known: &users::Model) -> Result<users::Model> {
    let user = lock_unchanged(tx, known).await?;
    if user.disabled_at.is_some() {
        return Err(Problem::new(Code::SignInFailed, "The account is disabled."));
    }
    Ok(user)
}

/// Locks the person until the transaction ends, if their credentials have not changed since they were checked.
/// Comparing a password takes a while, and a password that is replaced meanwhile must not be accepted.
pub async fn lock_unchanged(tx: &Transaction, known: &users::Model) -> Result<users::Model> {
    let user = lock_user(tx, known.id).await?;
    let credentials = |user: &users::Model| (user.password_hash.clone(), user.totp_confirmed_at);
    if credentials(&user) == credentials(known) {
        return Ok(user);
    }
    Err(Problem::new(Code::SignInFailed, "The account has changed in the meantime. Sign in again."))
}

/// Renews a session with its refresh token.
///
/// # Errors
/// `UNAUTHENTICATED` for an unknown, revoked, or used token; `TOKEN_EXPIRED` for an expired one.
pub async fn refresh_session(request: &Request, token: &str) -> Result<SignedIn> {
    let (core, client) = (&request.core, SignInOrigin::of(request));
    let unknown = || Problem::new(Code::Unauthenticated, "The refresh token is unknown, used, or revoked.");
    let text = Zeroizing::new(token.to_owned());
    let token = Token::parse_kind(TokenKind::Refresh, token).ok_or_else(unknown)?;
    let tx = request.begin().await?;
    let session = by_token(&tx, token.hash).await?.ok_or_else(unknown)?;
    // Opening and ending sessions locks the person. So of two concurrent refreshes the second sees the first, and
    // ending a session also ends its newest generation.
    let user = lock_user(&tx, session.user_id).await?;
    let session = by_token(&tx, token.hash).await?.ok_or_else(unknown)?;
    if user.disabled_at.is_some() {
        return Err(unknown());
    }
    let later = later_generations(&tx, &session).await?;
    if let Some(successor) = later.first() {
        let is_open = session.revoked_at.is_none() && successor.revoked_at.is_none();
        let again = match later.len() {
            1 if is_open && is_same_use(core, successor, &client) => {
                derive_successor_again(core, &text, successor)
            }
            _ => None,
        };
        let Some(refresh_token) = again else {
            return Err(end_reused_family(request, tx, &user, (&session, &later)).await?);
        };
        tx.rollback().await?;
        return signed_in(core, successor, refresh_token);
    }
    if session.revoked_at.is_some() {
        return Err(unknown());
    }
    if session.expires_at <= core.clock.now() {
        return Err(Problem::new(Code::TokenExpired, "The session has ended. Sign in again."));
    }
    let generation = session.generation + 1;
    let successor = successor_tokens(core, &text, &session.family, generation).next();
    let successor = successor.unwrap_or_else(|| Token::generate(TokenKind::Refresh));
    let signed_in = open(core, &tx, user.id, (session.family, generation), successor, &client).await?;
    record_session(core, &tx, "refreshSession", &user, signed_in.session, &client);
    tx.commit().await?;
    Ok(signed_in)
}

/// The possible successors of a used token: one for each key in the key file, the active key's first.
fn successor_tokens(
    core: &Core,
    used: &str,
    family: &str,
    generation: i64,
) -> impl Iterator<Item = (SecretString, TokenHash)> {
    let material: [&[u8]; 3] = [used.as_bytes(), family.as_bytes(), &generation.to_be_bytes()];
    let secrets: Vec<_> = core.sealing.current().derive("refresh token", &material).collect();
    secrets.into_iter().map(|secret| Token::of_secret(TokenKind::Refresh, secret))
}

/// Derives the token of an existing successor from the used token again.
fn derive_successor_again(core: &Core, used: &str, successor: &sessions::Model) -> Option<SecretString> {
    let known = TokenHash::from_slice(&successor.token_hash)?;
    let mut tokens = successor_tokens(core, used, &successor.family, successor.generation);
    tokens.find(|(_, hash)| *hash == known).map(|(token, _)| token)
}

/// Whether a repeated use probably comes from the same client, after a lost response or from a second tab: soon after
/// the first use, and from the same browser. The browser that signed in doesn't matter: it may have been updated since.
fn is_same_use(core: &Core, successor: &sessions::Model, client: &SignInOrigin) -> bool {
    successor.created_at.plus(GRACE) > core.clock.now()
        && successor.user_agent == shorten(client.user_agent.as_deref())
}

/// Ends the family of a reused token and notifies the person, once.
async fn end_reused_family(
    request: &Request,
    tx: Transaction,
    user: &users::Model,
    (session, later): (&sessions::Model, &[sessions::Model]),
) -> Result<Problem> {
    let core = &request.core;
    let refused = Problem::new(Code::Unauthenticated, "The refresh token is unknown, used, or revoked.");
    if later.iter().all(|successor| successor.revoked_at.is_some()) {
        // The family had already ended, or its owner had signed out.
        tx.rollback().await?;
        return Ok(refused);
    }
    tracing::warn!(user = session.user_id.0, "session.refresh_token_reused");
    revoke(core, &tx, session.user_id, &session.family).await?;
    notify(core, &tx, user, &user.email, Notice::RefreshTokenReused, &SignInOrigin::of(request));
    let entry = PersonalEntry::done("refreshTokenReused", user.id, json!({ "sessions": "revoked" }));
    record_personal(&tx, request, entry.by(&user.name).through(session.id));
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(refused)
}

/// Ends the current session.
pub async fn sign_out(request: &Request, person: &Person) -> Result<()> {
    end_one(request, person, person.session, "signOut").await
}

/// Ends one of a person's own sessions with all its generations.
///
/// # Errors
/// `NOT_FOUND`, also for another person's session.
pub async fn revoke_session(request: &Request, person: &Person, id: SessionId) -> Result<()> {
    end_one(request, person, id, "revokeSession").await
}

#[expect(clippy::disallowed_methods, reason = "a session belongs to a person, whose id is in the filter")]
async fn end_one(request: &Request, person: &Person, id: SessionId, operation: &'static str) -> Result<()> {
    let core = &request.core;
    let tx = request.begin().await?;
    lock_user(&tx, person.id).await?;
    let found =
        sessions::Entity::find_by_id(id).filter(sessions::Column::UserId.eq(person.id)).one(&tx).await?;
    let gone = || Problem::new(Code::NotFound, format!("You have no session {id}."));
    revoke(core, &tx, person.id, &found.ok_or_else(gone)?.family).await?;
    record_personal(&tx, request, PersonalEntry::done(operation, person.id, json!({ "session": id })));
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    if id == person.session {
        request.sign_out();
    }
    Ok(())
}

/// Writes the audit entry for an opened or renewed session.
pub fn record_session(
    core: &Core,
    tx: &Transaction,
    operation: &'static str,
    user: &users::Model,
    session: SessionId,
    client: &SignInOrigin,
) {
    let origin =
        Origin { core, caller: &Caller::Anonymous, ip: client.ip, request_id: client.request_id.as_str() };
    let entry = PersonalEntry::done(operation, user.id, json!({})).by(&user.name).through(session);
    record_personal(tx, origin, entry);
}

/// Ends a person's other sessions. Doesn't reveal how many there were.
pub async fn revoke_other_sessions(request: &Request, person: &Person) -> Result<()> {
    let core = &request.core;
    let tx = request.begin().await?;
    lock_user(&tx, person.id).await?;
    end_sessions(core, &tx, person.id, Some(person)).await?;
    record_personal(
        &tx,
        request,
        PersonalEntry::done("revokeOtherSessions", person.id, json!({ "sessions": "revoked" })),
    );
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(())
}

/// Opens a generation of a family for a program.
async fn open(
    core: &Core,
    db: &impl ConnectionTrait,
    user: UserId,
    (family, generation): (String, i64),
    (refresh_token, token): (SecretString, TokenHash),
    client: &SignInOrigin,
) -> Result<SignedIn> {
    let expires_at = core.clock.now().plus(core.config.sessions.refresh_token_ttl());
    let new = NewSession { user, kind: SessionKind::Tokens, family, generation, token, expires_at };
    signed_in(core, &insert(core, db, new, client).await?, refresh_token)
}

/// A session to open.
pub struct NewSession {
    pub user: UserId,
    /// How requests prove that they belong to it.
    pub kind: SessionKind,
    pub family: String,
    pub generation: i64,
    /// The hash of the refresh token or the cookie.
    pub token: TokenHash,
    pub expires_at: Timestamp,
}

/// Inserts a session, and removes the person's expired ones.
#[expect(clippy::disallowed_methods, reason = "a session belongs to a person, whose id is in the filter")]
pub async fn insert(
    core: &Core,
    db: &impl ConnectionTrait,
    new: NewSession,
    client: &SignInOrigin,
) -> Result<sessions::Model> {
    let now = core.clock.now();
    sessions::Entity::delete_many()
        .filter(sessions::Column::UserId.eq(new.user))
        .filter(sessions::Column::ExpiresAt.lte(now))
        .exec(db)
        .await?;
    let row = sessions::ActiveModel {
        id: NotSet,
        user_id: Set(new.user),
        family: Set(new.family),
        generation: Set(new.generation),
        kind: Set(new.kind),
        token_hash: Set(new.token.as_bytes().to_vec()),
        user_agent: Set(shorten(client.user_agent.as_deref())),
        ip: Set(client.ip.map(|ip| ip.to_string())),
        created_at: Set(now),
        last_used_at: Set(Some(now)),
        expires_at: Set(new.expires_at),
        revoked_at: Set(None),
    };
    Ok(row.insert(db).await?)
}

/// The person's tokens: the session's refresh token and a new access token.
fn signed_in(core: &Core, session: &sessions::Model, refresh_token: SecretString) -> Result<SignedIn> {
    let (now, ttl) = (core.clock.now(), core.config.sessions.access_token_ttl());
    let access_token =
        core.access.jwt.issue(session.user_id, session.id, now, ttl).map_err(Problem::internal)?;
    Ok(SignedIn {
        user: session.user_id,
        session: session.id,
        access_token: access_token.into(),
        access_token_expires_at: now.plus(ttl),
        refresh_token,
        refresh_token_expires_at: session.expires_at,
    })
}

#[expect(clippy::disallowed_methods, reason = "a refresh token names one session of one person")]
async fn by_token(db: &impl ConnectionTrait, hash: TokenHash) -> Result<Option<sessions::Model>> {
    let same = sessions::Column::TokenHash.eq(hash.as_bytes().to_vec());
    Ok(sessions::Entity::find().filter(same).one(db).await?)
}

/// How long a sign-in counts as recent, so that a stolen session can't change how its owner signs in.
const RECENT: Duration = Duration::from_mins(10);

/// Whether the person has signed in recently. Renewing the session does not count.
pub async fn is_recent(core: &Core, session: SessionId) -> Result<bool> {
    is_since(core, session, core.clock.now().minus(RECENT)).await
}

/// The later generations of the session's family, oldest first.
#[expect(clippy::disallowed_methods, reason = "a family belongs to one person")]
async fn later_generations(
    db: &impl ConnectionTrait,
    session: &sessions::Model,
) -> Result<Vec<sessions::Model>> {
    let later = sessions::Entity::find()
        .filter(sessions::Column::Family.eq(session.family.as_str()))
        .filter(sessions::Column::Generation.gt(session.generation))
        .order_by_asc(sessions::Column::Generation);
    Ok(later.all(db).await?)
}

fn shorten(user_agent: Option<&str>) -> Option<String> {
    user_agent.map(|text| text.chars().take(500).collect())
}

#[expect(clippy::disallowed_methods, reason = "a family belongs to one person")]
pub async fn revoke(core: &Core, db: &impl ConnectionTrait, user: UserId, family: &str) -> Result<()> {
    sessions::Entity::update_many()
        .col_expr(sessions::Column::RevokedAt, Expr::value(core.clock.now().0))
        .filter(sessions::Column::UserId.eq(user))
        .filter(sessions::Column::Family.eq(family))
        .filter(sessions::Column::RevokedAt.is_null())
        .exec(db)
        .await?;
    Ok(())
}
