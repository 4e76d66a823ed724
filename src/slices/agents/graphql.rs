//! Agents in the GraphQL schema: queries, mutations, and subscriptions.

use async_graphql::{Context, Object, Subscription};
use futures::{Stream, StreamExt};

pub use super::{
    input::{CreateAgentInput, SetAgentsInput, UpdateAgentInput},
    record::{Agent, AgentAssignment, AgentSummary, assigned, assignment_count},
};
use crate::{
    base::{
        enums::RecordKind,
        ids::{AgentId, OrgId},
        permission::Permission,
        problem::Result,
    },
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, from, range},
        permit::permit,
        watch,
    },
    read::{One, Page, Rows},
};

/// Reading agents.
#[derive(Default)]
pub struct AgentQuery;

#[Object]
impl AgentQuery {
    /// The organization's agents, ordered by id.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agents(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<Agent>> {
        answer(async {
            Ok(Page::numbered(Rows::of(&ctx.enter(org_id).await?).order_by("t.id"), page, limit))
        })
        .await
    }

    /// One agent.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

/// Changing agents.
#[derive(Default)]
pub struct AgentMutation;

#[Object]
impl AgentMutation {
    /// Creates a stopped agent.
    #[graphql(directive = permit::apply(Permission::AgentCreate))]
    async fn create_agent(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateAgentInput,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = super::create(&scope, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits an agent.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn update_agent(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AgentId,
        input: UpdateAgentInput,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::update(&scope, id, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Launches a stopped or failed agent. Its status is SPAWNING right away.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn start_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::start(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Stops an agent.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn stop_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::stop(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Pauses a running agent. It stays in memory but takes no turns.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn pause_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::pause(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Resumes a paused agent, so that it takes turns again.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn resume_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::resume(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Deletes an agent that isn't running and returns its id. Its conversations are kept.
    #[graphql(directive = permit::apply(Permission::AgentDelete))]
    async fn delete_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<AgentId> {
        answer(async {
            super::delete(&ctx.enter(org_id).await?, id).await?;
            Ok(id)
        })
        .await
    }
}

/// Watching agents.
#[derive(Default)]
pub struct AgentSubscription;

#[Subscription]
impl AgentSubscription {
    /// Sends an agent's record each time it changes. Without an id, sends every agent's.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agent_changed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: Option<AgentId>,
    ) -> Result<impl Stream<Item = Result<One<Agent>>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        let changes = watch(&scope, Permission::AgentView, RecordKind::Agent, move |event| {
            id.is_none_or(|id| id.0 == event.id)
        });
        Ok(changes.map(|change| change.map(|(scope, id)| One::by_id(&scope, id))))
    }
}
