//! Re-checks many callers at once, with two statements in total.

use super::{Caller, CredentialKey, Membership, Memberships, ServiceToken};
use crate::{
    base::{
        ids::{OrgId, SessionId, TokenId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        store::sql::{RunSql as _, installation_sql, row},
    },
};

/// Reads the current memberships of these callers in `org` from the database, not from the cache.
pub async fn load_memberships(core: &Core, org: OrgId, callers: &[Caller]) -> Result<Memberships> {
    let mut memberships = Memberships::new();
    let sessions: Vec<i64> = callers.iter().filter_map(session).collect();
    if !sessions.is_empty() {
        of_sessions(core, org, sessions, &mut memberships).await?;
    }
    let tokens: Vec<&ServiceToken> = callers.iter().filter_map(|caller| token(caller, org)).collect();
    if !tokens.is_empty() {
        of_tokens(core, org, &tokens, &mut memberships).await?;
    }
    Ok(memberships)
}

fn session(caller: &Caller) -> Option<i64> {
    if let Caller::Person(person) = caller { Some(person.session.0) } else { None }
}

fn token(caller: &Caller, org: OrgId) -> Option<&ServiceToken> {
    if let Caller::Token(token) = caller { Some(&**token).filter(|token| token.org == org) } else { None }
}

row! {
    /// A session in force, and its person's role in the organization.
    struct LiveSession {
        id: SessionId,
        role: Option<String>,
    }
}

async fn of_sessions(
    core: &Core,
    org: OrgId,
    sessions: Vec<i64>,
    memberships: &mut Memberships,
) -> Result<()> {
    // With a join, SQLite would go through all members for each session.
    let sql = installation_sql!(
        "SELECT s.id AS id, (SELECT m.role FROM members m WHERE m.organization_id = $1 AND m.user_id = s.user_id) AS role \
         FROM sessions s JOIN users u ON u.id = s.user_id \
         WHERE s.id = ANY($2) AND s.revoked_at IS NULL AND u.disabled_at IS NULL \
         AND (s.kind = 'TOKENS' OR s.expires_at > $3) AND NOT (u.totp_confirmed_at IS NULL \
         AND EXISTS (SELECT 1 FROM organizations o WHERE o.id = $1 AND o.require_second_factor))"
    );
    let values = [org.into(), core.db.keys(&sessions), core.clock.now().into()];
    for LiveSession { id, role } in core.db.installation().all(sql, values).await? {
        let Some(role) = role else { continue };
        let role = role.parse().map_err(Problem::internal)?;
        let permissions = core.policy.role_permissions(org, role);
        memberships.insert(CredentialKey::Session(id), Membership { role: Some(role), permissions });
    }
    Ok(())
}

row! {
    /// A service token that is not revoked.
    struct IssuedToken {
        id: TokenId,
        token_hash: Vec<u8>,
        previous_token_hash: Option<Vec<u8>>,
        previous_expires_at: Option<Timestamp>,
        expires_at: Option<Timestamp>,
    }
}

async fn of_tokens(
    core: &Core,
    org: OrgId,
    tokens: &[&ServiceToken],
    memberships: &mut Memberships,
) -> Result<()> {
    let sql = installation_sql!(
        "SELECT id, token_hash, previous_token_hash, previous_expires_at, expires_at FROM service_tokens \
         WHERE organization_id = $1 AND id = ANY($2) AND revoked_at IS NULL"
    );
    let ids: Vec<i64> = tokens.iter().map(|token| token.id.0).collect();
    let (now, cap) = (core.clock.now(), core.policy.token_cap());
    for row in core.db.installation().all::<IssuedToken>(sql, [org.into(), core.db.keys(&ids)]).await? {
        let is_live = row.expires_at.is_none_or(|end| end > now);
        let overlaps = row.previous_expires_at.is_some_and(|end| end > now);
        for token in tokens.iter().filter(|token| token.id == row.id) {
            let secret = token.secret.as_bytes();
            let is_previous = overlaps && row.previous_token_hash.as_deref() == Some(secret);
            if is_live && (row.token_hash == secret || is_previous) {
                let permissions = token.permissions.intersection(cap);
                memberships.insert(
                    CredentialKey::Token(row.id, token.secret),
                    Membership { role: None, permissions },
                );
            }
        }
    }
    Ok(())
}
