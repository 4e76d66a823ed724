//! One's own account in the schema: signing in and out, sessions, memberships.
//!
//! None of it belongs to an organization, so there is no scope and no plan: these few small objects are written out by
//! hand, from functions that only ever read the caller's own rows.

use async_graphql::{Context, Object, SimpleObject};
use secrecy::ExposeSecret;

use super::{Client, Membership, OpenSession, SignedIn, User};
use crate::{
    clock::Timestamp,
    error::Result,
    graphql::{
        Answer, ContextExt, Enter, Request, SecretText, answer,
        bounds::{bounds, length},
        permit::open,
    },
    ids::SessionId,
};

/// What signing in gives. The tokens are shown this once.
#[derive(SimpleObject)]
pub struct SignIn {
    /// What requests carry as `Authorization: Bearer`.
    pub access_token: String,
    /// Until when the access token is valid.
    pub access_token_expires_at: Timestamp,
    /// What `refreshSession` takes, once.
    pub refresh_token: String,
    /// Until when the refresh token is valid.
    pub refresh_token_expires_at: Timestamp,
    /// Who has signed in.
    pub user: User,
}

/// The caller, who is a person.
#[derive(SimpleObject)]
pub struct Viewer {
    /// The person.
    pub user: User,
    /// The organizations that they belong to.
    pub memberships: Vec<Membership>,
}

/// Reading one's own account.
#[derive(Default)]
pub struct AccountQuery;

#[Object]
impl AccountQuery {
    /// The caller's own account and organizations. For persons; a service token reads `organization`.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn viewer(&self, ctx: &Context<'_>) -> Answer<Viewer> {
        answer(async {
            let (app, person) = (&ctx.request().app, ctx.admit()?.person()?);
            let user = super::user(app, person.id).await?;
            Ok(Viewer { user, memberships: super::memberships(app, person.id).await? })
        })
        .await
    }

    /// The caller's open sessions, the newest first.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn sessions(&self, ctx: &Context<'_>) -> Answer<Vec<OpenSession>> {
        answer(async { super::open_sessions(&ctx.request().app, ctx.admit()?.person()?).await }).await
    }
}

/// Changing one's own account.
#[derive(Default)]
pub struct AccountMutation;

#[Object]
impl AccountMutation {
    /// Opens a session.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn sign_in(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 254)))] email: String,
        #[graphql(directive = bounds::apply(length(1, 256)))] password: SecretText,
    ) -> Answer<SignIn> {
        answer(async {
            ctx.admit()?;
            let request = ctx.request();
            shown(request, super::sign_in(&request.app, &email, &password.0, client(request)).await?).await
        })
        .await
    }

    /// Renews a session. Each refresh token works once; using one again ends the session.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn refresh_session(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] refresh_token: SecretText,
    ) -> Answer<SignIn> {
        answer(async {
            ctx.admit()?;
            let (request, token) = (ctx.request(), refresh_token.0.expose_secret());
            shown(request, super::refresh_session(&request.app, token, client(request)).await?).await
        })
        .await
    }

    /// Ends the session that asks.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn sign_out(&self, ctx: &Context<'_>) -> Answer<bool> {
        answer(async {
            let request = ctx.request();
            super::sign_out(&request.app, ctx.admit()?.person()?, &client(request)).await?;
            Ok(true)
        })
        .await
    }

    /// Ends one of the caller's sessions; answers with its id.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn revoke_session(&self, ctx: &Context<'_>, id: SessionId) -> Answer<SessionId> {
        answer(async {
            let request = ctx.request();
            super::revoke_session(&request.app, ctx.admit()?.person()?, id, &client(request)).await?;
            Ok(id)
        })
        .await
    }
}

fn client(request: &Request) -> Client {
    Client { ip: request.ip, user_agent: request.user_agent.clone(), request_id: request.id.clone() }
}

async fn shown(request: &Request, signed_in: SignedIn) -> Result<SignIn> {
    Ok(SignIn {
        access_token: signed_in.access_token.expose_secret().to_owned(),
        access_token_expires_at: signed_in.access_token_expires_at,
        refresh_token: signed_in.refresh_token.expose_secret().to_owned(),
        refresh_token_expires_at: signed_in.refresh_token_expires_at,
        user: super::user(&request.app, signed_in.user).await?,
    })
}
