//! From a browser's session cookie to a [`Caller`].
//!
//! The cookie holds an opaque token; the session is a row, so the cookie ends with the row. Its end moves with its use:
//! it is `sessions.browser_idle_days` after the last one, but never later than `sessions.browser_max_days` after the
//! sign-in. The row is written once a minute at most, in the background.

use std::sync::Arc;

use super::{
    Caller, Person,
    authn::{LAST_USE_STEP, note_use, unknown},
    token::TokenHash,
};
use crate::{
    base::{
        enums::SessionKind,
        ids::{SessionId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        store::sql::{RunSql as _, installation_sql, row},
    },
};

row! {
    /// A browser's session, and its person.
    struct Session {
        id: SessionId,
        user_id: UserId,
        created_at: Timestamp,
        last_used_at: Option<Timestamp>,
        name: String,
        email: String,
        email_confirmed_at: Option<Timestamp>,
    }
}

/// The person whose browser holds this token.
///
/// # Errors
/// `UNAUTHENTICATED` if the session does not exist or has ended.
pub(super) async fn person(core: &Arc<Core>, hash: TokenHash) -> Result<Caller> {
    let now = core.clock.now();
    let sql = installation_sql!(
        "SELECT s.id AS id, s.user_id, s.created_at, s.last_used_at, u.name, u.email, u.email_confirmed_at \
         FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.token_hash = $1 AND s.kind = 'BROWSER' \
         AND s.revoked_at IS NULL AND s.expires_at > $2 AND u.disabled_at IS NULL"
    );
    let found = core.db.installation().one(sql, [hash.as_bytes().to_vec().into(), now.into()]).await?;
    let found: Session = found.ok_or_else(unknown)?;
    if found.last_used_at.is_none_or(|last| now.0 - last.0 > LAST_USE_STEP) {
        let ends = core.config.sessions.browser_end(found.created_at, now);
        let sql = installation_sql!(
            "UPDATE sessions SET last_used_at = $1, expires_at = $2 \
             WHERE id = $3 AND revoked_at IS NULL AND expires_at > $1"
        );
        note_use(core, sql, vec![now.into(), ends.into(), found.id.into()]);
    }
    let person = Person {
        id: found.user_id,
        session: found.id,
        kind: SessionKind::Browser,
        name: found.name,
        email: found.email,
        email_confirmed: found.email_confirmed_at.is_some(),
        expires_at: found.created_at.plus(core.config.sessions.browser_max()),
    };
    Ok(Caller::Person(Arc::new(person)))
}
