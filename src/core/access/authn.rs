//! Turns a bearer token into a [`Caller`], and a caller into a [`Membership`].
//!
//! Both results are cached for two seconds (`cache.rs`), so that a burst of requests asks the database once. A
//! revocation in this process takes effect at once, and one on another replica within those two seconds. Expiry needs
//! no database and is checked every time.
//!
//! A bearer token is recognized by [`recognize`], a browser's cookie only by [`recognize_cookie`], so that neither can
//! stand in for the other (`browser.rs`).
//!
//! Authentication takes two steps: [`recognize`] works without the database, and [`Recognized::caller`] queries it. In
//! between, [`Recognized::has_evidence`] tells whether the token could be made up, so that its request can be charged
//! to a rate limit first.

use std::sync::Arc;

use sea_orm::Value;

use super::{
    Caller, Membership, Person, ServiceToken, browser,
    cache::CachedMembership,
    jwt::{Claims, JwtError, JwtKeys},
    token::{Token, TokenHash, TokenKind},
};
use crate::{
    base::{
        enums::SessionKind,
        ids::{OrgId, SessionId, TokenId, UserId},
        permission::{Permission, PermissionSet},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core, keys,
        store::sql::{InstallationSql, RunSql as _, RunWritingSql as _, installation_sql, row},
    },
};

/// How stale a recorded last use may be, in milliseconds, so that a caller who floods the service costs one write a
/// minute.
pub(super) const LAST_USE_STEP: i64 = 60_000;

/// A token that may be valid, as far as that can be determined without the database.
pub struct Recognized<'b> {
    hash: TokenHash,
    credential: Credential<'b>,
}

enum Credential<'b> {
    /// Found in the cache.
    Known(Caller),
    /// An access token with our signature.
    Signed(Claims),
    /// An access token with an unknown key, which may be a new one.
    UnknownKey { kid: String, bearer: &'b str },
    /// Has the form of a service token.
    Service,
    /// Has the form of a browser's cookie.
    Cookie,
}

/// Reads `bearer` without asking the database.
///
/// # Errors
/// `UNAUTHENTICATED` for a token that can't be valid or was refused recently; `TOKEN_EXPIRED` for an expired access
/// token.
pub fn recognize<'b>(core: &Core, bearer: &'b str) -> Result<Recognized<'b>> {
    let hash = TokenHash::of(bearer);
    // A cookie's token is refused in a header, where the cookie's protection does not apply.
    if bearer.starts_with(TokenKind::Session.prefix()) {
        return Err(unknown());
    }
    if let Some(caller) = core.access.cache.callers.get(&hash) {
        return Ok(Recognized { hash, credential: Credential::Known(caller) });
    }
    if core.access.cache.refused.contains_key(&hash) {
        return Err(unknown());
    }
    let credential = match Token::parse_kind(TokenKind::Service, bearer) {
        Some(_) => Credential::Service,
        None => match (core.access.jwt.verify(bearer, core.clock.now()), JwtKeys::named_key(bearer)) {
            (Err(JwtError::UnknownKey), Some(kid)) => Credential::UnknownKey { kid, bearer },
            (verified, _) => Credential::Signed(verified.map_err(refusal)?),
        },
    };
    Ok(Recognized { hash, credential })
}

/// Reads the token of a browser's cookie without asking the database.
///
/// # Errors
/// `UNAUTHENTICATED` for a token that can't be valid or was refused recently.
pub fn recognize_cookie(core: &Core, token: &str) -> Result<Recognized<'static>> {
    let hash = Token::parse_kind(TokenKind::Session, token).ok_or_else(unknown)?.hash;
    if core.access.cache.refused.contains_key(&hash) {
        return Err(unknown());
    }
    let credential = core.access.cache.callers.get(&hash).map_or(Credential::Cookie, Credential::Known);
    Ok(Recognized { hash, credential })
}

impl Recognized<'_> {
    /// Whether anything but the token's form, which anyone can imitate, shows that it is valid: our signature, or an
    /// earlier valid use.
    #[must_use]
    pub fn has_evidence(&self, core: &Core) -> bool {
        match self.credential {
            Credential::Known(_) | Credential::Signed(_) => true,
            Credential::UnknownKey { .. } | Credential::Service | Credential::Cookie => {
                core.access.cache.is_proven(&self.hash)
            }
        }
    }

    /// The token's caller.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if the token is unknown or revoked, `TOKEN_EXPIRED` if it has expired.
    pub async fn caller(self, core: &Arc<Core>) -> Result<Caller> {
        let Self { hash, credential } = self;
        let found = match credential {
            Credential::Known(caller) => {
                caller.require_current(core.clock.now())?;
                return Ok(caller);
            }
            Credential::Service => service_token(core, hash).await,
            Credential::Cookie => browser::person(core, hash).await,
            Credential::Signed(claims) => person(core, claims).await,
            Credential::UnknownKey { kid, bearer } => match verify_with_new_key(core, &kid, bearer).await {
                Ok(claims) => person(core, claims).await,
                // Not cached: the next lookup may find the key.
                Err(problem) => return Err(problem),
            },
        };
        match &found {
            Ok(caller) => {
                core.access.cache.callers.insert(hash, caller.clone());
                core.access.cache.note_proven(hash);
                caller.require_current(core.clock.now())?;
            }
            Err(problem) if problem.code == Code::Unauthenticated => {
                core.access.cache.refused.insert(hash, ());
                core.access.cache.forget_proven(&hash);
            }
            Err(_) => {}
        }
        found
    }
}

/// Refuses a caller whose credential is no longer valid. Asks the database every time: it is for sockets and
/// subscriptions, which outlive the check of their request.
///
/// # Errors
/// `TOKEN_EXPIRED`; `UNAUTHENTICATED` if it was revoked or its user disabled.
pub async fn require_valid(core: &Arc<Core>, caller: &Caller) -> Result<()> {
    caller.require_current(core.clock.now())?;
    let (now, runner) = (core.clock.now(), core.db.installation());
    let found: Option<i64> = match caller {
        Caller::Anonymous | Caller::LinkedChat(_) | Caller::System => return Ok(()),
        Caller::Token(token) => {
            // The expiry may have been changed and the secret replaced.
            let sql = installation_sql!(
                "SELECT id FROM service_tokens WHERE organization_id = $1 AND id = $2 AND revoked_at IS NULL \
                 AND (expires_at IS NULL OR expires_at > $3) AND (token_hash = $4 \
                 OR (previous_token_hash = $4 AND previous_expires_at > $3))"
            );
            let secret = token.secret.as_bytes().to_vec();
            runner.scalar(sql, [token.org.into(), token.id.into(), now.into(), secret.into()]).await?
        }
        Caller::Person(person) => {
            let sql = installation_sql!(
                "SELECT s.id FROM sessions s JOIN users u ON u.id = s.user_id \
                 WHERE s.id = $1 AND s.user_id = $2 AND s.revoked_at IS NULL AND u.disabled_at IS NULL \
                 AND (s.kind = 'TOKENS' OR s.expires_at > $3)"
            );
            runner.scalar(sql, [person.session.into(), person.id.into(), now.into()]).await?
        }
    };
    found.map(drop).ok_or_else(unknown)
}

/// The membership of `caller` in `org`.
///
/// # Errors
/// `NOT_A_MEMBER`, whether or not the organization exists; `SECOND_FACTOR_REQUIRED`.
pub async fn membership(core: &Arc<Core>, caller: &Caller, org: OrgId) -> Result<Membership> {
    let membership = match caller {
        // A chat's decisions are authorized where they come in (`domain/chat_approvals`).
        Caller::Anonymous | Caller::LinkedChat(_) => None,
        Caller::System => {
            Some(Membership { role: None, permissions: Permission::ALL.iter().copied().collect() })
        }
        Caller::Token(token) if token.org == org => {
            let permissions = token.permissions.intersection(core.policy.token_cap());
            Some(Membership { role: None, permissions })
        }
        Caller::Token(_) => None,
        Caller::Person(person) => match cached_membership(core, person.id, org).await? {
            Some(CachedMembership { lacks_second_factor: true, .. }) => {
                let detail = "This organization requires a second factor; set one up first.";
                return Err(Problem::new(Code::SecondFactorRequired, detail));
            }
            Some(CachedMembership { role, .. }) => {
                Some(Membership { role: Some(role), permissions: core.policy.role_permissions(org, role) })
            }
            None => None,
        },
    };
    membership.ok_or_else(|| Problem::new(Code::NotAMember, "You are not a member of this organization."))
}

row! {
    /// A person in an organization.
    struct Member {
        role: String,
        lacks_second_factor: bool,
    }
}

async fn cached_membership(core: &Arc<Core>, user: UserId, org: OrgId) -> Result<Option<CachedMembership>> {
    if let Some(known) = core.access.cache.roles.get(&(user, org)) {
        return Ok(known);
    }
    let sql = installation_sql!(
        "SELECT m.role, (o.require_second_factor AND u.totp_confirmed_at IS NULL) AS lacks_second_factor \
         FROM members m JOIN organizations o ON o.id = m.organization_id JOIN users u ON u.id = m.user_id \
         WHERE m.organization_id = $1 AND m.user_id = $2"
    );
    let found = match core.db.installation().one(sql, [org.into(), user.into()]).await? {
        Some(Member { role, lacks_second_factor }) => {
            Some(CachedMembership { role: role.parse().map_err(Problem::internal)?, lacks_second_factor })
        }
        None => None,
    };
    core.access.cache.roles.insert((user, org), found);
    Ok(found)
}

row! {
    /// A service token, with the hint and the last use of the given secret.
    struct IssuedToken {
        organization_id: OrgId,
        id: TokenId,
        name: String,
        hint: Option<String>,
        permissions: serde_json::Value,
        expires_at: Option<Timestamp>,
        overlap_ends_at: Option<Timestamp>,
        last_used_at: Option<Timestamp>,
        is_current: bool,
    }
}

/// The service token with this secret: its current secret, or the previous one until the overlap ends.
async fn service_token(core: &Arc<Core>, hash: TokenHash) -> Result<Caller> {
    let sql = installation_sql!(
        "SELECT organization_id, id, name, CASE WHEN token_hash = $1 THEN hint ELSE previous_hint END AS hint, \
         permissions, expires_at, CASE WHEN token_hash = $1 THEN NULL ELSE previous_expires_at END AS overlap_ends_at, \
         CASE WHEN token_hash = $1 THEN last_used_at ELSE previous_last_used_at END AS last_used_at, \
         (token_hash = $1) AS is_current \
         FROM service_tokens WHERE (token_hash = $1 OR previous_token_hash = $1) AND revoked_at IS NULL"
    );
    let row = core.db.installation().one::<IssuedToken>(sql, [hash.as_bytes().to_vec().into()]).await?;
    let row = row.ok_or_else(unknown)?;
    let names: Vec<String> = serde_json::from_value(row.permissions).map_err(Problem::internal)?;
    // The earlier of the two.
    let expires_at = row.expires_at.into_iter().chain(row.overlap_ends_at).min();
    let found = ServiceToken {
        org: row.organization_id,
        id: row.id,
        name: row.name,
        hint: row.hint.unwrap_or_default(),
        // A permission that this version does not know grants nothing.
        permissions: names
            .iter()
            .filter_map(|name| name.parse::<Permission>().ok())
            .collect::<PermissionSet>(),
        expires_at,
        secret: hash,
    };
    let now = core.clock.now();
    let is_live = expires_at.is_none_or(|at| now < at);
    if is_live && row.last_used_at.is_none_or(|last| now.0 - last.0 > LAST_USE_STEP) {
        const THIS: &str = " = $1 WHERE organization_id = $2 AND id = $3 AND ";
        let sql = if row.is_current {
            installation_sql!("UPDATE service_tokens SET last_used_at", THIS, "token_hash = $4")
        } else {
            installation_sql!(
                "UPDATE service_tokens SET previous_last_used_at",
                THIS,
                "previous_token_hash = $4"
            )
        };
        let secret = hash.as_bytes().to_vec();
        note_use(core, sql, vec![now.into(), found.org.into(), found.id.into(), secret.into()]);
    }
    Ok(Caller::Token(Arc::new(found)))
}

row! {
    /// A person with a session.
    struct User {
        name: String,
        email: String,
        email_confirmed_at: Option<Timestamp>,
    }
}

async fn person(core: &Arc<Core>, claims: Claims) -> Result<Caller> {
    let sql = installation_sql!(
        "SELECT u.name, u.email, u.email_confirmed_at FROM sessions s JOIN users u ON u.id = s.user_id \
         WHERE s.id = $1 AND s.user_id = $2 AND s.revoked_at IS NULL AND u.disabled_at IS NULL"
    );
    let found = core.db.installation().one(sql, [claims.session.into(), claims.user.into()]).await?;
    let User { name, email, email_confirmed_at } = found.ok_or_else(unknown)?;
    note_session_use(core, claims.session);
    Ok(Caller::Person(Arc::new(Person {
        id: claims.user,
        session: claims.session,
        kind: SessionKind::Tokens,
        name,
        email,
        email_confirmed: email_confirmed_at.is_some(),
        expires_at: claims.expires_at,
    })))
}

/// Verifies an access token whose key is not loaded yet, after looking the key up.
async fn verify_with_new_key(core: &Core, kid: &str, bearer: &str) -> Result<Claims> {
    if keys::look_up(core, kid).await? {
        return core.access.jwt.verify(bearer, core.clock.now()).map_err(refusal);
    }
    Err(unknown())
}

fn refusal(error: JwtError) -> Problem {
    match error {
        JwtError::Expired => Problem::new(Code::TokenExpired, "The session's token has expired; refresh it."),
        JwtError::Invalid | JwtError::UnknownKey => unknown(),
    }
}

fn note_session_use(core: &Arc<Core>, session: SessionId) {
    let now = core.clock.now();
    let sql = installation_sql!(
        "UPDATE sessions SET last_used_at = $1 WHERE id = $2 AND COALESCE(last_used_at, 0) < $3"
    );
    note_use(core, sql, vec![now.into(), session.into(), (now.0 - LAST_USE_STEP).into()]);
}

/// Records a use in the background. A failure loses only the record.
pub(super) fn note_use(core: &Arc<Core>, sql: InstallationSql, values: Vec<Value>) {
    let worker = Arc::clone(core);
    core.tasks.spawn(async move {
        if let Err(problem) = worker.db.installation().execute(sql, values).await {
            let cause = problem.cause().map(ToString::to_string);
            tracing::warn!(%problem, cause, "credential.last_use_not_noted");
        }
    });
}

pub(super) fn unknown() -> Problem {
    Problem::new(Code::Unauthenticated, "The token is unknown or revoked.")
}
