//! Searching and counting in the GraphQL schema.

use async_graphql::{Context, Object, SimpleObject};

use super::{
    overview::{self, Wanted},
    search,
};
use crate::{
    base::{
        enums::{AgentStatus, RecordKind, Severity},
        ids::{AgentId, Id, OrgId},
        permission::Permission,
        time::Timestamp,
    },
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, items, length, range},
        permit::permit,
    },
};

/// How many hits a search answers unless it says otherwise.
const HITS: i64 = 20;

/// What needs attention, in numbers. A part is null if the caller may not see it.
#[derive(SimpleObject)]
pub struct Overview {
    /// The decisions that agents wait for.
    pub pending_approvals: Option<PendingApprovals>,
    /// The number of agents in each state.
    pub agents: Option<Vec<AgentStatusCount>>,
    /// The servers.
    pub servers: Option<ServerCounts>,
    /// The number of channels through which no messages pass.
    pub channels_inactive: Option<i64>,
    /// The number of conversations that are neither resolved nor archived.
    pub open_conversations: Option<i64>,
    /// The number of conversations that the caller has not read to the end. Null for a service token.
    pub unread_conversations: Option<i64>,
    /// The number of messages of the last seven days that could not be delivered.
    pub deliveries_failed: Option<i64>,
    /// The number of conversations with such a message. `conversationFeed(undelivered: true)` has them.
    pub undelivered_conversations: Option<i64>,
    /// The number of turns that agents have begun. Stopping the organization cancels them.
    pub begun_turns: Option<i64>,
    /// The number of decisions that agents wait for in these turns. Stopping the organization withdraws them.
    pub waiting_requests: Option<i64>,
}

/// The decisions that agents wait for.
#[derive(SimpleObject)]
pub struct PendingApprovals {
    /// The number of them.
    pub total: i64,
    /// How many there are of each severity, the highest first.
    pub by_severity: Vec<SeverityCount>,
    /// Those assigned to the caller.
    pub mine: i64,
    /// When the next of them expires.
    pub next_expires_at: Option<Timestamp>,
}

/// A number of approvals.
#[derive(SimpleObject)]
pub struct SeverityCount {
    /// The severity.
    pub severity: Severity,
    /// How many approvals have it.
    pub count: i64,
}

/// A number of agents.
#[derive(SimpleObject)]
pub struct AgentStatusCount {
    /// The state.
    pub status: AgentStatus,
    /// How many agents are in it.
    pub count: i64,
}

/// The servers, in numbers.
#[derive(SimpleObject)]
pub struct ServerCounts {
    /// The number of servers.
    pub total: i64,
    /// The number of those whose host was connected and is not now.
    pub offline: i64,
    /// The number of those whose host has not connected yet.
    pub pending: i64,
}

/// A record that a search has found.
#[derive(SimpleObject)]
pub struct SearchHit {
    /// The kind of record.
    pub kind: RecordKind,
    /// Its id; for a member, the user's.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// What tells it from others of the same name.
    pub detail: Option<String>,
    /// The short code.
    #[graphql(name = "ref")]
    pub reference: Option<String>,
    /// The agent it belongs to.
    pub agent_id: Option<AgentId>,
}

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
        #[graphql(desc = "The maximum number to return.", default_with = "Some(HITS)", directive = bounds::apply(range(1, 100)))]
        limit: Option<i64>,
    ) -> Answer<Vec<SearchHit>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            search::find(&scope, &q, kinds.as_deref(), limit.unwrap_or(HITS)).await
        })
        .await
    }
}
