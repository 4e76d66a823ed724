//! Signing in with an account elsewhere: OpenID Connect, code flow with PKCE.
//!
//! - `provider.rs`: a provider of the configuration: what it says of itself, and the two calls to it.
//! - `faces/pages/oidc.rs`: `/auth/oidc/{provider}/start` and `/callback`, which a browser visits.
//! - `account.rs`: whose account a sign-in elsewhere opens.
//!
//! What has to be remembered between the two visits (state, nonce, PKCE verifier) travels sealed in a cookie of the
//! browser that began, so that nobody can fill a table, and a callback that another browser began is worth nothing. The
//! visit ends at the panel with a one-time code of a minute behind `#`, which the panel exchanges over GraphQL
//! (`exchangeSignInCode`): no token is ever in an address. A second factor is asked for then, as after a password.

mod account;
mod provider;

use std::sync::Arc;

use async_graphql::{Context, Object, SimpleObject};
use secrecy::SecretString;

pub use self::{
    account::Refusal,
    provider::{Memory, Provider, Providers},
};
use super::{
    signin::issue_code,
    throttle::{self, Key},
};
use crate::{
    base::ids::LinkedAccountId,
    core::{ContextExt, Request},
    fields::{Answer, Enter, answer, permit::open},
    slices::people::{self, LinkedAccount},
};

/// Ends a visit to a provider, which has sent the browser back with `code`: a one-time code for the panel.
///
/// # Errors
/// Why nobody was signed in.
pub async fn complete(
    request: &Arc<Request>,
    provider: &Provider,
    memory: &Memory,
    code: SecretString,
) -> Result<SecretString, Refusal> {
    let core = &request.core;
    let address = Key::elsewhere(request.ip);
    throttle::charge(core, std::slice::from_ref(&address)).await?;
    let found = provider.finish(core.clock.now(), memory, code).await;
    let somebody = found.map_err(|error| {
        tracing::warn!(provider = provider.name, error = format!("{error:#}"), "oidc.not_verified");
        Refusal::Provider
    })?;
    let user = account::open(request, provider, &somebody).await?;
    throttle::forgive(core, core.db.writer(), &[address]).await?;
    Ok(issue_code(core, user).await?)
}

/// A provider that people may sign in with.
#[derive(SimpleObject)]
pub struct SignInProvider {
    /// Its name in addresses.
    pub name: String,
    /// What the button says.
    pub label: String,
    /// Where a browser begins: a path. A `state` of the panel's own may be added: it comes back with the code.
    pub start_path: String,
}

/// Reading what one may sign in with.
#[derive(Default)]
pub struct OidcQuery;

#[Object]
impl OidcQuery {
    /// The providers that people may sign in with, by name.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn sign_in_providers(&self, ctx: &Context<'_>) -> Answer<Vec<SignInProvider>> {
        answer(async {
            ctx.admit()?;
            let providers = ctx.data_unchecked::<Arc<Providers>>().iter().map(|provider| SignInProvider {
                name: provider.name.clone(),
                label: provider.label().to_owned(),
                start_path: format!("/auth/oidc/{}/start", provider.name),
            });
            Ok(providers.collect())
        })
        .await
    }

    /// The caller's accounts elsewhere by which they sign in, the oldest first.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn linked_accounts(&self, ctx: &Context<'_>) -> Answer<Vec<LinkedAccount>> {
        answer(async {
            {
                let providers = ctx.data_unchecked::<Arc<Providers>>();
                people::linked_accounts(&ctx.request().core, providers, ctx.admit()?.person()?).await
            }
        })
        .await
    }
}

/// Changing what one may sign in with.
#[derive(Default)]
pub struct OidcMutation;

#[Object]
impl OidcMutation {
    /// Unlinks one of the caller's accounts elsewhere, unless they could not sign in any more; answers with its id.
    /// A later sign-in there links it again while the provider vouches for the caller's address.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn unlink_account(&self, ctx: &Context<'_>, id: LinkedAccountId) -> Answer<LinkedAccountId> {
        answer(async {
            let providers = ctx.data_unchecked::<Arc<Providers>>();
            people::unlink_account(ctx.request(), providers, ctx.admit()?.person()?, id).await?;
            Ok(id)
        })
        .await
    }
}
