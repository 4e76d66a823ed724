//! Sessions: how a person stays signed in.
//!
//! A browser's session is a cookie (`browser.rs`). A program's has two tokens. The access token is a JWT that lasts a
//! few minutes. The refresh token works once: using it opens the next generation of the same family, with its own
//! refresh token. If a refresh token is used a second time, either it or the answer was stolen. No one can tell
//! which of the two holders is the thief, so the whole family ends, and the person is notified. That is why used
//! generations are kept until they would have expired.
//!
//! For [`GRACE`] after its use the client that used it may use a token again, in case an answer was lost or several
//! tabs refreshed at once. It gets the same heir each time, so one token never has two. The heir's token isn't
//! stored anywhere: it is derived from the used token and the key file, and no one without both can derive it
//! again. If the answer was stolen rather than lost, two parties have the heir, and the one who uses it second,
//! after the grace period, ends the family.

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
            users::{by_id, hold},
        },
        entity::{sessions, users},
    },
};

/// How long a used refresh token is accepted again: its answer may have got lost. A thief has no more time than that.
const GRACE: Duration = Duration::from_secs(10);

/// Where a sign-in came from, as shown in the person's list of sessions.
#[derive(Clone, Debug, Default)]
pub struct SignInOrigin {
    /// The IP address.
    pub ip: Option<IpAddr>,
    /// The browser's User-Agent.
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
    /// The person who signed in.
    pub user: UserId,
    /// The session.
    pub session: SessionId,
    /// The token that requests carry.
    pub access_token: SecretString,
    /// When it expires.
    pub access_token_expires_at: Timestamp,
    /// The token that renews the session, once.
    pub refresh_token: SecretString,
    /// When it expires.
    pub refresh_token_expires_at: Timestamp,
}

/// Opens a session, if the person's credentials are still those that they proved.
///
/// # Errors
/// `SIGN_IN_FAILED` for a disabled account, or one whose password or second factor has changed since.
pub async fn open_for(request: &Request, known: &users::Model) -> Result<SignedIn> {
    let (core, client) = (&request.core, SignInOrigin::of(request));
    let tx = request.begin().await?;
    let (user, signed_in) = opened(core, &tx, known, &client).await?;
    note(core, &tx, "signIn", &user, signed_in.session, &client);
    tx.commit().await?;
    Ok(signed_in)
}

/// Opens a session on the operator's behalf, for a person who has proved nothing. The audit log says so.
///
/// # Errors
/// `SIGN_IN_FAILED` for a disabled account.
pub async fn create_session(core: &Core, user: UserId, client: SignInOrigin) -> Result<SignedIn> {
    let known = by_id(core.db.read(), user).await?;
    let tx = core.db.begin().await?;
    let (user, signed_in) = opened(core, &tx, &known, &client).await?;
    let entry = PersonalEntry::done("createSession", user.id, json!({ "session": signed_in.session }));
    record_personal(&tx, Origin::operator(core), entry);
    tx.commit().await?;
    Ok(signed_in)
}

async fn opened(
    core: &Core,
    tx: &Transaction,
    known: &users::Model,
    client: &SignInOrigin,
) -> Result<(users::Model, SignedIn)> {
    let user = admissible(tx, known).await?;
    let token = Token::generate(TokenKind::Refresh);
    let signed_in = open(core, tx, user.id, (new_family(), 0), token, client).await?;
    Ok((user, signed_in))
}

/// A name for the generations of one sign-in.
pub fn new_family() -> String {
    uuid::Uuid::from_bytes(crate::core::sealing::random_bytes()).to_string()
}

/// [`hold_unchanged`], unless the account is disabled.
pub async fn admissible(tx: &Transaction, known: &users::Model) -> Result<users::Model> {
    let user = hold_unchanged(tx, known).await?;
    if user.disabled_at.is_some() {
        return Err(Problem::new(Code::SignInFailed, "The account is disabled."));
    }
    Ok(user)
}

/// Locks the person until the transaction ends, if their credentials are still those they proved. Comparing a
/// password takes a while, and one that is replaced meanwhile must not let anyone in.
pub async fn hold_unchanged(tx: &Transaction, known: &users::Model) -> Result<users::Model> {
    let user = hold(tx, known.id).await?;
    let credentials = |user: &users::Model| (user.password_hash.clone(), user.totp_confirmed_at);
    if credentials(&user) == credentials(known) {
        return Ok(user);
    }
    Err(Problem::new(Code::SignInFailed, "The account has changed in the meantime. Sign in again."))
}

/// Renews a session with its refresh token.
///
/// # Errors
/// `UNAUTHENTICATED` for an unknown, revoked, or used token; `TOKEN_EXPIRED` for one that came too late.
pub async fn refresh_session(request: &Request, token: &str) -> Result<SignedIn> {
    let (core, client) = (&request.core, SignInOrigin::of(request));
    let unknown = || Problem::new(Code::Unauthenticated, "The refresh token is unknown, used, or revoked.");
    let text = Zeroizing::new(token.to_owned());
    let token = Token::parse_kind(TokenKind::Refresh, token).ok_or_else(unknown)?;
    let tx = request.begin().await?;
    let session = by_token(&tx, token.hash).await?.ok_or_else(unknown)?;
    // Everyone who opens or ends sessions locks the person until the end. So of two concurrent refreshes the
    // second sees the first, and ending a session also ends its newest generation.
    let user = hold(&tx, session.user_id).await?;
    let session = by_token(&tx, token.hash).await?.ok_or_else(unknown)?;
    if user.disabled_at.is_some() {
        return Err(unknown());
    }
    let later = later(&tx, &session).await?;
    if let Some(heir) = later.first() {
        let is_open = session.revoked_at.is_none() && heir.revoked_at.is_none();
        let again = match later.len() {
            1 if is_open && is_same_use(core, heir, &client) => heir_again(core, &text, heir),
            _ => None,
        };
        let Some(refresh_token) = again else {
            return Err(reused(request, tx, &user, (&session, &later)).await?);
        };
        tx.rollback().await?;
        return signed_in(core, heir, refresh_token);
    }
    if session.revoked_at.is_some() {
        return Err(unknown());
    }
    if session.expires_at <= core.clock.now() {
        return Err(Problem::new(Code::TokenExpired, "The session has ended. Sign in again."));
    }
    let generation = session.generation + 1;
    let heir = heir_tokens(core, &text, &session.family, generation).next();
    let heir = heir.unwrap_or_else(|| Token::generate(TokenKind::Refresh));
    let signed_in = open(core, &tx, user.id, (session.family, generation), heir, &client).await?;
    note(core, &tx, "refreshSession", &user, signed_in.session, &client);
    tx.commit().await?;
    Ok(signed_in)
}

/// The tokens that can follow a used one: one for each key in the key file, the active key's first.
fn heir_tokens(
    core: &Core,
    used: &str,
    family: &str,
    generation: i64,
) -> impl Iterator<Item = (SecretString, TokenHash)> {
    let material: [&[u8]; 3] = [used.as_bytes(), family.as_bytes(), &generation.to_be_bytes()];
    let secrets: Vec<_> = core.keys.current().derive("refresh token", &material).collect();
    secrets.into_iter().map(|secret| Token::of_secret(TokenKind::Refresh, secret))
}

/// Derives the token of an existing heir again from the used one.
fn heir_again(core: &Core, used: &str, heir: &sessions::Model) -> Option<SecretString> {
    let known = TokenHash::from_slice(&heir.token_hash)?;
    let mut tokens = heir_tokens(core, used, &heir.family, heir.generation);
    tokens.find(|(_, hash)| *hash == known).map(|(token, _)| token)
}

/// Whether a repeated use is likely the same client, whose first answer was lost or that refreshed in two tabs: it
/// comes soon after the first use, from the same browser. The browser that signed in doesn't matter: it may have been
/// updated since.
fn is_same_use(core: &Core, heir: &sessions::Model, client: &SignInOrigin) -> bool {
    heir.created_at.plus(GRACE) > core.clock.now()
        && heir.user_agent == shortened(client.user_agent.as_deref())
}

/// Handles the reuse of a token: ends the family and tells the person, once.
async fn reused(
    request: &Request,
    tx: Transaction,
    user: &users::Model,
    (session, later): (&sessions::Model, &[sessions::Model]),
) -> Result<Problem> {
    let core = &request.core;
    let refused = Problem::new(Code::Unauthenticated, "The refresh token is unknown, used, or revoked.");
    if later.iter().all(|heir| heir.revoked_at.is_some()) {
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
    hold(&tx, person.id).await?;
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

/// Writes the audit entry for a session opened or renewed.
pub fn note(
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
    hold(&tx, person.id).await?;
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
    /// Whose.
    pub user: UserId,
    /// What proves that a request belongs to it.
    pub kind: SessionKind,
    /// Names the sign-in.
    pub family: String,
    /// How often it has been refreshed.
    pub generation: i64,
    /// The hash of the refresh token or the cookie.
    pub token: TokenHash,
    /// When it ends.
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
        user_agent: Set(shortened(client.user_agent.as_deref())),
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

/// How long a sign-in counts as recent: a thief of a session can't change how its owner signs in.
const RECENT: Duration = Duration::from_mins(10);

/// Whether the person has signed in recently, however often the session was renewed since.
pub async fn is_recent(core: &Core, session: SessionId) -> Result<bool> {
    is_since(core, session, core.clock.now().minus(RECENT)).await
}

/// The later generations of the session's family, oldest first.
#[expect(clippy::disallowed_methods, reason = "a family belongs to one person")]
async fn later(db: &impl ConnectionTrait, session: &sessions::Model) -> Result<Vec<sessions::Model>> {
    let later = sessions::Entity::find()
        .filter(sessions::Column::Family.eq(session.family.as_str()))
        .filter(sessions::Column::Generation.gt(session.generation))
        .order_by_asc(sessions::Column::Generation);
    Ok(later.all(db).await?)
}

fn shortened(user_agent: Option<&str>) -> Option<String> {
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
