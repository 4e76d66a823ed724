//! The search over all kinds of records in the GraphQL schema.

use async_graphql::{Context, Object};

use crate::{
    base::{enums::RecordKind, ids::OrgId, permission::Permission},
    domain::search::{self, SearchHit},
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, items, length, range},
        permit::permit,
    },
};

#[derive(Default)]
pub struct SearchQuery;

#[Object]
impl SearchQuery {
    /// Finds records by name, title, short code or id, among those that the caller may see, best matches first: exact,
    /// by prefix, then anywhere. Searches the names of the newest 20,000 records of each kind.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn search(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(
            desc = "A name or its beginning or a part of it, a short code, or an id. Case and accents don't matter.",
            directive = bounds::apply(length(1, 200))
        )]
        q: String,
        #[graphql(desc = "Only records of these kinds.", directive = bounds::apply(items(20)))] kinds: Option<
            Vec<RecordKind>,
        >,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(20)", directive = bounds::apply(range(1, 100)))]
        limit: Option<i64>,
    ) -> Answer<Vec<SearchHit>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            search::find(&scope, &q, kinds.as_deref(), limit.unwrap_or(20)).await
        })
        .await
    }
}
