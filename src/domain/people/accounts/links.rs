//! Mailed links, which work once and for a limited time.
//!
//! A row of `email_tokens` is written together with the mail. Its token is only created when the mail is sent
//! ([`compose`]), and again on every retry, so that only the last mail's link works. Until then the row holds random
//! bytes instead of a hash. A link that the operator hands over ([`create_by_hand`]) gets its token at once. A newer
//! link of the same kind replaces an older one.

use std::time::Duration;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, NotSet, QueryFilter, Set, UpdateMany,
    sea_query::Expr,
};
use secrecy::{ExposeSecret, SecretString};

use super::{
    letters::with_link,
    users::{by_id, lock_user},
};
use crate::{
    base::{
        ids::UserId,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::token::{Token, TokenHash, TokenKind},
        mail::{Letter, Template},
        sealing::random_bytes,
        store::Transaction,
    },
    domain::{
        mails::{self, Mail},
        people::entity::{email_tokens, users},
    },
};

/// The purpose of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Confirms an address.
    Confirm,
    /// Sets a new password.
    Reset,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Confirm => "CONFIRM",
            Self::Reset => "RESET",
        }
    }

    const fn lifetime(self) -> Duration {
        match self {
            Self::Confirm => Duration::from_hours(48),
            Self::Reset => Duration::from_hours(1),
        }
    }
}

/// Replaces the person's links of this kind with a new one, mailed to `email`.
pub async fn send(
    core: &Core,
    tx: &Transaction,
    user: &users::Model,
    purpose: Purpose,
    email: &str,
) -> Result<()> {
    let row = replace(core, tx, user.id, (purpose, email), TokenHash(random_bytes())).await?;
    mails::enqueue(core, tx, &Mail::Link { id: row.id }, row.expires_at);
    Ok(())
}

/// Creates a link to hand over in person. Returns its token and expiry. The person who hands it over vouches for the
/// address.
pub async fn create_by_hand(
    core: &Core,
    db: &impl ConnectionTrait,
    user: &users::Model,
    purpose: Purpose,
) -> Result<(SecretString, Timestamp)> {
    let (token, hash) = Token::generate(TokenKind::Link);
    let row = replace(core, db, user.id, (purpose, &user.email), hash).await?;
    Ok((token, row.expires_at))
}

async fn replace(
    core: &Core,
    db: &impl ConnectionTrait,
    user: UserId,
    (purpose, email): (Purpose, &str),
    hash: TokenHash,
) -> Result<email_tokens::Model> {
    withdraw(core, db, user, purpose).await?;
    let now = core.clock.now();
    let row = email_tokens::ActiveModel {
        id: NotSet,
        user_id: Set(user),
        kind: Set(purpose.as_str().to_owned()),
        token_hash: Set(hash.as_bytes().to_vec()),
        email: Set(Some(email.to_owned())),
        created_at: Set(now),
        expires_at: Set(now.plus(purpose.lifetime())),
        used_at: Set(None),
    };
    Ok(row.insert(db).await?)
}

/// Withdraws the person's links of this kind.
pub async fn withdraw(core: &Core, db: &impl ConnectionTrait, user: UserId, purpose: Purpose) -> Result<()> {
    withdrawal(core, user, purpose).exec(db).await?;
    Ok(())
}

/// Withdraws the person's links that would change their address to anything but `email`.
pub async fn withdraw_others(
    core: &Core,
    db: &impl ConnectionTrait,
    user: UserId,
    email: &str,
) -> Result<()> {
    withdrawal(core, user, Purpose::Confirm).filter(email_tokens::Column::Email.ne(email)).exec(db).await?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a link belongs to a person, whose id is in the filter")]
fn withdrawal(core: &Core, user: UserId, purpose: Purpose) -> UpdateMany<email_tokens::Entity> {
    email_tokens::Entity::update_many()
        .col_expr(email_tokens::Column::UsedAt, Expr::value(core.clock.now().0))
        .filter(email_tokens::Column::UserId.eq(user))
        .filter(email_tokens::Column::Kind.eq(purpose.as_str()))
        .filter(email_tokens::Column::UsedAt.is_null())
}

/// Writes the mail for a link with a new token, at the moment of sending. Returns it with its recipient, or
/// None if the link has ended.
#[expect(clippy::disallowed_methods, reason = "a link belongs to a person, and is named by the mail's row")]
pub async fn compose(core: &Core, id: i64) -> Result<Option<(String, Letter)>> {
    let (token, hash) = Token::generate(TokenKind::Link);
    let minted = email_tokens::Entity::update_many()
        .col_expr(email_tokens::Column::TokenHash, Expr::value(hash.as_bytes().to_vec()))
        .filter(email_tokens::Column::Id.eq(id))
        .filter(email_tokens::Column::UsedAt.is_null())
        .filter(email_tokens::Column::ExpiresAt.gt(core.clock.now().0))
        .exec_with_returning(core.db.writer())
        .await?;
    let Some(row) = minted.into_iter().next() else { return Ok(None) };
    let Some(email) = row.email else { return Ok(None) };
    let form = if row.kind == Purpose::Confirm.as_str() {
        (Template::ConfirmEmail, "confirm-email")
    } else {
        (Template::ResetPassword, "reset-password")
    };
    let name = by_id(core.db.read(), row.user_id).await?.name;
    let values = [("name", &*name), ("email", &email)];
    let letter = with_link(core, form, (&token, row.expires_at), &values);
    Ok(Some((email, letter)))
}

/// Uses a link. Returns its person, locked until the transaction ends, and the address it proves. If two requests use
/// it at once, only one succeeds. Locks the person before the link, as everywhere.
///
/// # Errors
/// `LINK_INVALID`.
#[expect(clippy::disallowed_methods, reason = "a link's token names one person")]
pub async fn redeem(
    core: &Core,
    tx: &Transaction,
    purpose: Purpose,
    token: &SecretString,
) -> Result<(users::Model, String)> {
    let hash = hash_of(token).ok_or_else(invalid)?;
    let found = email_tokens::Entity::find()
        .filter(email_tokens::Column::TokenHash.eq(hash.as_bytes().to_vec()))
        .filter(email_tokens::Column::Kind.eq(purpose.as_str()))
        .one(tx)
        .await?;
    let found = found.ok_or_else(invalid)?;
    let user = lock_user(tx, found.user_id).await?;
    let used = email_tokens::Entity::update_many()
        .col_expr(email_tokens::Column::UsedAt, Expr::value(core.clock.now().0))
        .filter(email_tokens::Column::TokenHash.eq(found.token_hash))
        .filter(email_tokens::Column::UsedAt.is_null())
        .filter(email_tokens::Column::ExpiresAt.gt(core.clock.now().0))
        .exec(tx)
        .await?;
    match found.email {
        Some(email) if used.rows_affected == 1 => Ok((user, email)),
        _ => Err(invalid()),
    }
}

/// The hash of a link's token, or None if it can't be a token.
pub fn hash_of(token: &SecretString) -> Option<TokenHash> {
    Token::parse_kind(TokenKind::Link, token.expose_secret().trim()).map(|token| token.hash)
}

/// The error for every link that doesn't work.
pub fn invalid() -> Problem {
    Problem::new(Code::LinkInvalid, "The link was already used, has expired, or was replaced by a newer one.")
}
