//! Agents in the GraphQL schema: queries, mutations, and subscriptions.

use async_graphql::{Context, Object, Subscription};
use futures::{Stream, StreamExt};

pub use super::{
    input::{CreateAgentInput, SetAgentsInput, UpdateAgentInput},
    record::{Agent, AgentAssignment, AgentRevision, AgentSummary, assigned, assignment_count, version},
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
        bounds::{bounds, from, name, range},
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

    /// The revisions of an agent, newest first. A deleted agent keeps its own.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agent_revisions(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<AgentRevision>> {
        answer(async {
            let count = "SELECT (SELECT COUNT(*) FROM agent_revisions r WHERE r.organization_id = a.organization_id \
                         AND r.agent_id = a.id) FROM agents a WHERE a.organization_id = $1 AND a.id = ?";
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .parts_of("agent", agent_id.0, count, [agent_id.into()])
                .filter("t.agent_id = ?", [agent_id.into()])
                .order_by("t.number DESC");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// One revision of an agent.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agent_revision(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
        #[graphql(desc = "Its number.", directive = bounds::apply(from(1)))] revision: i64,
    ) -> Answer<One<AgentRevision>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .filter("t.agent_id = ? AND t.number = ?", [agent_id.into(), revision.into()]);
            Ok(One::of(rows, revision))
        })
        .await
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
        #[graphql(desc = "Why. The revision keeps it.", directive = bounds::apply(name(1000)))]
        reason: Option<String>,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::update(&scope, id, input, reason).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Makes an agent again what it was in an earlier revision, as a new revision: its settings, credentials, MCP servers
    /// and skills (in their present versions). Its model credential stays as it is. Checked like an edit.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn revert_agent(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AgentId,
        #[graphql(desc = "The number of the earlier revision.", directive = bounds::apply(from(1)))]
        revision: i64,
        #[graphql(desc = "Why. The revision keeps it.", directive = bounds::apply(name(1000)))]
        reason: String,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::revert(&scope, id, revision, reason).await?;
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
