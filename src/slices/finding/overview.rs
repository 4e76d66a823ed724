//! `overview`: what needs attention, in numbers. Each part is one statement, runs only if it is selected, and requires the
//! permission that the records require.

use super::{
    graphql::{AgentStatusCount, Overview, PendingApprovals, ServerCounts, SeverityCount},
    queries,
};
use crate::{
    base::{
        enums::{AgentStatus, Severity},
        permission::Permission,
        problem::Result,
    },
    core::access::Scope,
    slices::conversations,
};

/// Which parts are selected.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub approvals: bool,
    pub agents: bool,
    pub servers: bool,
    pub channels: bool,
    pub open: bool,
    pub unread: bool,
    pub failed: bool,
    pub undelivered: bool,
    pub begun: bool,
    pub requests: bool,
}

/// The numbers of the organization that the caller may see, those that are wanted.
///
/// # Errors
/// The database is unreachable.
pub async fn of(scope: &Scope, wanted: Wanted) -> Result<Overview> {
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
