//! The caller's own account in the GraphQL schema: signing in and out, sessions, memberships.
//!
//! None of this belongs to an organization, so it has neither a scope nor a read plan. These few small objects are
//! written by hand, on top of functions that only read the caller's own rows.

use async_graphql::{ComplexObject, Context, InputObject, Json, Object, SimpleObject};
use secrecy::ExposeSecret;

use crate::{
    base::{
        enums::{MailWay, SessionKind},
        ids::SessionId,
        problem::{Problem, Result},
        secret::{SecretText, shown_once},
        time::Timestamp,
    },
    core::{
        Core, Request,
        access::{JarChange, Person},
    },
    domain::people::{
        self, Founding, InvitationOffer, Membership, OpenSession, SessionCredentials, SignInResult, SignedIn,
        User,
    },
    read::ContextExt,
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, length, name},
        permit::open,
    },
};

/// The result of signing in: either a session or a challenge. Tokens are shown only once, and null if the session is a
/// cookie.
#[derive(SimpleObject, Default)]
pub struct SignIn {
    /// The token to send as `Authorization: Bearer`.
    #[graphql(directive = shown_once::apply())]
    pub access_token: Option<String>,
    /// When the access token expires.
    pub access_token_expires_at: Option<Timestamp>,
    /// The token for `refreshSession`. It works once.
    #[graphql(directive = shown_once::apply())]
    pub refresh_token: Option<String>,
    /// When the refresh token expires.
    pub refresh_token_expires_at: Option<Timestamp>,
    /// The person who signed in.
    pub user: Option<User>,
    /// Set if the account has a second factor. Send its token to `completeSignIn` with a code.
    pub challenge: Option<SignInChallenge>,
}

/// A sign-in waiting for its second factor.
#[derive(SimpleObject)]
pub struct SignInChallenge {
    /// The token to send to `completeSignIn`.
    #[graphql(directive = shown_once::apply())]
    pub token: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The caller, if a person.
#[derive(SimpleObject)]
#[graphql(complex)]
pub struct Viewer {
    /// The person.
    pub user: User,
    /// The organizations the person belongs to.
    pub memberships: Vec<Membership>,
    /// The person's settings of the panel: an object. Null: none yet.
    pub preferences: Option<Json<serde_json::Value>>,
}

impl Viewer {
    /// Reads the account of a person.
    async fn read(core: &Core, person: &Person) -> Result<Self> {
        Ok(Self {
            user: people::user(core, person.id).await?,
            memberships: people::memberships(core, person.id).await?,
            preferences: people::preferences(core, person.id).await?.map(Json),
        })
    }
}

#[ComplexObject]
impl Viewer {
    /// The session of this call.
    async fn session(&self, ctx: &Context<'_>) -> Answer<Option<OpenSession>> {
        let request = ctx.request();
        answer(async { people::current_session(&request.core, request.caller.person()?).await }).await
    }
}

/// The first start of an installation.
#[derive(SimpleObject)]
pub struct FirstStart {
    /// Whether no user exists yet, so that `completeFirstStart` creates the first one.
    pub is_open: bool,
}

/// The first person and organization.
#[derive(InputObject)]
pub struct CompleteFirstStartInput {
    /// The one-time code in the service's log.
    #[graphql(directive = bounds::apply(length(1, 256)))]
    pub code: SecretText,
    /// The person's name.
    #[graphql(directive = bounds::apply(name(120)))]
    pub name: String,
    /// The person's e-mail address. It counts as confirmed.
    #[graphql(directive = bounds::apply(length(3, 254)))]
    pub email: String,
    /// The person's password.
    #[graphql(directive = bounds::apply(length(1, 256)))]
    pub password: SecretText,
    /// The organization's name. The person becomes its OWNER.
    #[graphql(directive = bounds::apply(name(80)))]
    pub organization_name: String,
}

impl From<CompleteFirstStartInput> for Founding {
    fn from(input: CompleteFirstStartInput) -> Self {
        let CompleteFirstStartInput { code, name, email, password, organization_name } = input;
        Self { code: code.0, name, email, password: password.0, organization: organization_name }
    }
}

#[derive(Default)]
pub struct SessionQuery;

#[Object]
impl SessionQuery {
    /// The caller's own account and organizations. For people only: a service token reads `organization`.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn viewer(&self, ctx: &Context<'_>) -> Answer<Viewer> {
        answer(async {
            let person = ctx.admit()?.person()?;
            Viewer::read(&ctx.request().core, person).await
        })
        .await
    }

    /// How the installation sends mail.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn mail_way(&self, ctx: &Context<'_>) -> Answer<MailWay> {
        answer(async {
            ctx.admit()?;
            Ok(ctx.request().core.mailer.way())
        })
        .await
    }

    /// Whether the installation waits for its first person.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn first_start(&self, ctx: &Context<'_>) -> Answer<FirstStart> {
        answer(async {
            ctx.admit()?;
            Ok(FirstStart { is_open: people::is_first_start_open(&ctx.request().core).await? })
        })
        .await
    }

    /// The invitation that a link belongs to. Reading it does not use the link.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn invitation_offer(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] token: SecretText,
    ) -> Answer<InvitationOffer> {
        answer(async {
            ctx.admit()?;
            people::invitation_offer(&ctx.request().core, &token.0).await
        })
        .await
    }

    /// The caller's open sessions, newest first. At most 1,000.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn sessions(&self, ctx: &Context<'_>) -> Answer<Vec<OpenSession>> {
        answer(async { people::open_sessions(&ctx.request().core, ctx.admit()?.person()?).await }).await
    }
}

#[derive(Default)]
pub struct SessionMutation;

#[Object]
impl SessionMutation {
    /// Opens a session, or asks for the second factor if the account has one.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn sign_in(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 254)))] email: String,
        #[graphql(directive = bounds::apply(length(1, 256)))] password: SecretText,
        #[graphql(
            desc = "Whether to answer with a cookie instead of tokens. For browsers.",
            default_with = "Some(false)"
        )]
        cookie: Option<bool>,
    ) -> Answer<SignIn> {
        answer(async {
            ctx.admit()?;
            let (request, kind) = (ctx.request(), kind(ctx, cookie)?);
            step(request, people::sign_in(request, kind, &email, &password.0).await?).await
        })
        .await
    }

    /// Completes a sign-in with the second factor: a code from the app, or a recovery code, which works once.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn complete_sign_in(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] challenge: SecretText,
        #[graphql(desc = "A six-digit code from the app.", directive = bounds::apply(length(1, 40)))]
        code: Option<SecretText>,
        #[graphql(directive = bounds::apply(length(1, 40)))] recovery_code: Option<SecretText>,
        #[graphql(
            desc = "Whether to answer with a cookie instead of tokens. For browsers.",
            default_with = "Some(false)"
        )]
        cookie: Option<bool>,
    ) -> Answer<SignIn> {
        answer(async {
            ctx.admit()?;
            let (request, kind) = (ctx.request(), kind(ctx, cookie)?);
            let ((Some(code), None) | (None, Some(code))) = (code, recovery_code) else {
                let detail = "Send either `code` or `recoveryCode`.";
                return Err(Problem::invalid_parameter("code", "REQUIRED", detail));
            };
            entered(request, people::complete_sign_in(request, kind, &challenge.0, &code.0).await?).await
        })
        .await
    }

    /// Exchanges the code from a sign-in at another provider, or from an operator's link, for a session.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn exchange_sign_in_code(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] code: SecretText,
        #[graphql(
            desc = "Whether to answer with a cookie instead of tokens. For browsers.",
            default_with = "Some(false)"
        )]
        cookie: Option<bool>,
    ) -> Answer<SignIn> {
        answer(async {
            ctx.admit()?;
            let (request, kind) = (ctx.request(), kind(ctx, cookie)?);
            step(request, people::exchange(request, kind, &code.0).await?).await
        })
        .await
    }

    /// Creates the first person and their organization, and signs the person in. Works once, while no user exists.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn complete_first_start(
        &self,
        ctx: &Context<'_>,
        input: CompleteFirstStartInput,
        #[graphql(
            desc = "Whether to answer with a cookie instead of tokens. For browsers.",
            default_with = "Some(false)"
        )]
        cookie: Option<bool>,
    ) -> Answer<SignIn> {
        answer(async {
            ctx.admit()?;
            let (request, kind) = (ctx.request(), kind(ctx, cookie)?);
            let founding = Founding::from(input);
            step(request, people::complete_first_start(request, kind, &founding).await?).await
        })
        .await
    }

    /// Renews a session. Each refresh token works once. Using it again ends the session, except shortly after
    /// the first use, in case the answer was lost.
    #[graphql(directive = open::apply("ANYONE"))]
    async fn refresh_session(
        &self,
        ctx: &Context<'_>,
        #[graphql(directive = bounds::apply(length(1, 256)))] refresh_token: SecretText,
    ) -> Answer<SignIn> {
        answer(async {
            ctx.admit()?;
            let (request, token) = (ctx.request(), refresh_token.0.expose_secret());
            shown(request, people::refresh_session(request, token).await?).await
        })
        .await
    }

    /// Replaces the caller's settings of the panel: an object of at most 64 KiB. Its `timeZone` is also used in mails.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn set_preferences(
        &self,
        ctx: &Context<'_>,
        preferences: Json<serde_json::Value>,
    ) -> Answer<Viewer> {
        answer(async {
            let (request, person) = (ctx.request(), ctx.admit()?.person()?);
            people::set_preferences(request, person, preferences.0).await?;
            Viewer::read(&request.core, person).await
        })
        .await
    }

    /// Ends the current session, and removes its cookie.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn sign_out(&self, ctx: &Context<'_>) -> Answer<bool> {
        answer(async {
            let person = ctx.admit()?.person()?;
            people::sign_out(ctx.request(), person).await?;
            if person.kind == SessionKind::Browser {
                ctx.request().jar.change(JarChange::Clear);
            }
            Ok(true)
        })
        .await
    }

    /// Ends one of the caller's sessions and returns its id.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn revoke_session(&self, ctx: &Context<'_>, id: SessionId) -> Answer<SessionId> {
        answer(async {
            people::revoke_session(ctx.request(), ctx.admit()?.person()?, id).await?;
            Ok(id)
        })
        .await
    }

    /// Ends all of the caller's sessions except the current one.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn revoke_other_sessions(&self, ctx: &Context<'_>) -> Answer<bool> {
        answer(async {
            people::revoke_other_sessions(ctx.request(), ctx.admit()?.person()?).await?;
            Ok(true)
        })
        .await
    }
}

/// The kind of session to open. Refuses a cookie that can't be set before anything is checked.
fn kind(ctx: &Context<'_>, cookie: Option<bool>) -> Result<SessionKind> {
    if cookie != Some(true) {
        return Ok(SessionKind::Tokens);
    }
    ctx.request().jar.require_open()?;
    Ok(SessionKind::Browser)
}

async fn entered(request: &Request, entered: SessionCredentials) -> Result<SignIn> {
    match entered {
        SessionCredentials::Tokens(signed_in) => shown(request, signed_in).await,
        SessionCredentials::Browser(in_browser) => {
            let user = people::user(&request.core, in_browser.user).await?;
            request.jar.change(JarChange::Set(in_browser.cookie));
            Ok(SignIn { user: Some(user), ..SignIn::default() })
        }
    }
}

async fn step(request: &Request, step: SignInResult) -> Result<SignIn> {
    match step {
        SignInResult::Session(session) => entered(request, session).await,
        SignInResult::Challenge(challenge) => {
            let token = challenge.token.expose_secret().to_owned();
            let challenge = SignInChallenge { token, expires_at: challenge.expires_at };
            Ok(SignIn { challenge: Some(challenge), ..SignIn::default() })
        }
    }
}

async fn shown(request: &Request, signed_in: SignedIn) -> Result<SignIn> {
    Ok(SignIn {
        access_token: Some(signed_in.access_token.expose_secret().to_owned()),
        access_token_expires_at: Some(signed_in.access_token_expires_at),
        refresh_token: Some(signed_in.refresh_token.expose_secret().to_owned()),
        refresh_token_expires_at: Some(signed_in.refresh_token_expires_at),
        user: Some(people::user(&request.core, signed_in.user).await?),
        challenge: None,
    })
}
