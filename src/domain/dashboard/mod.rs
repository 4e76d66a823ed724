//! `overview`: what needs attention, in numbers. Each part is one statement, runs only if it is selected, and requires the
//! permission that the records require.

mod queries;

use async_graphql::SimpleObject;

use crate::{
    base::{
        enums::{AgentStatus, Severity},
        permission::Permission,
        problem::Result,
        time::Timestamp,
    },
    core::access::Scope,
    domain::conversations,
};

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

/// Which parts are selected.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Pending approvals.
    pub approvals: bool,
    /// Agents by state.
    pub agents: bool,
    /// Servers.
    pub servers: bool,
    /// Channels through which no messages pass.
    pub channels: bool,
    /// Open conversations.
    pub open: bool,
    /// Unread conversations.
    pub unread: bool,
    /// Deliveries that failed.
    pub failed: bool,
    /// Conversations with messages that were not delivered.
    pub undelivered: bool,
    /// Turns that have begun.
    pub begun: bool,
    /// Requests that wait.
    pub requests: bool,
}

/// The numbers of the organization that the caller may see, those that are wanted.
pub async fn overview(scope: &Scope, wanted: Wanted) -> Result<Overview> {
    let may = |wanted: bool, permission| wanted && scope.may(permission);
    let talk = |wanted| may(wanted, Permission::AgentOutputView);
    let is_person = scope.request.caller.user().is_some();
    let (approvals, agents, servers, channels, open, unread, failed, undelivered, begun, requests) = tokio::try_join!(
        part(may(wanted.approvals, Permission::ApprovalView), pending(scope)),
        part(may(wanted.agents, Permission::AgentView), by_status(scope)),
        part(may(wanted.servers, Permission::ServerView), servers(scope)),
        part(may(wanted.channels, Permission::AgentView), queries::inactive_channels(scope)),
        part(talk(wanted.open), queries::open_conversations(scope)),
        part(talk(wanted.unread) && is_person, conversations::count_unread(scope)),
        part(talk(wanted.failed), conversations::count_failed(scope)),
        part(talk(wanted.undelivered), conversations::count_undelivered(scope)),
        part(may(wanted.begun, Permission::AgentView), queries::begun_turns(scope)),
        part(may(wanted.requests, Permission::AgentView), queries::waiting_requests(scope)),
    )?;
    Ok(Overview {
        pending_approvals: approvals,
        agents,
        servers,
        channels_inactive: channels,
        open_conversations: open,
        unread_conversations: unread,
        deliveries_failed: failed,
        undelivered_conversations: undelivered,
        begun_turns: begun,
        waiting_requests: requests,
    })
}

async fn part<T>(wanted: bool, count: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    Ok(if wanted { Some(count.await?) } else { None })
}

async fn pending(scope: &Scope) -> Result<PendingApprovals> {
    let found = queries::pending(scope).await?;
    let of = |severity| found.iter().find(|one| one.severity == severity).map_or(0, |one| one.count);
    let highest = Severity::ALL.iter().rev();
    Ok(PendingApprovals {
        total: found.iter().map(|one| one.count).sum(),
        by_severity: highest
            .map(|severity| SeverityCount { severity: *severity, count: of(*severity) })
            .collect(),
        mine: found.iter().map(|one| one.mine).sum(),
        next_expires_at: found.iter().filter_map(|one| one.next_expires_at).min(),
    })
}

async fn by_status(scope: &Scope) -> Result<Vec<AgentStatusCount>> {
    let found = queries::agents(scope).await?;
    let of = |status| found.iter().find(|one| one.status == status).map_or(0, |one| one.count);
    let all = AgentStatus::ALL.iter();
    Ok(all.map(|status| AgentStatusCount { status: *status, count: of(*status) }).collect())
}

async fn servers(scope: &Scope) -> Result<ServerCounts> {
    let found = queries::servers(scope).await?;
    let (total, offline, pending) =
        found.map_or((0, 0, 0), |found| (found.total, found.offline, found.pending));
    Ok(ServerCounts { total, offline, pending })
}
