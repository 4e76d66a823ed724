//! People: users, their sessions, their membership of organizations; and service tokens.
//!
//! A user is a person with an e-mail address and a password, of no organization; a membership gives them a role
//! in one. Who may: `member.*`, `token.*` inside an organization; their own account, everybody who is signed in.

mod entity;
pub mod graphql;

use std::collections::HashSet;

use sea_orm::{ColumnTrait, QueryFilter};

use self::entity::members;
use crate::{error::Result, ids::UserId, store::Tx};

/// Those of `users` who are no members of the transaction's organization, in their order.
///
/// # Errors
/// The database is out of reach.
pub async fn missing(tx: &Tx, users: &[UserId]) -> Result<Vec<UserId>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let asked = members::Column::UserId.is_in(users.iter().copied());
    let found = tx.scope.find::<members::Entity>().filter(asked).all(tx.connection()).await?;
    let found: HashSet<UserId> = found.into_iter().map(|member| member.user_id).collect();
    Ok(users.iter().copied().filter(|user| !found.contains(user)).collect())
}
