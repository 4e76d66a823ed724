//! Sessions of browsers: a cookie instead of tokens.
//!
//! The cookie's token is opaque, and the session's row holds its hash. It is never renewed: each use extends the row's
//! expiry (`core/access/browser.rs`). Every sign-in creates a new session and ends the browser's previous one, which
//! prevents session fixation.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, sea_query::Expr};
use secrecy::SecretString;
use serde_json::json;

use super::sessions::{NewSession, SignInOrigin, insert, lock_admissible, new_family, record_session};
use crate::{
    base::{enums::SessionKind, ids::UserId, problem::Result},
    core::{
        Request,
        access::{
            Caller,
            token::{Token, TokenKind},
        },
        audit::{PersonalEntry, record_personal},
        store::Transaction,
    },
    domain::people::entity::{sessions, users},
};

/// A session that a browser will hold.
#[derive(Debug)]
pub struct InBrowser {
    pub user: UserId,
    /// The value of the cookie.
    pub cookie: SecretString,
}

/// Opens a session if the person's credentials have not changed since they were checked, and ends the browser's
/// previous session.
///
/// # Errors
/// `SIGN_IN_FAILED` for a disabled account, or one whose password or second factor has changed since.
pub async fn open_for(request: &Request, known: &users::Model) -> Result<InBrowser> {
    let (core, client) = (&request.core, SignInOrigin::of(request));
    let tx = request.begin().await?;
    let user = lock_admissible(&tx, known).await?;
    end_previous(request, &tx).await?;
    let (cookie, token) = Token::generate(TokenKind::Session);
    let now = core.clock.now();
    let new = NewSession {
        user: user.id,
        kind: SessionKind::Browser,
        family: new_family(),
        generation: 0,
        token,
        expires_at: core.config.sessions.browser_end(now, now),
    };
    let session = insert(core, &tx, new, &client).await?;
    record_session(core, &tx, "signIn", &user, session.id, &client);
    tx.commit().await?;
    Ok(InBrowser { user: user.id, cookie })
}

/// Ends the browser's previous session, even of another person.
#[expect(clippy::disallowed_methods, reason = "the browser has proved that it holds this session")]
async fn end_previous(request: &Request, tx: &Transaction) -> Result<()> {
    let Caller::Person(person) = &request.caller else { return Ok(()) };
    if person.kind != SessionKind::Browser {
        return Ok(());
    }
    let core = &request.core;
    sessions::Entity::update_many()
        .col_expr(sessions::Column::RevokedAt, Expr::value(core.clock.now().0))
        .filter(sessions::Column::Id.eq(person.session))
        .filter(sessions::Column::RevokedAt.is_null())
        .exec(tx)
        .await?;
    let entry = PersonalEntry::done("revokeSession", person.id, json!({ "session": person.session }));
    record_personal(tx, request, entry);
    core.access.cache.invalidate_after(tx);
    Ok(())
}
