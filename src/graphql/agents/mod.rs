//! Agents in the GraphQL schema: queries, mutations, and subscriptions.

mod list;
mod record;

use async_graphql::{Context, Object, Subscription};
use futures::{Stream, StreamExt};

use self::list::Filter;
pub use self::record::{
    Agent, AgentAssignment, AgentLaunch, AgentRevision, AgentSummary, assigned, assignment_count, version,
};
use crate::{
    base::{
        enums::{AgentSort, AgentStatus, RecordKind, RestartPolicy, SortOrder},
        ids::{AgentId, OrgId, ServerId},
        permission::Permission,
        problem::Result,
    },
    domain::{
        agents::{self, CreateAgentInput, UpdateAgentInput},
        launch::{self, StartedAgents},
    },
    read::{Feed, List, One, Page, Rows},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, items, length, name, range},
        permit::permit,
        subscribe_to_kind,
    },
};

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
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<Agent>> {
        answer(async {
            Ok(Page::numbered(Rows::of(&ctx.enter(org_id).await?).order_by("t.id"), page, limit))
        })
        .await
    }

    /// Agents, with filters, in pages that do not shift.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn agent_feed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The start of the page: `next` of the previous page.", directive = bounds::apply(length(1, 10_000)))]
        after: Option<String>,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(50)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
        #[graphql(desc = "Only agents in one of these states.", directive = bounds::apply(items(6)))] status: Option<
            Vec<AgentStatus>,
        >,
        #[graphql(desc = "Only agents on this server.")] server_id: Option<ServerId>,
        #[graphql(
            desc = "Only agents whose name contains every word. Case and accents don't matter.",
            directive = bounds::apply(length(1, 200))
        )]
        search: Option<String>,
        #[graphql(desc = "The sort key.", default_with = "Some(AgentSort::Name)")] sort: Option<AgentSort>,
        #[graphql(desc = "The direction, if not the key's own.")] order: Option<SortOrder>,
    ) -> Answer<Feed<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let rows = list::rows(&scope, &Filter { status, server_id, search });
            let keys = list::keys(sort.unwrap_or(AgentSort::Name), order);
            Feed::after(rows, keys, after.as_deref(), limit.unwrap_or(50))
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
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
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

    /// The last 50 launches of an agent, newest first, each with its course and the reason of its end. Those of a
    /// deleted agent are kept.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn agent_launches(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
        #[graphql(default_with = "Some(20)", directive = bounds::apply(range(1, 200)))] limit: Option<i64>,
    ) -> Answer<List<AgentLaunch>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            agents::require_agent(&scope, agent_id).await?;
            let rows = Rows::of(&scope).filter("t.agent_id = ?", [agent_id.into()]);
            let limit = limit.map_or(20, i64::unsigned_abs);
            Ok(List::first(rows.order_by("t.generation DESC"), limit))
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
        #[graphql(desc = "Its number.", directive = bounds::apply(at_least(1)))] revision: i64,
    ) -> Answer<One<AgentRevision>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .filter("t.agent_id = ? AND t.number = ?", [agent_id.into(), revision.into()]);
            Ok(One::of(rows, revision))
        })
        .await
    }
}

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
        #[graphql(
            desc = "When it is restarted automatically.",
            default_with = "Some(RestartPolicy::OnFailure)"
        )]
        restart_policy: Option<RestartPolicy>,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let policy = restart_policy.unwrap_or(RestartPolicy::OnFailure);
            let id = agents::create(&scope, input, policy).await?;
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
        #[graphql(desc = "The reason, stored with the revision.", directive = bounds::apply(name(1000)))]
        reason: Option<String>,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::Agent, id, if_revision);
            let done = agents::update(&edited, id, input, reason).await;
            One::after(&scope, id, Permission::AgentView, done)
        })
        .await
    }

    /// Gives an agent the settings, credentials, MCP servers and skills of an earlier revision, as a new revision.
    /// Skills keep their current versions, and the model credential stays as it is. Refused if an edit to the same
    /// values would be refused.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn revert_agent(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AgentId,
        #[graphql(desc = "The number of the earlier revision.", directive = bounds::apply(at_least(1)))]
        revision: i64,
        #[graphql(desc = "The reason, stored with the revision.", directive = bounds::apply(name(1000)))]
        reason: String,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            agents::revert(&scope, id, revision, reason)
                .await
                .map_err(|problem| problem.blame_argument("revision"))?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Launches a stopped or failed agent. Its status is SPAWNING right away.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn start_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            launch::start(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Launches all stopped and failed agents of a server, 100 at a time. Names the agents that can't start, with the
    /// reason: they are up already, or were stopped by a spending limit.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn start_agents(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        server_id: ServerId,
    ) -> Answer<StartedAgents> {
        answer(async { launch::start_all(&ctx.enter(org_id).await?, server_id).await }).await
    }

    /// Stops an agent. It stays down, even if a restart was planned.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn stop_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            launch::stop(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Restarts an agent: it is stopped, and launched again as soon as it is down. Until then its status is STOPPING
    /// with the reason RESTARTING, and stopping it cancels the restart. A stopped or failed agent is launched right
    /// away.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn restart_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            launch::restart(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Pauses a running agent. It stays in memory but takes no turns.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn pause_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            launch::pause(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Resumes a paused agent, so that it takes turns again.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn resume_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            launch::resume(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Deletes an agent that isn't running and returns its id. Its conversations are kept.
    #[graphql(directive = permit::apply(Permission::AgentDelete))]
    async fn delete_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<AgentId> {
        answer(async {
            agents::delete(&ctx.enter(org_id).await?, id).await?;
            Ok(id)
        })
        .await
    }

    /// Restores a deleted agent. It is stopped, and the channels that the deletion switched off are on again.
    #[graphql(directive = permit::apply(Permission::AgentDelete))]
    async fn restore_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Box::pin(agents::restore(&scope, id)).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}

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
        let changes = subscribe_to_kind(&scope, Permission::AgentView, RecordKind::Agent, move |event| {
            id.is_none_or(|id| id.0 == event.id)
        })?;
        Ok(changes.map(|change| change.map(|(scope, id)| One::by_id(&scope, id))))
    }
}
