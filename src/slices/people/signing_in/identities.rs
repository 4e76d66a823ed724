//! Accounts at other providers that a person signs in with. Only their owner can list and unlink them.
//!
//! Unlinking forgets who the person is at the provider, but it doesn't overrule the provider: if it vouches for
//! the person's address, the next sign-in there links the account again (`oidc/account.rs`), and the person is
//! told by mail.

use async_graphql::SimpleObject;
use sea_orm::{ConnectionTrait, Statement};
use serde::Serialize;
use serde_json::json;

use super::oidc::Providers;
use crate::{
    base::{
        ids::{LinkedAccountId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core, Request,
        access::Person,
        audit::{PersonalEntry, record_personal},
    },
    slices::people::{
        SignInOrigin,
        accounts::{
            letters::{Notice, notify},
            users::hold,
        },
    },
};

/// An account at another provider that a person signs in with.
#[derive(Clone, Debug, SimpleObject, Serialize)]
pub struct LinkedAccount {
    /// Identifies the link.
    pub id: LinkedAccountId,
    /// The provider's name, as in `signInProviders`.
    pub provider: String,
    /// The label of the provider's sign-in button.
    pub label: String,
    /// Whether it can be used to sign in. False if the installation no longer has the provider.
    pub is_usable: bool,
    /// The address at the provider when the account was linked.
    pub email: String,
    /// When it was linked.
    pub created_at: Timestamp,
    /// When it was last used to sign in.
    pub last_used_at: Timestamp,
}

/// Whether a person can sign in through a provider.
pub async fn has(core: &Core, user: UserId) -> Result<bool> {
    let sql = "SELECT 1 FROM user_identities WHERE user_id = $1 LIMIT 1";
    Ok(core.db.one(sql.to_owned(), vec![user.0.into()]).await?.is_some())
}

/// A person's linked accounts, oldest first.
///
/// # Errors
/// The database is unreachable.
pub async fn linked_accounts(
    core: &Core,
    providers: &Providers,
    person: &Person,
) -> Result<Vec<LinkedAccount>> {
    of(core, providers, core.db.read(), person.id).await
}

/// [`linked_accounts`] for any user.
pub async fn of(
    core: &Core,
    providers: &Providers,
    db: &impl ConnectionTrait,
    user: UserId,
) -> Result<Vec<LinkedAccount>> {
    let sql = "SELECT id, provider, email, created_at, last_used_at FROM user_identities \
               WHERE user_id = $1 ORDER BY id";
    let statement = Statement::from_sql_and_values(core.db.backend(), sql, [user.0.into()]);
    let read = |row: &sea_orm::QueryResult| -> Result<LinkedAccount> {
        let name: String = row.try_get_by(1)?;
        let provider = providers.get(&name);
        Ok(LinkedAccount {
            id: row.try_get_by(0)?,
            label: provider.map_or(name.as_str(), |provider| provider.label()).to_owned(),
            is_usable: provider.is_some(),
            provider: name,
            email: row.try_get_by(2)?,
            created_at: row.try_get_by(3)?,
            last_used_at: row.try_get_by(4)?,
        })
    };
    db.query_all_raw(statement).await?.iter().map(read).collect()
}

/// Unlinks one of a person's accounts at another provider. Cancels sign-ins in progress; open sessions stay.
///
/// # Errors
/// `NOT_FOUND`, also for another person's account; `CONFLICT` if the person could no longer sign in.
pub async fn unlink(
    request: &Request,
    providers: &Providers,
    person: &Person,
    id: LinkedAccountId,
) -> Result<()> {
    let core = &request.core;
    let tx = request.begin().await?;
    // If two requests unlink at once, the second sees the first one's result.
    let user = hold(&tx, person.id).await?;
    let all = of(core, providers, &tx, user.id).await?;
    let gone = || Problem::new(Code::NotFound, format!("You have no linked account {id}."));
    let linked = all.iter().find(|linked| linked.id == id).ok_or_else(gone)?;
    let another = all.iter().any(|other| other.id != id && other.is_usable);
    if user.password_hash.is_none() && !another {
        let detail = "You could no longer sign in: the account has no password and no other linked account. Set \
                      a password with `requestPasswordReset` first.";
        return Err(Problem::new(Code::Conflict, detail));
    }
    let sql = "DELETE FROM user_identities WHERE id = $1 AND user_id = $2";
    let values = [id.0.into(), user.id.0.into()];
    tx.execute_raw(Statement::from_sql_and_values(core.db.backend(), sql, values)).await?;
    // Someone who has just come back from the provider holds a code that is valid for a minute.
    let sql = "DELETE FROM sign_in_challenges WHERE user_id = $1";
    tx.execute_raw(Statement::from_sql_and_values(core.db.backend(), sql, [user.id.0.into()])).await?;
    notify(core, &tx, &user, &user.email, Notice::AccountUnlinked, &SignInOrigin::of(request));
    let changes = json!({ "provider": linked.provider, "email": linked.email });
    record_personal(&tx, request, PersonalEntry::done("unlinkAccount", user.id, changes));
    Ok(tx.commit().await?)
}
