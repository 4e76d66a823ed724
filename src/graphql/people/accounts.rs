//! The caller's own account in the GraphQL schema: name, address, password, second factor, and accepting an
//! invitation.
//!
//! Anyone may use a link: its token says who they are. All of these are rate-limited by IP address
//! (`domain/people/signing_in/throttle.rs`).

use async_graphql::{Context, Object, SimpleObject};

use crate::{
    base::{
        ids::OrgId,
        permission::Role,
        secret::{SecretText, shown_once},
    },
    domain::people::{self, Acceptance, User},
    read::ContextExt,
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, length, name},
        permit::open,
    },
};

/// A second factor being set up. Shown only once, and not in use until `confirmTotp` has seen a code.
#[derive(SimpleObject)]
pub struct TotpEnrolment {
    /// The secret in base32, for typing into an app.
    #[graphql(directive = shown_once::apply())]
    pub secret: String,
    /// The same secret as an `otpauth` URL, for a QR code.
    #[graphql(directive = shown_once::apply())]
    pub url: String,
}

/// The result of accepting an invitation.
#[derive(SimpleObject)]
pub struct AcceptedInvitation {
    /// The organization.
    pub organization_id: OrgId,
    /// The person's role in it.
    pub role: Role,
    /// The person, whose account may be new.
    pub user: User,
}

#[derive(Default)]
pub struct AccountMutation;

#[Object]
impl AccountMutation {
    /// Mails the caller a link that confirms their address (`confirmEmail`). Does nothing if it is already
    /// confirmed.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn request_email_confirmation(&self, ctx: &Context<'_>) -> Answer<bool> {
        answer(async {
            people::request_email_confirmation(ctx.request(), ctx.admit()?.person()?).await?;
            Ok(true)
        })
        .await
    }

    /// Confirms an e-mail address with the token of a link mailed to it.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn confirm_email(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] token: SecretText,
    ) -> Answer<bool> {
        answer(async {
            ctx.admit()?;
            people::confirm_email(ctx.request(), &token.0).await?;
            Ok(true)
        })
        .await
    }

    /// Mails a link for setting a new password, if the account exists. The answer doesn't reveal whether it
    /// does.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn request_password_reset(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 254)))] email: String,
    ) -> Answer<bool> {
        answer(async {
            ctx.admit()?;
            people::request_password_reset(ctx.request(), &email).await?;
            Ok(true)
        })
        .await
    }

    /// Sets a new password with the token of a link. Ends all of the person's sessions.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn reset_password(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] token: SecretText,
        #[graphql(directive = bounds::apply(length(1, 256)))] new_password: SecretText,
    ) -> Answer<bool> {
        answer(async {
            ctx.admit()?;
            people::reset_password(ctx.request(), &token.0, &new_password.0).await?;
            Ok(true)
        })
        .await
    }

    /// Changes the caller's password. Ends their other sessions.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn change_password(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] current_password: SecretText,
        #[graphql(directive = bounds::apply(length(1, 256)))] new_password: SecretText,
    ) -> Answer<bool> {
        answer(async {
            let (request, person) = (ctx.request(), ctx.admit()?.person()?);
            people::change_password(request, person, &current_password.0, &new_password.0).await?;
            Ok(true)
        })
        .await
    }

    /// Mails a link to a new address. Using it (`confirmEmail`) makes the address the caller's.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn change_email(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 254)))] email: String,
        #[graphql(
            desc = "The caller's password, if they have one.",
            directive = bounds::apply(length(1, 256))
        )]
        password: Option<SecretText>,
    ) -> Answer<bool> {
        answer(async {
            let (request, person) = (ctx.request(), ctx.admit()?.person()?);
            let password = password.map(|secret| secret.0);
            people::change_email(request, person, &email, password.as_ref()).await?;
            Ok(true)
        })
        .await
    }

    /// Changes the caller's name.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn change_name(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(name(120)))] name: String,
    ) -> Answer<User> {
        answer(async {
            let (request, person) = (ctx.request(), ctx.admit()?.person()?);
            people::change_name(request, person, &name).await?;
            people::user(&request.core, person.id).await
        })
        .await
    }

    /// Starts setting up a second factor. `confirmTotp` turns it on.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn begin_totp(
        &self,
        ctx: &Context<'_>,
        #[graphql(
            desc = "The caller's password, if they have one.",
            directive = bounds::apply(length(1, 256))
        )]
        password: Option<SecretText>,
    ) -> Answer<TotpEnrolment> {
        answer(async {
            let (request, person) = (ctx.request(), ctx.admit()?.person()?);
            let password = password.map(|secret| secret.0);
            let begun = people::begin_totp(request, person, password.as_ref()).await?;
            Ok(TotpEnrolment { secret: begun.secret, url: begun.url })
        })
        .await
    }

    /// Turns the second factor on, given a code from it. Returns ten recovery codes, which are shown only once.
    #[graphql(directive = open::apply("SIGNED_IN"), directive = shown_once::apply())]
    async fn confirm_totp(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 40)))] code: SecretText,
    ) -> Answer<Vec<String>> {
        answer(async { people::confirm_totp(ctx.request(), ctx.admit()?.person()?, &code.0).await }).await
    }

    /// Removes the second factor.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn disable_totp(
        &self,
        ctx: &Context<'_>,
        #[graphql(
            desc = "The caller's password, if they have one.",
            directive = bounds::apply(length(1, 256))
        )]
        password: Option<SecretText>,
        #[graphql(desc = "A code from the app, or a recovery code.", directive = bounds::apply(length(1, 40)))]
        code: SecretText,
    ) -> Answer<bool> {
        answer(async {
            let (request, person) = (ctx.request(), ctx.admit()?.person()?);
            let password = password.map(|secret| secret.0);
            people::disable_totp(request, person, password.as_ref(), &code.0).await?;
            Ok(true)
        })
        .await
    }

    /// Replaces the recovery codes. The new ones are shown only once.
    #[graphql(directive = open::apply("SIGNED_IN"), directive = shown_once::apply())]
    async fn regenerate_recovery_codes(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "A code from the app, or a recovery code.", directive = bounds::apply(length(1, 40)))]
        code: SecretText,
    ) -> Answer<Vec<String>> {
        answer(async { people::regenerate(ctx.request(), ctx.admit()?.person()?, &code.0).await }).await
    }

    /// Makes the holder of an invitation's link a member. If the invited address has an account, sign in to it
    /// first or send its password. Otherwise send a name and a password for a new account.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn accept_invitation(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] token: SecretText,
        #[graphql(directive = bounds::apply(name(120)))] name: Option<String>,
        #[graphql(directive = bounds::apply(length(1, 256)))] password: Option<SecretText>,
    ) -> Answer<AcceptedInvitation> {
        answer(async {
            ctx.admit()?;
            let request = ctx.request();
            let said = Acceptance { name, password: password.map(|secret| secret.0) };
            let accepted = people::accept_invitation(request, &token.0, &said).await?;
            let user = people::user(&request.core, accepted.user).await?;
            Ok(AcceptedInvitation { organization_id: accepted.org, role: accepted.role, user })
        })
        .await
    }
}
