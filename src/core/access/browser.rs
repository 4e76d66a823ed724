//! From a browser's session cookie to a [`Caller`].
//!
//! The cookie holds a token that says nothing by itself; the session is a row, so whatever ends the row ends the cookie.
//! Its end moves with its use: it is `sessions.browser_idle_days` after the last one, but never later than
//! `sessions.browser_max_days` after the sign-in. The row is written once a minute at most, in the background.

use std::sync::Arc;

use super::{
    Caller, Person,
    authn::{LAST_USE_STEP, note_use, one, unknown},
    token::TokenHash,
};
use crate::{
    base::{enums::SessionKind, problem::Result, time::Timestamp},
    core::Core,
};

/// The person whose browser holds this token.
///
/// # Errors
/// `UNAUTHENTICATED` if there is no such session, or it has ended.
pub(super) async fn person(core: &Arc<Core>, hash: TokenHash) -> Result<Caller> {
    let now = core.clock.now();
    let sql = "SELECT s.id, s.user_id, s.created_at, s.last_used_at, u.name, u.email, u.email_confirmed_at \
               FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.token_hash = $1 AND s.kind = 'BROWSER' \
               AND s.revoked_at IS NULL AND s.expires_at > $2 AND u.disabled_at IS NULL";
    let Some(row) = one(core, sql, [hash.as_bytes().to_vec().into(), now.0.into()]).await? else {
        return Err(unknown());
    };
    let opened: Timestamp = row.try_get_by(2)?;
    let last_used: Option<Timestamp> = row.try_get_by(3)?;
    let person = Person {
        id: row.try_get_by(1)?,
        session: row.try_get_by(0)?,
        kind: SessionKind::Browser,
        name: row.try_get_by(4)?,
        email: row.try_get_by(5)?,
        email_confirmed: row.try_get_by::<Option<Timestamp>, _>(6)?.is_some(),
        expires_at: opened.plus(core.config.sessions.browser_max()),
    };
    if last_used.is_none_or(|last| now.0 - last.0 > LAST_USE_STEP) {
        let ends = core.config.sessions.browser_end(opened, now);
        let sql = "UPDATE sessions SET last_used_at = $1, expires_at = $2 \
                   WHERE id = $3 AND revoked_at IS NULL AND expires_at > $1";
        note_use(core, sql, vec![now.0.into(), ends.0.into(), person.session.0.into()]);
    }
    Ok(Caller::Person(Arc::new(person)))
}
