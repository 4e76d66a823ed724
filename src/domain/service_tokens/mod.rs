//! Service tokens: an organization's credentials for integrations.
//!
//! A token never has more permissions than its issuer, nor more than the policy's cap for tokens; the cap is applied
//! again on every use. Rotating a token reveals its new secret, and extending it grants it again, so both require every
//! permission that the token has. Only hashes are stored.

mod entity;

use std::time::Duration;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, Set};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use self::entity::service_tokens;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::TokenId,
        numerals::with_noun,
        permission::{Permission, PermissionSet},
        problem::{Code, Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        access::{
            Scope,
            token::{Token, TokenKind},
        },
        audit,
        store::{Tx, for_update},
    },
    domain::{
        edits,
        orgs::{self, Limit},
    },
};

/// How long the old secret works after a rotation by default: that of a token, and that of an event endpoint.
pub const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest overlap: thirty days. A stolen secret would also work for so long.
pub const MAX_OVERLAP_SECONDS: i64 = 30 * 24 * 60 * 60;

/// A new service token.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    pub permissions: Vec<Permission>,
    /// Null: never. Undefined: after the configured lifetime.
    pub expires_at: MaybeUndefined<Timestamp>,
}

/// Changes to a service token.
#[derive(Clone, Debug)]
pub struct EditToken {
    pub name: Option<String>,
    /// The complete new list.
    pub permissions: Option<Vec<Permission>>,
    pub expires_at: MaybeUndefined<Timestamp>,
}

/// Issues a service token. The secret in the answer is shown only once.
///
/// # Errors
/// `VALIDATION_FAILED` for a permission that the caller lacks or no token may have, or an expiry in the past or beyond
/// the longest lifetime; `PLAN_LIMIT_REACHED`.
pub async fn create(scope: &Scope, new: NewToken) -> Result<(TokenId, SecretString)> {
    let tx = scope.begin().await?;
    let mut violations = Vec::new();
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > 80 {
        violations.push(Violation::at("/name", "NOT_ALLOWED", "A name must have 1 to 80 characters."));
    }
    check_permissions(&tx, &new.permissions, PermissionSet::default(), &mut violations);
    let expires_at = match new.expires_at {
        MaybeUndefined::Undefined => {
            scope.core.config.service_tokens.default_lifetime().map(|for_| tx.now.plus(for_))
        }
        MaybeUndefined::Null => None,
        MaybeUndefined::Value(at) => Some(at),
    };
    check_expiry(&tx, expires_at, &mut violations);
    Problem::fail_if_any(violations)?;
    orgs::check_limit(&tx, Limit::ServiceTokens).await?;
    // As a set: without duplicates and in the policy's order.
    let permissions: PermissionSet = new.permissions.iter().copied().collect();
    let (token, hash) = Token::generate(TokenKind::Service);
    let row = service_tokens::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name_folded: NotSet,
        name: Set(name.clone()),
        token_hash: Set(hash.as_bytes().to_vec()),
        hint: Set(Token::hint(token.expose_secret()).to_owned()),
        permissions: Set(json!(permissions)),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        expires_at: Set(expires_at),
        last_used_at: Set(None),
        revoked_at: Set(None),
        rotated_at: Set(None),
        previous_token_hash: Set(None),
        previous_hint: Set(None),
        previous_expires_at: Set(None),
        previous_last_used_at: Set(None),
    }
    .insert(tx.connection())
    .await?;
    let changes = json!({ "name": name, "permissions": permissions, "expires_at": expires_at });
    record(&tx, (ChangeOp::Created, "createServiceToken"), row.id, changes);
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok((row.id, token))
}

/// Issues a new secret for a service token, shown only once. The old one works for `overlap`. A token that
/// expires starts its full lifetime again.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` for a revoked token; `PERMISSION_DENIED` if the token has a permission that the
/// caller lacks.
pub async fn rotate(scope: &Scope, id: TokenId, overlap: Duration) -> Result<SecretString> {
    let tx = scope.begin().await?;
    let row = find_unrevoked(&tx, id).await?;
    require_all_permissions(&tx, &row)?;
    let (token, hash) = Token::generate(TokenKind::Service);
    let hint = Token::hint(token.expose_secret()).to_owned();
    let until = tx.now.plus(overlap);
    let lifetime = row.expires_at.map(|at| at.0 - row.rotated_at.unwrap_or(row.created_at).0);
    let longest = scope.core.config.service_tokens.max_lifetime().map(|longest| tx.now.plus(longest));
    let expires_at = match (lifetime.map(|lifetime| Timestamp(tx.now.0 + lifetime)), longest) {
        (Some(at), Some(longest)) => Some(at.min(longest)),
        (at, longest) => at.or(longest),
    };
    let ends = row.expires_at.map_or(until, |at| at.min(until));
    let changes = json!({
        "hint": hint, "previous_hint": row.hint, "previous_expires_at": ends, "expires_at": expires_at,
    });
    let (old_hash, old_hint, old_use) = (row.token_hash.clone(), row.hint.clone(), row.last_used_at);
    let mut row = row.into_active_model();
    row.token_hash = Set(hash.as_bytes().to_vec());
    row.hint = Set(hint);
    row.last_used_at = Set(None);
    row.expires_at = Set(expires_at);
    row.rotated_at = Set(Some(tx.now));
    row.previous_token_hash = Set(Some(old_hash));
    row.previous_hint = Set(Some(old_hint));
    // The old secret never outlives the expiry it was issued with.
    row.previous_expires_at = Set(Some(ends));
    row.previous_last_used_at = Set(old_use);
    row.update(tx.connection()).await?;
    record(&tx, (ChangeOp::Updated, "rotateServiceToken"), id, changes);
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(token)
}

/// Changes a service token's name, permissions, or expiry.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` for a revoked token; `VALIDATION_FAILED` as for a new token; `PERMISSION_DENIED` when
/// extending a token that has a permission the caller lacks.
pub async fn update(scope: &Scope, id: TokenId, edit: EditToken) -> Result<()> {
    let tx = scope.begin().await?;
    let row = find_unrevoked(&tx, id).await?;
    let mut violations = Vec::new();
    if let Some(wanted) = &edit.permissions {
        check_permissions(&tx, wanted, permissions_of(&row)?, &mut violations);
    }
    if let MaybeUndefined::Value(_) | MaybeUndefined::Null = edit.expires_at {
        let at = edit.expires_at.value().copied();
        check_expiry(&tx, at, &mut violations);
        if at.is_none_or(|at| row.expires_at.is_some_and(|before| before < at)) && row.expires_at.is_some() {
            require_all_permissions(&tx, &row)?;
        }
    }
    Problem::fail_if_any(violations)?;
    let before = row.clone();
    let mut row = row.into_active_model();
    if let Some(name) = edit.name {
        row.name = Set(name.trim().to_owned());
    }
    if let Some(permissions) = edit.permissions {
        row.permissions = Set(json!(permissions.into_iter().collect::<PermissionSet>()));
    }
    match edit.expires_at {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Null => row.expires_at = Set(None),
        MaybeUndefined::Value(at) => row.expires_at = Set(Some(at)),
    }
    let changes = audit::changed(&before, &row);
    if changes.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(());
    }
    row.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::ServiceToken, id).await?;
    record(&tx, (ChangeOp::Updated, "updateServiceToken"), id, changes);
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(())
}

/// Revokes a service token at once and permanently, including its previous secret.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn revoke(scope: &Scope, id: TokenId) -> Result<()> {
    let tx = scope.begin().await?;
    let row = find(&tx, id).await?;
    if row.revoked_at.is_some() {
        return Ok(());
    }
    let mut row = row.into_active_model();
    row.revoked_at = Set(Some(tx.now));
    row.update(tx.connection()).await?;
    record(&tx, (ChangeOp::Deleted, "revokeServiceToken"), id, json!({ "revoked_at": tx.now }));
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(())
}

/// The organization's unrevoked tokens, newest first, for the command line.
pub async fn list(scope: &Scope) -> Result<Vec<serde_json::Value>> {
    use sea_orm::QueryOrder;
    let rows = scope
        .find::<service_tokens::Entity>()
        .filter(service_tokens::Column::RevokedAt.is_null())
        .order_by_desc(service_tokens::Column::Id)
        .all(scope.core.db.read())
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            json!({
                "id": row.id, "name": row.name, "hint": row.hint, "permissions": row.permissions,
                "created_at": row.created_at, "expires_at": row.expires_at, "last_used_at": row.last_used_at,
                "rotated_at": row.rotated_at, "previous_hint": row.previous_hint,
                "previous_expires_at": row.previous_expires_at,
                "previous_last_used_at": row.previous_last_used_at,
            })
        })
        .collect())
}

/// Locks the row until the transaction ends, so that of two concurrent rotations the second replaces the secret of the
/// first.
async fn find(tx: &Tx, id: TokenId) -> Result<service_tokens::Model> {
    let found = tx.scope.find::<service_tokens::Entity>().filter(service_tokens::Column::Id.eq(id));
    let row = for_update(found).one(tx.connection()).await?;
    row.ok_or_else(|| Problem::not_found("service token", id))
}

async fn find_unrevoked(tx: &Tx, id: TokenId) -> Result<service_tokens::Model> {
    let row = find(tx, id).await?;
    if row.revoked_at.is_some() {
        return Err(Problem::new(Code::Conflict, "The service token was revoked. Issue a new one."));
    }
    Ok(row)
}

fn permissions_of(row: &service_tokens::Model) -> Result<PermissionSet> {
    let names: Vec<String> = serde_json::from_value(row.permissions.clone()).map_err(Problem::internal)?;
    Ok(names.iter().filter_map(|name| name.parse::<Permission>().ok()).collect())
}

/// Refuses a caller who lacks a permission that the token has.
fn require_all_permissions(tx: &Tx, row: &service_tokens::Model) -> Result<()> {
    let usable = permissions_of(row)?.intersection(tx.scope.core.policy.token_cap());
    usable.iter().try_for_each(|permission| tx.scope.require(permission))
}

/// Checks the permissions to be added. Those the token already has are not checked again.
fn check_permissions(tx: &Tx, wanted: &[Permission], has: PermissionSet, violations: &mut Vec<Violation>) {
    let cap = tx.scope.core.policy.token_cap();
    if wanted.is_empty() {
        violations.push(Violation::at(
            "/permissions",
            "TOO_SHORT",
            "A service token needs at least one permission.",
        ));
    }
    for (n, permission) in wanted.iter().enumerate() {
        let detail = if has.contains(*permission) {
            continue;
        } else if !cap.contains(*permission) {
            format!("No service token can have {permission}.")
        } else if !tx.scope.may(*permission) {
            format!("You don't have {permission} yourself.")
        } else {
            continue;
        };
        violations.push(Violation::at(format!("/permissions/{n}"), "NOT_ALLOWED", detail));
    }
}

fn check_expiry(tx: &Tx, expires_at: Option<Timestamp>, violations: &mut Vec<Violation>) {
    if expires_at.is_some_and(|at| at <= tx.now) {
        violations.push(Violation::at("/expires_at", "TOO_SMALL", "`expires_at` is in the past."));
    }
    let Some(longest) = tx.scope.core.config.service_tokens.max_lifetime() else { return };
    if expires_at.is_none_or(|at| tx.now.plus(longest) < at) {
        let days = tx.scope.core.config.service_tokens.max_days;
        let detail =
            format!("A service token of this installation can last at most {}.", with_noun(days, "day"));
        violations.push(Violation::at("/expires_at", "TOO_LARGE", detail));
    }
}

fn record(tx: &Tx, (op, operation): (ChangeOp, &'static str), id: TokenId, changes: serde_json::Value) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::ServiceToken, id: id.0, changes });
}
