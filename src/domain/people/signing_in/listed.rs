//! A person's open sessions, as a list.

use async_graphql::SimpleObject;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select};
use serde::Serialize;

use crate::{
    base::{
        enums::SessionKind,
        ids::{SessionId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{Core, access::Person},
    domain::people::entity::sessions,
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
pub async fn open_sessions(core: &Core, person: &Person) -> Result<Vec<OpenSession>> {
    open_of(core, person.id, Some(person.session)).await
}

/// [`open_sessions`] for any user. `asking` is the current session.
pub async fn open_of(core: &Core, user: UserId, asking: Option<SessionId>) -> Result<Vec<OpenSession>> {
    let newest = newest(core, user).order_by_desc(sessions::Column::Id).limit(1_000);
    let rows = newest.all(core.db.read()).await?;
    let current = match asking {
        Some(asking) => family(core, user, asking).await?,
        None => None,
    };
    let shown = |row: sessions::Model| {
        let is_current = current.as_ref() == Some(&row.family);
        open(row, is_current)
    };
    Ok(rows.into_iter().map(shown).collect())
}

/// The session that the caller came with.
pub async fn current_session(core: &Core, person: &Person) -> Result<Option<OpenSession>> {
    let Some(family) = family(core, person.id, person.session).await? else { return Ok(None) };
    let row = newest(core, person.id).filter(sessions::Column::Family.eq(family)).one(core.db.read()).await?;
    Ok(row.map(|row| open(row, true)))
}

/// The last generation of each open family: the one with the highest id. The generations before it are open too, and
/// may be thousands.
#[expect(clippy::disallowed_methods, reason = "a session belongs to a person, whose id is in the filter")]
fn newest(core: &Core, user: UserId) -> Select<sessions::Entity> {
    let newest = sessions::Entity::find()
        .filter(sessions::Column::UserId.eq(user))
        .filter(sessions::Column::RevokedAt.is_null())
        .filter(sessions::Column::ExpiresAt.gt(core.clock.now()))
        .select_only()
        .column_as(sessions::Column::Id.max(), "id")
        .group_by(sessions::Column::Family)
        .into_query();
    sessions::Entity::find().filter(sessions::Column::Id.in_subquery(newest))
}

/// The family of one of the person's sessions.
#[expect(clippy::disallowed_methods, reason = "a session belongs to a person, whose id is in the filter")]
async fn family(core: &Core, user: UserId, session: SessionId) -> Result<Option<String>> {
    let found = sessions::Entity::find_by_id(session).filter(sessions::Column::UserId.eq(user));
    Ok(found.one(core.db.read()).await?.map(|row| row.family))
}

fn open(row: sessions::Model, current: bool) -> OpenSession {
    OpenSession {
        id: row.id,
        current,
        kind: row.kind,
        user_agent: row.user_agent,
        ip: row.ip,
        refreshed_at: row.created_at,
        last_used_at: row.last_used_at,
        expires_at: row.expires_at,
    }
}
