//! The dashboard in the GraphQL schema.

use async_graphql::{Context, Object};

use crate::{
    base::{ids::OrgId, permission::Permission},
    domain::dashboard::{self, Overview, SelectedParts},
    resolvers::{Answer, Enter, answer, permit::permit},
};

#[derive(Default)]
pub struct DashboardQuery;

#[Object]
impl DashboardQuery {
    /// What needs attention, in numbers. A part is null if the caller may not see it.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn overview(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<Overview> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let selected = |name| ctx.look_ahead().field(name).exists();
            let selected = SelectedParts {
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
            Box::pin(dashboard::overview(&scope, selected)).await
        })
        .await
    }
}
