//! Re-checks many callers at once: two statements, however many there are.

use super::{Admitted, Caller, Membership, ServiceToken, Who};
use crate::{
    base::{
        ids::{OrgId, SessionId, TokenId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::Core,
};

/// Reads the current memberships of these callers in `org` from the database, not from the cache.
///
/// # Errors
/// The database can't be reached.
pub async fn admitted(core: &Core, org: OrgId, callers: &[Caller]) -> Result<Admitted> {
    let mut admitted = Admitted::new();
    let sessions: Vec<i64> = callers.iter().filter_map(session).collect();
    if !sessions.is_empty() {
        of_sessions(core, org, sessions, &mut admitted).await?;
    }
    let tokens: Vec<&ServiceToken> = callers.iter().filter_map(|caller| token(caller, org)).collect();
    if !tokens.is_empty() {
        of_tokens(core, org, &tokens, &mut admitted).await?;
    }
    Ok(admitted)
}

fn session(caller: &Caller) -> Option<i64> {
    if let Caller::Person(person) = caller { Some(person.session.0) } else { None }
}

fn token(caller: &Caller, org: OrgId) -> Option<&ServiceToken> {
    if let Caller::Token(token) = caller { Some(&**token).filter(|token| token.org == org) } else { None }
}

async fn of_sessions(core: &Core, org: OrgId, sessions: Vec<i64>, admitted: &mut Admitted) -> Result<()> {
    // With a join, SQLite would go through all members for each session.
    let sql = format!(
        "SELECT s.id, (SELECT m.role FROM members m WHERE m.organization_id = $1 AND m.user_id = s.user_id) \
         FROM sessions s JOIN users u ON u.id = s.user_id \
         WHERE s.id {} AND s.revoked_at IS NULL AND u.disabled_at IS NULL \
         AND (s.kind = 'TOKENS' OR s.expires_at > $3) AND NOT (u.totp_confirmed_at IS NULL \
         AND EXISTS (SELECT 1 FROM organizations o WHERE o.id = $1 AND o.require_second_factor))",
        core.db.is_among()
    );
    for row in
        core.db.all(sql, vec![org.0.into(), core.db.keys(&sessions), core.clock.now().0.into()]).await?
    {
        let Some(role) = row.try_get_by::<Option<String>, _>(1)? else { continue };
        let role = role.parse().map_err(Problem::internal)?;
        let permissions = core.policy.role_permissions(org, role);
        let session = SessionId(row.try_get_by(0)?);
        admitted.insert(Who::Session(session), Membership { role: Some(role), permissions });
    }
    Ok(())
}

async fn of_tokens(core: &Core, org: OrgId, tokens: &[&ServiceToken], admitted: &mut Admitted) -> Result<()> {
    let sql = format!(
        "SELECT id, token_hash, previous_token_hash, previous_expires_at, expires_at FROM service_tokens \
         WHERE organization_id = $1 AND id {} AND revoked_at IS NULL",
        core.db.is_among()
    );
    let ids: Vec<i64> = tokens.iter().map(|token| token.id.0).collect();
    let (now, cap) = (core.clock.now(), core.policy.token_cap());
    for row in core.db.all(sql, vec![org.0.into(), core.db.keys(&ids)]).await? {
        let id = TokenId(row.try_get_by(0)?);
        let (current, previous): (Vec<u8>, Option<Vec<u8>>) = (row.try_get_by(1)?, row.try_get_by(2)?);
        let (overlap, end): (Option<Timestamp>, Option<Timestamp>) = (row.try_get_by(3)?, row.try_get_by(4)?);
        let is_live = |end: Option<Timestamp>| end.is_none_or(|end| end > now);
        for token in tokens.iter().filter(|token| token.id == id) {
            let secret = token.secret.as_bytes();
            let is_current = current == secret;
            let is_previous = previous.as_deref() == Some(secret) && overlap.is_some_and(|end| end > now);
            if is_live(end) && (is_current || is_previous) {
                let permissions = token.permissions.intersection(cap);
                admitted.insert(Who::Token(id, token.secret), Membership { role: None, permissions });
            }
        }
    }
    Ok(())
}
