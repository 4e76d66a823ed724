//! A person's open sessions, as a list.

use async_graphql::SimpleObject;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use serde::Serialize;

use crate::{
    base::{
        enums::SessionKind,
        ids::{SessionId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{Core, access::Person},
    slices::people::entity::sessions,
};

/// A sign-in that is still open.
#[derive(Clone, Debug, SimpleObject, Serialize)]
#[graphql(name = "Session")]
pub struct OpenSession {
    /// The session's id. It changes when the session is refreshed.
    pub id: SessionId,
    /// Whether it is the current session.
    #[serde(skip)]
    pub current: bool,
    /// Whether a browser holds it in a cookie, or a program as tokens.
    pub kind: SessionKind,
    /// The User-Agent of the browser or the program.
    pub user_agent: Option<String>,
    /// The IP address it was last refreshed from.
    pub ip: Option<String>,
    /// When it was opened or last refreshed.
    pub refreshed_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// When it expires unless it is refreshed, or, in a browser, used.
    pub expires_at: Timestamp,
}

/// A person's open sessions, newest first: the last generation of each family.
///
/// # Errors
/// The database is unreachable.
pub async fn open_sessions(core: &Core, person: &Person) -> Result<Vec<OpenSession>> {
    open_of(core, person.id, Some(person.session)).await
}

/// The most sessions shown.
const MOST_SHOWN: u64 = 1_000;

/// [`open_sessions`] for any user. `asking` is the current session.
#[expect(clippy::disallowed_methods, reason = "a session belongs to a person, whose id is in the filter")]
pub async fn open_of(core: &Core, user: UserId, asking: Option<SessionId>) -> Result<Vec<OpenSession>> {
    let rows = sessions::Entity::find()
        .filter(sessions::Column::UserId.eq(user))
        .filter(sessions::Column::RevokedAt.is_null())
        .filter(sessions::Column::ExpiresAt.gt(core.clock.now()))
        .order_by_desc(sessions::Column::Id)
        .limit(MOST_SHOWN)
        .all(core.db.read())
        .await?;
    let current = rows.iter().find(|row| Some(row.id) == asking).map(|row| row.family.clone());
    let mut seen = std::collections::HashSet::new();
    let open = rows.into_iter().filter(|row| seen.insert(row.family.clone())).map(|row| OpenSession {
        id: row.id,
        current: current.as_ref() == Some(&row.family),
        kind: row.kind,
        user_agent: row.user_agent,
        ip: row.ip,
        refreshed_at: row.created_at,
        last_used_at: row.last_used_at,
        expires_at: row.expires_at,
    });
    Ok(open.collect())
}

/// The session that the caller came with.
///
/// # Errors
/// The database is unreachable.
pub async fn current_session(core: &Core, person: &Person) -> Result<Option<OpenSession>> {
    Ok(open_sessions(core, person).await?.into_iter().find(|session| session.current))
}
