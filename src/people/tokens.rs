//! Service tokens: credentials of an organization for integrations.
//!
//! A token never carries more than its issuer may do, nor more than the policy's cap allows any token; the cap is
//! applied again each time that the token is used. Only the hash is kept.

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, Set};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::entity::service_tokens;
use crate::{
    access::{
        Permission, PermissionSet, Scope,
        token::{Token, TokenKind},
    },
    audit,
    clock::Timestamp,
    error::{Problem, Result, Violation},
    ids::TokenId,
    store::Tx,
};

/// What a new service token is given.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// When it ends; none: when it is revoked.
    pub expires_at: Option<Timestamp>,
}

/// Issues a service token. The text in the answer is shown this once.
///
/// # Errors
/// `VALIDATION_FAILED` for a permission that the caller lacks or that no token may carry.
pub async fn create_token(scope: &Scope, new: NewToken) -> Result<(TokenId, SecretString)> {
    let tx = scope.begin().await?;
    check(&tx, &new)?;
    // As a set: each once, and in the order of the policy.
    let permissions: PermissionSet = new.permissions.iter().copied().collect();
    let (token, hash) = Token::generate(TokenKind::Service);
    let name = new.name.trim().to_owned();
    let row = service_tokens::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name: Set(name.clone()),
        token_hash: Set(hash.as_bytes().to_vec()),
        hint: Set(Token::hint(token.expose_secret()).to_owned()),
        permissions: Set(json!(permissions)),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        expires_at: Set(new.expires_at),
        last_used_at: Set(None),
        revoked_at: Set(None),
    }
    .insert(tx.connection())
    .await?;
    let changes = json!({ "name": name, "permissions": permissions, "expires_at": new.expires_at });
    record(&tx, "createServiceToken", row.id, changes).await?;
    tx.commit().await?;
    scope.app.sessions.forget();
    Ok((row.id, token))
}

/// Revokes a service token, at once and for good.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn revoke_token(scope: &Scope, id: TokenId) -> Result<()> {
    let tx = scope.begin().await?;
    let found = scope.find::<service_tokens::Entity>().filter(service_tokens::Column::Id.eq(id));
    let row = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("service token", id))?;
    if row.revoked_at.is_some() {
        return Ok(());
    }
    let mut row = row.into_active_model();
    row.revoked_at = Set(Some(tx.now));
    row.update(tx.connection()).await?;
    record(&tx, "revokeServiceToken", id, json!({ "revoked_at": tx.now })).await?;
    tx.commit().await?;
    scope.app.sessions.forget();
    Ok(())
}

fn check(tx: &Tx, new: &NewToken) -> Result<()> {
    let cap = tx.scope.app.policy.token_cap();
    let mut violations = Vec::new();
    if new.permissions.is_empty() {
        violations.push(Violation::at("/permissions", "TOO_SHORT", "A token needs at least one permission."));
    }
    for (n, permission) in new.permissions.iter().enumerate() {
        let detail = if !cap.contains(*permission) {
            format!("No service token may carry {permission}.")
        } else if !tx.scope.may(*permission) {
            format!("You lack {permission} yourself.")
        } else {
            continue;
        };
        violations.push(Violation::at(format!("/permissions/{n}"), "NOT_ALLOWED", detail));
    }
    if new.expires_at.is_some_and(|at| at <= tx.now) {
        violations.push(Violation::at("/expires_at", "TOO_SMALL", "`expires_at` has passed."));
    }
    if violations.is_empty() { Ok(()) } else { Err(Problem::invalid(violations)) }
}

async fn record(tx: &Tx, operation: &'static str, id: TokenId, changes: serde_json::Value) -> Result<()> {
    audit::record(tx, audit::Entry { operation, target_kind: "service token", target_id: id.0, changes })
        .await
}
