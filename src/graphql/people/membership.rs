//! Members and invitations in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, InputObject, Object};

use crate::{
    base::{
        enums::ListSort,
        ids::{InvitationId, OrgId, UserId},
        permission::{Permission, Role},
        time::Timestamp,
    },
    core::access::Scope,
    domain::people::{self, Delivery},
    read::{One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, range},
        permit::{confirmed_email, permit},
    },
};

/// SQL for the path of a person's picture. `u` is the user.
pub const USER_AVATAR_URL: &str = "CASE WHEN u.avatar_version IS NULL THEN NULL ELSE '/avatars/user/' || u.id || '?v=' || u.avatar_version END";

/// When a session of the person was last used.
const LAST_SEEN: &str = "(SELECT MAX(s.last_used_at) FROM sessions s WHERE s.user_id = t.user_id)";

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
                .sql::<bool>(
                    "has_second_factor",
                    "(u.totp_confirmed_at IS NOT NULL)",
                    "Whether signing in requires a second factor.",
                )
                .sql::<Option<Timestamp>>("last_seen_at", LAST_SEEN, "When the person last used a session.")
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

#[derive(Default)]
pub struct MembershipQuery;

#[Object]
impl MembershipQuery {
    /// The organization's members.
    #[graphql(directive = permit::apply(Permission::MemberView))]
    async fn members(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Only those whose name or address contains every word. Case and accents don't matter.", directive = bounds::apply(length(1, 200)))]
        search: Option<String>,
        #[graphql(desc = "The order.", default_with = "Some(ListSort::Created)")] sort: Option<ListSort>,
    ) -> Answer<Page<Member>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?);
            let rows = rows.found(&["u.name_folded", "u.email_folded"], search.as_deref());
            Ok(Page::numbered(rows.listed(sort, "t.user_id", "u.name_folded, t.user_id"), page, limit))
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
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
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

    /// One invitation, open or not.
    #[graphql(directive = permit::apply(Permission::MemberView))]
    async fn invitation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: InvitationId,
    ) -> Answer<One<Invitation>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

fn member(scope: &Scope, user: UserId) -> One<Member> {
    One::of(Rows::of(scope).filter("t.user_id = ?", [user.0.into()]), user.0)
}

#[derive(Default)]
pub struct MembershipMutation;

#[Object]
impl MembershipMutation {
    /// Changes a member's role. No one can give or take away a role higher than their own, and at least one
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
            people::update_member(&scope, user_id, input.role).await?;
            Ok(member(&scope, user_id))
        })
        .await
    }

    /// Removes a member from the organization and returns the person's id.
    #[graphql(directive = permit::apply(Permission::MemberEdit))]
    async fn remove_member(&self, ctx: &Context<'_>, org_id: OrgId, user_id: UserId) -> Answer<UserId> {
        answer(async {
            people::remove_member(&ctx.enter(org_id).await?, user_id).await?;
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
            let (id, _) = people::invite(&scope, &input.email, input.role, Delivery::Mail).await?;
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
            people::resend_invitation(&scope, id).await?;
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
            people::revoke_invitation(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Removes the caller from the organization. At least one OWNER must remain.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn leave_organization(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<OrgId> {
        answer(async {
            people::leave(&ctx.enter(org_id).await?).await?;
            Ok(org_id)
        })
        .await
    }
}
