//! Decides which account a sign-in at a provider opens.
//!
//! A sign-in opens the account that was linked with the provider's account before. Otherwise it opens the account with
//! the address that the provider vouches for, but only if that address is confirmed here too: otherwise a stranger who
//! had registered the address with their own password would share the account. Without an account, an invitation
//! creates one, if the provider's settings allow it.

use std::sync::Arc;

use sea_orm::{ActiveModelTrait, ConnectionTrait, IntoActiveModel, Set};
use serde_json::json;

use super::{
    claims::{NoEmail, ProviderUser},
    provider::Provider,
};
use crate::{
    base::{
        ids::UserId,
        plain::is_name,
        problem::{Problem, Result},
    },
    core::{
        Core, Request,
        audit::{PersonalEntry, record_personal},
    },
    domain::people::{
        SignInOrigin,
        accounts::{
            letters::{Notice, notify},
            users::{blank, by_email, by_id, is_email},
        },
        entity::users,
        membership::invitations,
        signing_in::queries::{identified, insert_identity, record_use},
    },
};

/// Why a sign-in at a provider opens no account, as a code for the panel.
#[derive(Debug)]
pub enum Refusal {
    /// The visit was started in another browser, or too long ago.
    State,
    /// The provider refused, or its answer failed verification. With a description.
    Provider(String),
    /// The provider doesn't confirm that the address belongs to the person.
    EmailNotVerified(NoEmail),
    /// The account with this address hasn't been confirmed yet.
    EmailNotConfirmed,
    /// Neither an account nor an invitation exists.
    NoAccount,
    /// Our own failure, or too many attempts.
    Failed(Problem),
}

impl Refusal {
    /// The code behind `#error=`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::State => "STATE_INVALID",
            Self::Provider(_) => "PROVIDER_FAILED",
            Self::EmailNotVerified(_) => "EMAIL_NOT_VERIFIED",
            Self::EmailNotConfirmed => "EMAIL_NOT_CONFIRMED",
            Self::NoAccount => "NO_ACCOUNT",
            Self::Failed(problem) => problem.code.as_str(),
        }
    }

    /// A problem that only the operator can solve, described for the log.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Provider(reason) => Some(reason.clone()),
            Self::EmailNotVerified(reason) => Some(reason.to_string()),
            _ => None,
        }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Failed(problem)
    }
}

impl From<sea_orm::DbErr> for Refusal {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Failed(error.into())
    }
}

/// Opens the account of the person who came back.
pub async fn open(
    request: &Arc<Request>,
    provider: &Provider,
    provider_user: &ProviderUser,
) -> Result<UserId, Refusal> {
    let core = &request.core;
    let known = find_linked(core, provider, provider_user).await?;
    let user = match known {
        Some(user) => user,
        None => link(request, provider, provider_user).await?,
    };
    if provider.settings.join_by_invitation
        && let Ok(email) = &provider_user.email
    {
        for invitation in invitations::open_for(core, email).await? {
            // An invitation that is no longer valid doesn't fail the sign-in.
            if let Err(problem) = invitations::accept_vouched(request, &invitation, user).await {
                tracing::info!(%problem, invitation = invitation.id.0, "oidc.invitation_not_accepted");
            }
        }
    }
    Ok(user)
}

/// The account linked before. Records its use.
async fn find_linked(
    core: &Core,
    provider: &Provider,
    provider_user: &ProviderUser,
) -> Result<Option<UserId>, Refusal> {
    let Some(user) = identified(core, &provider.name, &provider_user.subject).await? else { return Ok(None) };
    let user = by_id(core.db.read(), user).await?;
    if user.disabled_at.is_some() {
        return Err(Refusal::NoAccount);
    }
    record_use(core, &provider.name, &provider_user.subject).await?;
    Ok(Some(user.id))
}

/// Links the account with this address, or a new one.
async fn link(
    request: &Request,
    provider: &Provider,
    provider_user: &ProviderUser,
) -> Result<UserId, Refusal> {
    let core = &request.core;
    let email = provider_user.email.as_deref().map_err(|why| Refusal::EmailNotVerified(*why))?;
    if !is_email(email) {
        return Err(Refusal::EmailNotVerified(NoEmail::Invalid));
    }
    let invited = provider.settings.join_by_invitation && is_invited(request, email).await?;
    let tx = core.db.begin().await?;
    let user = match by_email(&tx, email).await? {
        Some(user) if user.disabled_at.is_some() => return Err(Refusal::NoAccount),
        Some(user) if user.email_confirmed_at.is_none() && user.password_hash.is_some() => {
            return Err(Refusal::EmailNotConfirmed);
        }
        Some(user) => confirmed(core, &tx, user).await?,
        None if invited => {
            let local = email.split('@').next().unwrap_or(email);
            let name =
                provider_user.name.as_deref().map(str::trim).filter(|name| !name.is_empty() && is_name(name));
            let now = core.clock.now();
            let row = users::ActiveModel {
                name: Set(name.unwrap_or(local).chars().take(120).collect()),
                email_confirmed_at: Set(Some(now)),
                ..blank(email, now)
            };
            row.insert(&tx).await?
        }
        None => return Err(Refusal::NoAccount),
    };
    let identity = (provider.name.as_str(), provider_user.subject.as_str());
    insert_identity(&tx, user.id, identity, email, core.clock.now()).await?;
    notify(core, &tx, &user, &user.email, Notice::AccountLinked, &SignInOrigin::of(request));
    let entry =
        PersonalEntry::done("linkAccount", user.id, json!({ "provider": provider.name, "email": email }))
            .by(&user.name);
    record_personal(&tx, request, entry);
    core.access.cache.invalidate_after(&tx);
    tx.commit().await?;
    Ok(user.id)
}

/// Whether the owner of this address can accept an invitation. Otherwise a new account would belong to no organization.
async fn is_invited(request: &Request, email: &str) -> Result<bool> {
    for invitation in invitations::open_for(&request.core, email).await? {
        match invitations::require_acceptable(request, &invitation).await {
            Ok(()) => return Ok(true),
            Err(problem) => {
                tracing::info!(%problem, invitation = invitation.id.0, "oidc.invitation_not_accepted");
            }
        }
    }
    Ok(false)
}

/// Confirms the address of an account without a password, because the provider vouches for it.
async fn confirmed(
    core: &Core,
    db: &impl ConnectionTrait,
    user: users::Model,
) -> Result<users::Model, Refusal> {
    if user.email_confirmed_at.is_some() {
        return Ok(user);
    }
    let mut row = user.into_active_model();
    row.email_confirmed_at = Set(Some(core.clock.now()));
    row.updated_at = Set(core.clock.now());
    Ok(row.update(db).await?)
}
