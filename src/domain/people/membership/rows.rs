//! Finds and locks the members' rows, for operations on members and for other features. Depends on no other feature.

use std::collections::HashSet;

use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, Select, sea_query::Expr};

use super::queries::ENABLED;
use crate::{
    base::{ids::UserId, permission::Role, problem::Result},
    core::{
        access::Scope,
        store::{Tx, for_update},
    },
    domain::people::entity::members,
};

/// The `users` who aren't members of the transaction's organization, in their given order.
pub async fn missing(tx: &Tx, users: &[UserId]) -> Result<Vec<UserId>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let asked = members::Column::UserId.is_in(users.iter().copied());
    let found = tx.scope.find::<members::Entity>().filter(asked).all(tx.connection()).await?;
    let found: HashSet<UserId> = found.into_iter().map(|member| member.user_id).collect();
    Ok(users.iter().copied().filter(|user| !found.contains(user)).collect())
}

/// Whether a user is a member of the transaction's organization. A member can't leave before the transaction ends.
pub async fn lock_member(tx: &Tx, user: UserId) -> Result<bool> {
    let found = tx.scope.find::<members::Entity>().filter(members::Column::UserId.eq(user));
    Ok(for_update(found).one(tx.connection()).await?.is_some())
}

/// A user's role in the scope's organization. None for a user who isn't a member.
pub async fn role_of(scope: &Scope, user: UserId) -> Result<Option<Role>> {
    let found = scope.find::<members::Entity>().filter(members::Column::UserId.eq(user));
    Ok(found.one(scope.core.db.read()).await?.map(|member| member.role))
}

/// Whether the transaction's organization has a member with one of these roles who can sign in.
pub async fn has_member_with(tx: &Tx, roles: &[Role]) -> Result<bool> {
    Ok(enabled(tx, roles).count(tx.connection()).await? > 0)
}

/// The members with one of these roles whose accounts are enabled.
pub(super) fn enabled(tx: &Tx, roles: &[Role]) -> Select<members::Entity> {
    let found = tx.scope.find::<members::Entity>();
    found.filter(members::Column::Role.is_in(roles.iter().copied())).filter(Expr::cust(ENABLED))
}

/// A member, if the user is one.
pub(super) async fn find(tx: &Tx, user: UserId) -> Result<Option<members::Model>> {
    let found = tx.scope.find::<members::Entity>().filter(members::Column::UserId.eq(user));
    Ok(found.one(tx.connection()).await?)
}
