//! Accounts at other providers that a person signs in with. Only their owner can list and unlink them.
//!
//! Unlinking deletes the identity at the provider, but it doesn't overrule the provider: if it vouches for the person's
//! address, the next sign-in there links the account again (`oidc/account.rs`), and the person is notified by mail.

use async_graphql::SimpleObject;
use serde::Serialize;
use serde_json::json;

use super::{oidc::Providers, queries};
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
        store::sql::{InstallationSql, RunSql},
    },
    domain::people::{
        SignInOrigin,
        accounts::{
            letters::{Notice, notify},
            users::lock_user,
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
pub async fn has_any(core: &Core, user: UserId) -> Result<bool> {
    queries::has_identity(core, user).await
}

/// A person's linked accounts, oldest first.
pub async fn linked_accounts(
    core: &Core,
    providers: &Providers,
    person: &Person,
) -> Result<Vec<LinkedAccount>> {
    list_of(providers, &core.db.installation(), person.id).await
}

/// [`linked_accounts`] for any user.
pub async fn list_of(
    providers: &Providers,
    runner: &impl RunSql<Sql = InstallationSql>,
    user: UserId,
) -> Result<Vec<LinkedAccount>> {
    let show = |found: queries::Identity| {
        let provider = providers.get(&found.provider);
        LinkedAccount {
            id: found.id,
            label: provider.map_or(found.provider.as_str(), |provider| provider.label()).to_owned(),
            is_usable: provider.is_some(),
            provider: found.provider,
            email: found.email,
            created_at: found.created_at,
            last_used_at: found.last_used_at,
        }
    };
    Ok(queries::identities(runner, user).await?.into_iter().map(show).collect())
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
    let user = lock_user(&tx, person.id).await?;
    let all = list_of(providers, &tx, user.id).await?;
    let gone = || Problem::new(Code::NotFound, format!("You have no linked account {id}."));
    let linked = all.iter().find(|linked| linked.id == id).ok_or_else(gone)?;
    let another = all.iter().any(|other| other.id != id && other.is_usable);
    if user.password_hash.is_none() && !another {
        let detail = "You could no longer sign in: the account has no password and no other linked account. Set \
                      a password with `requestPasswordReset` first.";
        return Err(Problem::new(Code::Conflict, detail));
    }
    queries::delete_identity(&tx, id, user.id).await?;
    // A sign-in that has returned from the provider holds a code that is valid for a minute.
    queries::delete_challenges(&tx, user.id).await?;
    notify(core, &tx, &user, &user.email, Notice::AccountUnlinked, &SignInOrigin::of(request));
    let changes = json!({ "provider": linked.provider, "email": linked.email });
    record_personal(&tx, request, PersonalEntry::done("unlinkAccount", user.id, changes));
    Ok(tx.commit().await?)
}
