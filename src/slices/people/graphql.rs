//! Members, invitations, and service tokens in the GraphQL schema.

use std::{sync::LazyLock, time::Duration};

use async_graphql::{Context, InputObject, MaybeUndefined, Object};

use super::{Delivery, EditToken, NewToken, OVERLAP, tokens::MAX_OVERLAP_SECONDS};
use crate::{
    base::{
        ids::{InvitationId, OrgId, TokenId, UserId},
        permission::{Permission, Role},
        time::Timestamp,
    },
    core::access::Scope,
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, from, items, length, name, range},
        permit::{confirmed_email, permit},
    },
    read::{One, Page, Record, Rows, Spec},
};

/// SQL for the path of a person's picture. `u` is the user.
pub const USER_AVATAR_URL: &str = "CASE WHEN u.avatar_version IS NULL THEN NULL ELSE '/avatars/user/' || u.id || '?v=' || u.avatar_version END";

/// A person in an organization. Related through `t.user_id`; `u` is the user.
pub struct Member;

impl Record for Member {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Member", "members t JOIN users u ON u.id = t.user_id", "A person in an organization.")
                .permission(Permission::MemberView)
                .column::<OrgId>("organization_id", "The organization.")
                .column::<UserId>("user_id", "Identifies the person.")
                .sql::<String>("name", "u.name", "The person's name.")
                .sql::<String>("email", "u.email", "The person's e-mail address.")
                .sql::<bool>(
                    "email_confirmed",
                    "(u.email_confirmed_at IS NOT NULL)",
                    "Whether the address has been confirmed.",
                )
                .sql::<Option<String>>("avatar_url", USER_AVATAR_URL, "The path of the person's picture.")
                .column::<Role>("role", "The person's role in the organization.")
                .column::<Timestamp>("created_at", "When the person became a member.")
        });
        &SPEC
    }
}

/// An invitation to an organization. Its link appears only in the mail.
pub struct Invitation;

impl Record for Invitation {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Invitation", "invitations t", "An invitation to join an organization.")
                .permission(Permission::MemberView)
                .column::<InvitationId>("id", "Identifies the invitation.")
                .column::<OrgId>("organization_id", "The organization.")
                .column::<String>("email", "The address it was sent to.")
                .column::<Role>("role", "The role the person will get.")
                .column::<Option<UserId>>("invited_by", "The user who sent it.")
                .one_by::<Member>(
                    "inviter",
                    "t.invited_by",
                    "t.user_id",
                    "The member who sent it. Null if that person has left.",
                )
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Option<Timestamp>>("sent_at", "When it was last mailed.")
                .column::<Timestamp>("expires_at", "When it expires.")
                .column::<Option<Timestamp>>("accepted_at", "When it was accepted.")
                .column::<Option<UserId>>("accepted_by", "The user who accepted it.")
                .column::<Option<Timestamp>>("revoked_at", "When it was revoked.")
        });
        &SPEC
    }
}

/// A credential for an integration.
pub struct ServiceToken;

impl Record for ServiceToken {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> =
            LazyLock::new(|| token_fields("ServiceToken", "A credential for an integration."));
        &SPEC
    }
}

/// A service token together with its secret, which is shown only once.
pub struct IssuedServiceToken;

impl Record for IssuedServiceToken {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            token_fields(
                "IssuedServiceToken",
                "A service token together with its secret, which is shown only once.",
            )
            .secret("token", "The secret to send as `Authorization: Bearer`. It is not shown again.")
        });
        &SPEC
    }
}

fn token_fields(type_name: &'static str, about: &'static str) -> Spec {
    Spec::new(type_name, "service_tokens t", about)
        .permission(Permission::TokenView)
        .column::<TokenId>("id", "Identifies the token.")
        .column::<OrgId>("organization_id", "The organization that the token belongs to.")
        .column::<String>("name", "What the token is for.")
        .column::<String>("hint", "Its last four characters.")
        .column::<Vec<String>>("permissions", "The permissions it was issued with. The policy's cap for service tokens applies as well.")
        .column::<Option<UserId>>("created_by", "The user who issued it.")
        .one_by::<Member>("creator", "t.created_by", "t.user_id", "The member who issued it. Null if that person has left.")
        .column::<Timestamp>("created_at", "When it was issued.")
        .column::<Option<Timestamp>>("expires_at", "When it expires.")
        .column::<Option<Timestamp>>("last_used_at", "When it was last used, accurate to the minute.")
        .column::<Option<Timestamp>>("revoked_at", "When it was revoked.")
        .column::<Option<Timestamp>>("rotated_at", "When its secret was last rotated.")
        .column::<Option<String>>("previous_hint", "The last four characters of the previous secret.")
        .column::<Option<Timestamp>>("previous_expires_at", "When the previous secret stops working.")
        .column::<Option<Timestamp>>(
            "previous_last_used_at",
            "When the previous secret was last used, accurate to the minute. Shows whether anyone still uses it.",
        )
}

/// Changes to a member.
#[derive(InputObject)]
pub struct UpdateMemberInput {
    /// The new role. It can't be higher than the caller's own.
    pub role: Role,
}

/// An invitation to send.
#[derive(InputObject)]
pub struct InviteMemberInput {
    /// The address to invite.
    #[graphql(directive = bounds::apply(length(3, 254)))]
    pub email: String,
    /// The role to give. It can't be higher than the caller's own.
    pub role: Role,
}

/// A new service token.
#[derive(InputObject)]
pub struct CreateServiceTokenInput {
    /// What the token is for.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// Its permissions. It can't have one that the caller lacks, or that the policy allows no service token.
    #[graphql(directive = bounds::apply(items(100)))]
    pub permissions: Vec<Permission>,
    /// When it expires. Null means never, if the installation allows that. If left out, the installation's default lifetime applies.
    pub expires_at: MaybeUndefined<Timestamp>,
}

/// Changes to a service token. Fields left out keep their value.
#[derive(InputObject)]
pub struct UpdateServiceTokenInput {
    /// What the token is for.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: Option<String>,
    /// The complete new list of its permissions. The caller must have every permission added.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub permissions: Option<Vec<Permission>>,
    /// When it expires. Null means never, if the installation allows that.
    pub expires_at: MaybeUndefined<Timestamp>,
}

/// How to rotate a service token.
#[derive(InputObject)]
pub struct RotateServiceTokenInput {
    /// How many seconds the previous secret keeps working. Defaults to a day; 0 ends it at once.
    #[graphql(directive = bounds::apply(range(0, MAX_OVERLAP_SECONDS)))]
    pub overlap_seconds: Option<i64>,
}

/// Queries for members, invitations, and service tokens.
#[derive(Default)]
pub struct PeopleQuery;

#[Object]
impl PeopleQuery {
    /// The organization's members, ordered by user id.
    #[graphql(directive = permit::apply(Permission::MemberView))]
    async fn members(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<Member>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Ok(Page::numbered(Rows::of(&scope).order_by("t.user_id"), page, limit))
        })
        .await
    }

    /// One member, by the person's id.
    #[graphql(directive = permit::apply(Permission::MemberView))]
    async fn member(&self, ctx: &Context<'_>, org_id: OrgId, user_id: UserId) -> Answer<One<Member>> {
        answer(async { Ok(member(&ctx.enter(org_id).await?, user_id)) }).await
    }

    /// The organization's invitations, newest first.
    #[graphql(directive = permit::apply(Permission::MemberView))]
    async fn invitations(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(
            desc = "Whether to include accepted and revoked invitations.",
            default_with = "Some(false)"
        )]
        include_closed: Option<bool>,
    ) -> Answer<Page<Invitation>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).order_by("t.id DESC");
            let open = "t.accepted_at IS NULL AND t.revoked_at IS NULL";
            let rows = if include_closed == Some(true) { rows } else { rows.filter(open, []) };
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// The organization's service tokens, newest first.
    #[graphql(directive = permit::apply(Permission::TokenView))]
    async fn service_tokens(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether to include revoked tokens.", default_with = "Some(false)")]
        include_revoked: Option<bool>,
    ) -> Answer<Page<ServiceToken>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).order_by("t.id DESC");
            let rows =
                if include_revoked == Some(true) { rows } else { rows.filter("t.revoked_at IS NULL", []) };
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }
}

fn member(scope: &Scope, user: UserId) -> One<Member> {
    One::of(Rows::of(scope).filter("t.user_id = ?", [user.0.into()]), user.0)
}

/// Mutations for members, invitations, and service tokens.
#[derive(Default)]
pub struct PeopleMutation;

#[Object]
impl PeopleMutation {
    /// Changes a member's role. Nobody can give or take away a role higher than their own, and at least one
    /// OWNER must remain.
    #[graphql(directive = permit::apply(Permission::MemberEdit))]
    async fn update_member(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        user_id: UserId,
        input: UpdateMemberInput,
    ) -> Answer<One<Member>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::update_member(&scope, user_id, input.role).await?;
            Ok(member(&scope, user_id))
        })
        .await
    }

    /// Removes a member from the organization and returns the person's id.
    #[graphql(directive = permit::apply(Permission::MemberEdit))]
    async fn remove_member(&self, ctx: &Context<'_>, org_id: OrgId, user_id: UserId) -> Answer<UserId> {
        answer(async {
            super::remove_member(&ctx.enter(org_id).await?, user_id).await?;
            Ok(user_id)
        })
        .await
    }

    /// Invites a person by mail. The link works once, within a week.
    #[graphql(directive = permit::apply(Permission::MemberEdit), directive = confirmed_email::apply())]
    async fn invite_member(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: InviteMemberInput,
    ) -> Answer<One<Invitation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let (id, _) = super::invite(&scope, &input.email, input.role, Delivery::Mail).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sends an invitation again. It is valid for another week, and earlier links stop working.
    #[graphql(directive = permit::apply(Permission::MemberEdit), directive = confirmed_email::apply())]
    async fn resend_invitation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: InvitationId,
    ) -> Answer<One<Invitation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::resend_invitation(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Revokes an invitation.
    #[graphql(directive = permit::apply(Permission::MemberEdit))]
    async fn revoke_invitation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: InvitationId,
    ) -> Answer<One<Invitation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::revoke_invitation(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Removes the caller from the organization. At least one OWNER must remain.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn leave_organization(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<OrgId> {
        answer(async {
            super::leave(&ctx.enter(org_id).await?).await?;
            Ok(org_id)
        })
        .await
    }

    /// Issues a service token. Its secret is shown only once, in this answer.
    #[graphql(directive = permit::apply(Permission::TokenEdit), directive = confirmed_email::apply())]
    async fn create_service_token(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateServiceTokenInput,
    ) -> Answer<One<IssuedServiceToken>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let new =
                NewToken { name: input.name, permissions: input.permissions, expires_at: input.expires_at };
            let (id, token) = super::create_token(&scope, new).await?;
            Ok(One::by_id(&scope, id).with_secret(token))
        })
        .await
    }

    /// Issues a new secret for a service token, shown only once. The old secret works until the overlap ends. A
    /// token that expires starts its full lifetime again.
    #[graphql(directive = permit::apply(Permission::TokenEdit), directive = confirmed_email::apply())]
    async fn rotate_service_token(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: TokenId,
        input: Option<RotateServiceTokenInput>,
    ) -> Answer<One<IssuedServiceToken>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let seconds = input.and_then(|input| input.overlap_seconds);
            let overlap = seconds.map_or(OVERLAP, |seconds| Duration::from_secs(seconds.max(0) as u64));
            let token = super::rotate_token(&scope, id, overlap).await?;
            Ok(One::by_id(&scope, id).with_secret(token))
        })
        .await
    }

    /// Changes a service token's name, permissions, or expiry.
    #[graphql(directive = permit::apply(Permission::TokenEdit), directive = confirmed_email::apply())]
    async fn update_service_token(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: TokenId,
        input: UpdateServiceTokenInput,
    ) -> Answer<One<ServiceToken>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let UpdateServiceTokenInput { name, permissions, expires_at } = input;
            super::update_token(&scope, id, EditToken { name, permissions, expires_at }).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Revokes a service token at once and for good.
    #[graphql(directive = permit::apply(Permission::TokenEdit))]
    async fn revoke_service_token(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: TokenId,
    ) -> Answer<One<ServiceToken>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::revoke_token(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
