//! Searching and counting in the GraphQL schema.

use async_graphql::{Context, Object};

use crate::{
    base::{enums::RecordKind, ids::OrgId, permission::Permission},
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, items, length, range},
        permit::permit,
    },
    slices::finding::{
        overview::{self, Overview, Wanted},
        search::{self, SearchHit},
    },
};

/// Finding and counting.
#[derive(Default)]
pub struct FindingQuery;

#[Object]
impl FindingQuery {
    /// What needs attention, in numbers. A part is null if the caller may not see it.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn overview(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<Overview> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let selected = |name| ctx.look_ahead().field(name).exists();
            let wanted = Wanted {
                approvals: selected("pendingApprovals"),
                agents: selected("agents"),
                servers: selected("servers"),
                channels: selected("channelsInactive"),
                open: selected("openConversations"),
                unread: selected("unreadConversations"),
                failed: selected("deliveriesFailed"),
                undelivered: selected("undeliveredConversations"),
                begun: selected("begunTurns"),
                requests: selected("waitingRequests"),
            };
            Box::pin(overview::of(&scope, wanted)).await
        })
        .await
    }

    /// Finds records by name, title, short code or id, among those that the caller may see, best first: what is named exactly
    /// so, what begins so, what contains it. Names are looked for among the newest 20,000 records of each kind.
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
