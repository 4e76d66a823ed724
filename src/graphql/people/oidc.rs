//! Accounts at other providers in the GraphQL schema.

use std::sync::Arc;

use async_graphql::{Context, Object, SimpleObject};

use crate::{
    base::ids::LinkedAccountId,
    domain::people::{self, LinkedAccount, oidc::Providers},
    read::ContextExt,
    resolvers::{Answer, Enter, answer, permit::open},
};

/// A provider that people may sign in with.
#[derive(SimpleObject)]
pub struct SignInProvider {
    /// Its name in URLs.
    pub name: String,
    /// The label of its sign-in button.
    pub label: String,
    /// The path where a browser starts. The panel may add a `state` of its own, which comes back with the code.
    pub start_path: String,
}

#[derive(Default)]
pub struct OidcQuery;

#[Object]
impl OidcQuery {
    /// The providers people can sign in with, ordered by name.
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

    /// The caller's accounts at other providers, oldest first.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn linked_accounts(&self, ctx: &Context<'_>) -> Answer<Vec<LinkedAccount>> {
        answer(async {
            let providers = ctx.data_unchecked::<Arc<Providers>>();
            people::linked_accounts(&ctx.request().core, providers, ctx.admit()?.person()?).await
        })
        .await
    }
}

#[derive(Default)]
pub struct OidcMutation;

#[Object]
impl OidcMutation {
    /// Unlinks one of the caller's accounts at another provider and returns its id. Fails if the caller could
    /// no longer sign in. Signing in there later links it again, as long as the provider vouches for the
    /// caller's address.
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
