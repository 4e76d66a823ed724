//! Channels in the schema.

use async_graphql::{Context, Object};

pub use super::record::{Channel, NotifyConversation};
use crate::{
    access::{Permission, Scope},
    graphql::{
        Answer, Enter, answer,
        bounds::{bounds, from},
        permit::permit,
        record::{List, One, Rows},
    },
    ids::{ChannelId, OrgId},
};

/// Reading channels.
#[derive(Default)]
pub struct ChannelQuery;

#[Object]
impl ChannelQuery {
    /// The organization's external channels, by id; those of one agent, where it is named.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn channels(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] agent_id: Option<crate::ids::AgentId>,
    ) -> Answer<List<Channel>> {
        answer(async {
            let external = connected(&ctx.enter(org_id).await?).filter("t.scope = 'EXTERNAL'", []);
            let external = external.filter_if("t.agent_id = ?", agent_id.map(|id| id.0));
            Ok(List(external.order_by("t.id")))
        })
        .await
    }

    /// One channel.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn channel(&self, ctx: &Context<'_>, org_id: OrgId, id: ChannelId) -> Answer<One<Channel>> {
        answer(async { Ok(shown(&ctx.enter(org_id).await?, id)) }).await
    }
}

fn connected(scope: &Scope) -> Rows<Channel> {
    Rows::of(scope).filter("t.archived_at IS NULL", [])
}

fn shown(scope: &Scope, id: ChannelId) -> One<Channel> {
    One::of(connected(scope).filter("t.id = ?", [id.0.into()]), id.0)
}
