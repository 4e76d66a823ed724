//! `overview`: the numbers of records that need attention. Each part is one statement, which runs only if the part is
//! selected, and requires the permission for its records.
//!
//! `totals.rs`: such numbers of all organizations together, for the metrics page.

mod queries;
mod totals;

use async_graphql::SimpleObject;

pub use self::totals::{ByState, Totals, totals};
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
    /// The pending approvals, without those that the caller has snoozed.
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

/// The pending approvals, without those that the caller has snoozed.
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

/// The selected parts of the overview.
#[derive(Clone, Copy, Debug)]
pub struct SelectedParts {
    pub approvals: bool,
    pub agents: bool,
    pub servers: bool,
    /// Inactive channels.
    pub channels: bool,
    /// Open conversations.
    pub open: bool,
    /// Unread conversations.
    pub unread: bool,
    /// Failed deliveries.
    pub failed: bool,
    /// Conversations with undelivered messages.
    pub undelivered: bool,
    /// Started turns.
    pub begun: bool,
    /// Waiting requests.
    pub requests: bool,
}

/// The selected numbers that the caller may see.
pub async fn overview(scope: &Scope, selected: SelectedParts) -> Result<Overview> {
    let may = |is_selected: bool, permission| is_selected && scope.may(permission);
    let talk = |is_selected| may(is_selected, Permission::AgentOutputView);
    let is_person = scope.request.caller.user().is_some();
    let (approvals, agents, servers, channels, open, unread, failed, undelivered, begun, requests) = tokio::try_join!(
        load_part(may(selected.approvals, Permission::ApprovalView), pending_approvals(scope)),
        load_part(may(selected.agents, Permission::AgentView), agents_by_status(scope)),
        load_part(may(selected.servers, Permission::ServerView), servers(scope)),
        load_part(may(selected.channels, Permission::AgentView), queries::inactive_channels(scope)),
        load_part(talk(selected.open), queries::open_conversations(scope)),
        load_part(talk(selected.unread) && is_person, conversations::count_unread(scope)),
        load_part(talk(selected.failed), conversations::count_failed(scope)),
        load_part(talk(selected.undelivered), conversations::count_undelivered(scope)),
        load_part(may(selected.begun, Permission::AgentView), queries::begun_turns(scope)),
        load_part(may(selected.requests, Permission::AgentView), queries::waiting_requests(scope)),
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

async fn load_part<T>(is_selected: bool, count: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    Ok(if is_selected { Some(count.await?) } else { None })
}

async fn pending_approvals(scope: &Scope) -> Result<PendingApprovals> {
    let found = queries::pending(scope).await?;
    let count_of = |severity| found.iter().find(|one| one.severity == severity).map_or(0, |one| one.count);
    let highest = Severity::ALL.iter().rev();
    Ok(PendingApprovals {
        total: found.iter().map(|one| one.count).sum(),
        by_severity: highest
            .map(|severity| SeverityCount { severity: *severity, count: count_of(*severity) })
            .collect(),
        mine: found.iter().map(|one| one.mine).sum(),
        next_expires_at: found.iter().filter_map(|one| one.next_expires_at).min(),
    })
}

async fn agents_by_status(scope: &Scope) -> Result<Vec<AgentStatusCount>> {
    let found = queries::agents(scope).await?;
    let count_of = |status| found.iter().find(|one| one.status == status).map_or(0, |one| one.count);
    let all = AgentStatus::ALL.iter();
    Ok(all.map(|status| AgentStatusCount { status: *status, count: count_of(*status) }).collect())
}

async fn servers(scope: &Scope) -> Result<ServerCounts> {
    let found = queries::servers(scope).await?;
    let (total, offline, pending) =
        found.map_or((0, 0, 0), |found| (found.total, found.offline, found.pending));
    Ok(ServerCounts { total, offline, pending })
}
