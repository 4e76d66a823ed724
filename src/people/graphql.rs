//! Members, sessions and service tokens in the schema.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use crate::{
    access::{Permission, Role},
    clock::Timestamp,
    graphql::{
        Answer, Enter, answer,
        bounds::{bounds, from, range},
        permit::permit,
        record::{Page, Record, Rows, Spec},
    },
    ids::{OrgId, UserId},
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
}
