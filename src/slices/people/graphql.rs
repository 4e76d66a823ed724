//! Members and service tokens in the schema.

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

/// The SQL of a person's picture: `u` is the user.
pub const USER_AVATAR_URL: &str = "CASE WHEN u.avatar_version IS NULL THEN NULL ELSE '/avatars/user/' || u.id || '?v=' || u.avatar_version END";

/// A person in an organization. Related to by `t.user_id`; `u` is the user.
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
                    "Whether the address is known to be theirs.",
                )
                .sql::<Option<String>>("avatar_url", USER_AVATAR_URL, "The person's picture: a path.")
                .column::<Role>("role", "What the person is in the organization.")
                .column::<Timestamp>("created_at", "When the person became a member.")
        });
        &SPEC
    }
}

/// An invitation into an organization. Its link is in a mail, and nowhere else.
pub struct Invitation;

impl Record for Invitation {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Invitation", "invitations t", "An invitation into an organization.")
                .permission(Permission::MemberView)
                .column::<InvitationId>("id", "Identifies the invitation.")
                .column::<OrgId>("organization_id", "The organization.")
                .column::<String>("email", "For whom it is.")
                .column::<Role>("role", "What they will be in the organization.")
                .column::<Option<UserId>>("invited_by", "Who sent it.")
                .one_by::<Member>("inviter", "t.invited_by", "t.user_id", "Who sent it, if still a member.")
                .column::<Timestamp>("created_at", "When it was made.")
                .column::<Option<Timestamp>>("sent_at", "When its mail last left.")
                .column::<Timestamp>("expires_at", "Until when it is good.")
                .column::<Option<Timestamp>>("accepted_at", "When it was accepted.")
                .column::<Option<UserId>>("accepted_by", "Who has accepted it.")
                .column::<Option<Timestamp>>("revoked_at", "When it was taken back.")
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

/// A service token, and its text this once.
pub struct IssuedServiceToken;

impl Record for IssuedServiceToken {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            token_fields("IssuedServiceToken", "A service token, and its text this once.")
                .secret("token", "What requests carry as `Authorization: Bearer`. It is not shown again.")
        });
        &SPEC
    }
}

fn token_fields(type_name: &'static str, about: &'static str) -> Spec {
    Spec::new(type_name, "service_tokens t", about)
        .permission(Permission::TokenView)
        .column::<TokenId>("id", "Identifies the token.")
        .column::<OrgId>("organization_id", "The organization that the token belongs to.")
        .column::<String>("name", "What it is for.")
        .column::<String>("hint", "Its last four characters.")
        .column::<Vec<String>>("permissions", "What it was issued for; the policy's cap applies besides.")
        .column::<Option<UserId>>("created_by", "Who issued it.")
        .one_by::<Member>("creator", "t.created_by", "t.user_id", "Who issued it, if still a member.")
        .column::<Timestamp>("created_at", "When it was issued.")
        .column::<Option<Timestamp>>("expires_at", "When it ends.")
        .column::<Option<Timestamp>>("last_used_at", "When it was last used, to the minute.")
        .column::<Option<Timestamp>>("revoked_at", "When it was revoked.")
        .column::<Option<Timestamp>>("rotated_at", "When it was last given a new secret.")
        .column::<Option<String>>("previous_hint", "The last four characters of the secret before.")
        .column::<Option<Timestamp>>("previous_expires_at", "Until when the secret before works.")
        .column::<Option<Timestamp>>(
            "previous_last_used_at",
            "When the secret before was last used, to the minute: whether somebody still does.",
        )
}

/// What an edit of a member changes.
#[derive(InputObject)]
pub struct UpdateMemberInput {
    /// What the person is from now on; not above the caller's own role.
    pub role: Role,
}

/// Whom to invite, and as what.
#[derive(InputObject)]
pub struct InviteMemberInput {
    /// The address that the invitation goes to.
    #[graphql(directive = bounds::apply(length(3, 254)))]
    pub email: String,
    /// What they will be; not above the caller's own role.
    pub role: Role,
}

/// What a new service token is given.
#[derive(InputObject)]
pub struct CreateServiceTokenInput {
    /// What it is for.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// What it may do: no more than the caller, and no more than the policy allows any token.
    #[graphql(directive = bounds::apply(items(100)))]
    pub permissions: Vec<Permission>,
    /// When it ends. Null: never, where the installation allows that. Left out: after the installation's default.
    pub expires_at: MaybeUndefined<Timestamp>,
}

/// What an edit of a service token changes; what is left out stays.
#[derive(InputObject)]
pub struct UpdateServiceTokenInput {
    /// What it is for.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: Option<String>,
    /// What it may do from now on, all of it: what is added, the caller may do as well.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub permissions: Option<Vec<Permission>>,
    /// When it ends. Null: never, where the installation allows that.
    pub expires_at: MaybeUndefined<Timestamp>,
}

/// How a service token is given a new secret.
#[derive(InputObject)]
pub struct RotateServiceTokenInput {
    /// For how long the secret of before works as well: a day if left out, 0 for no longer.
    #[graphql(directive = bounds::apply(range(0, MAX_OVERLAP_SECONDS)))]
    pub overlap_seconds: Option<i64>,
}

/// Reading who is in an organization.
#[derive(Default)]
pub struct PeopleQuery;

#[Object]
impl PeopleQuery {
    /// The organization's members, by their ids.
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

    /// The organization's invitations, the newest first.
    #[graphql(directive = permit::apply(Permission::MemberView))]
    async fn invitations(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(
            desc = "Whether those that were accepted or taken back are listed as well.",
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

    /// The organization's service tokens, the newest first.
    #[graphql(directive = permit::apply(Permission::TokenView))]
    async fn service_tokens(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether revoked tokens are listed as well.", default_with = "Some(false)")]
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

/// Changing who is in an organization, and its service tokens.
#[derive(Default)]
pub struct PeopleMutation;

#[Object]
impl PeopleMutation {
    /// Changes what a member is. Nobody gives or takes a role above their own, and one OWNER stays.
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

    /// Takes a member out of the organization; answers with the person's id.
    #[graphql(directive = permit::apply(Permission::MemberEdit))]
    async fn remove_member(&self, ctx: &Context<'_>, org_id: OrgId, user_id: UserId) -> Answer<UserId> {
        answer(async {
            super::remove_member(&ctx.enter(org_id).await?, user_id).await?;
            Ok(user_id)
        })
        .await
    }

    /// Invites somebody by mail. The link is good for a week, once.
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

    /// Sends an invitation again: it is good for another week, and earlier links no longer work.
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

    /// Takes an invitation back.
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

    /// Takes the caller out of the organization. One OWNER stays.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn leave_organization(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<OrgId> {
        answer(async {
            super::leave(&ctx.enter(org_id).await?).await?;
            Ok(org_id)
        })
        .await
    }

    /// Issues a service token. Its text in the answer is shown this once.
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

    /// Gives a service token a new secret, shown this once; the one of before works until the overlap ends. A token
    /// that ends gets the lifetime that it had anew.
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

    /// Changes what a service token is called, may do, or when it ends.
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

    /// Revokes a service token, at once and for good.
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
