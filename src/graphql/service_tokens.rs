//! Service tokens in the GraphQL schema.

use std::{sync::LazyLock, time::Duration};

use async_graphql::{Context, InputObject, MaybeUndefined, Object};

use super::people::Member;
use crate::{
    base::{
        enums::{ListSort, RecordKind},
        ids::{OrgId, TokenId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::service_tokens::{self, EditToken, MAX_OVERLAP_SECONDS, NewToken, OVERLAP},
    read::{One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, items, length, name, range},
        permit::{confirmed_email, permit},
    },
};

pub struct ServiceToken;

impl Record for ServiceToken {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            token_fields("ServiceToken", "A credential for an integration.")
                .revision(RecordKind::ServiceToken)
        });
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

#[derive(Default)]
pub struct ServiceTokenQuery;

#[Object]
impl ServiceTokenQuery {
    /// The organization's service tokens; in their own order the newest first.
    #[graphql(directive = permit::apply(Permission::TokenView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn service_tokens(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether to include revoked tokens.", default_with = "Some(false)")]
        include_revoked: Option<bool>,
        #[graphql(desc = "Only those whose name contains every word. Case and accents don't matter.", directive = bounds::apply(length(1, 200)))]
        search: Option<String>,
        #[graphql(desc = "The order.", default_with = "Some(ListSort::Created)")] sort: Option<ListSort>,
    ) -> Answer<Page<ServiceToken>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).found(&["t.name_folded"], search.as_deref());
            let rows = rows.listed(sort, "t.id DESC", "t.name_folded, t.id");
            let rows =
                if include_revoked == Some(true) { rows } else { rows.filter("t.revoked_at IS NULL", []) };
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// One service token, revoked or not.
    #[graphql(directive = permit::apply(Permission::TokenView))]
    async fn service_token(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: TokenId,
    ) -> Answer<One<ServiceToken>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

#[derive(Default)]
pub struct ServiceTokenMutation;

#[Object]
impl ServiceTokenMutation {
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
            let (id, token) = service_tokens::create(&scope, new).await?;
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
            let token = service_tokens::rotate(&scope, id, overlap).await?;
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
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<ServiceToken>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let UpdateServiceTokenInput { name, permissions, expires_at } = input;
            let edited = scope.if_revision(RecordKind::ServiceToken, id, if_revision);
            let done = service_tokens::update(&edited, id, EditToken { name, permissions, expires_at }).await;
            One::after(&scope, id, Permission::TokenView, done)
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
            service_tokens::revoke(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
