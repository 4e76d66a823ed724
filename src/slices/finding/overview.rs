//! `overview`: what needs attention, in numbers. Each part is one statement, runs only if it is selected, and requires the
//! permission that the records require.

use sea_orm::Value;

use super::graphql::{AgentStatusCount, Overview, PendingApprovals, ServerCounts, SeverityCount};
use crate::{
    base::{
        enums::{AgentStatus, Severity},
        permission::Permission,
        problem::Result,
        time::Timestamp,
    },
    core::access::Scope,
    read::{NOW, VIEWER},
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
        part(may(wanted.channels, Permission::AgentView), one(scope, CHANNELS)),
        part(talk(wanted.open), one(scope, OPEN)),
        part(talk(wanted.unread) && is_person, unread(scope)),
        part(talk(wanted.failed), failed(scope)),
        part(talk(wanted.undelivered), undelivered(scope)),
        part(may(wanted.begun, Permission::AgentView), one(scope, BEGUN)),
        part(may(wanted.requests, Permission::AgentView), one(scope, REQUESTS)),
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

const CHANNELS: &str = "SELECT COUNT(*) FROM channels t WHERE t.organization_id = $1 AND NOT t.is_active \
                        AND t.transport <> 'INTERNAL'";
const OPEN: &str =
    "SELECT COUNT(*) FROM conversations t WHERE t.organization_id = $1 AND t.status IN ('OPEN', 'PENDING')";
const BEGUN: &str = "SELECT COUNT(*) FROM turns t WHERE t.organization_id = $1 \
                     AND t.state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT')";
const REQUESTS: &str = "SELECT COUNT(*) FROM approvals t JOIN agents a ON a.organization_id = t.organization_id \
                        AND a.id = t.agent_id WHERE t.organization_id = $1 AND t.status = 'PENDING' \
                        AND (t.expires_at IS NULL OR t.expires_at > :now) AND t.generation = a.launch_generation \
                        AND t.request_key IS NOT NULL";
const PENDING: &str = "FROM approvals t WHERE t.organization_id = $1 AND t.status = 'PENDING' \
                       AND (t.expires_at IS NULL OR t.expires_at > :now)";

/// The rows of a statement in which `$1` is the organization. It uses both placeholders or neither.
async fn rows(scope: &Scope, sql: &str) -> Result<Vec<sea_orm::QueryResult>> {
    let mut values: Vec<Value> = vec![scope.org.0.into()];
    let mut sql = sql.to_owned();
    if sql.contains(NOW) {
        values.push(scope.core.clock.now().0.into());
        sql = sql.replace(NOW, &format!("${}", values.len()));
    }
    if sql.contains(VIEWER) {
        values.push(Value::BigInt(scope.request.caller.user().map(|user| user.0)));
        sql = sql.replace(VIEWER, &format!("${}", values.len()));
    }
    Ok(scope.core.db.all(sql, values).await?)
}

/// The number that a statement counts.
async fn one(scope: &Scope, sql: &str) -> Result<i64> {
    let rows = rows(scope, sql).await?;
    Ok(rows.first().map(|row| row.try_get_by(0)).transpose()?.unwrap_or_default())
}

async fn pending(scope: &Scope) -> Result<PendingApprovals> {
    let sql = format!(
        "SELECT t.severity, COUNT(*), COUNT(CASE WHEN t.assignee_id = :viewer THEN 1 END), MIN(t.expires_at) \
         {PENDING} GROUP BY t.severity"
    );
    let mut all = PendingApprovals { total: 0, by_severity: Vec::new(), mine: 0, next_expires_at: None };
    let mut counted: Vec<(Severity, i64)> = Vec::new();
    for row in rows(scope, &sql).await? {
        let (count, mine): (i64, i64) = (row.try_get_by(1)?, row.try_get_by(2)?);
        let next: Option<Timestamp> = row.try_get_by(3)?;
        counted.push((row.try_get_by(0)?, count));
        all.total += count;
        all.mine += mine;
        all.next_expires_at = [all.next_expires_at, next].into_iter().flatten().min_by_key(|at| at.0);
    }
    let of = |severity| counted.iter().find(|(known, _)| *known == severity).map_or(0, |(_, count)| *count);
    let highest = Severity::ALL.iter().rev();
    all.by_severity =
        highest.map(|severity| SeverityCount { severity: *severity, count: of(*severity) }).collect();
    Ok(all)
}

async fn by_status(scope: &Scope) -> Result<Vec<AgentStatusCount>> {
    let sql = "SELECT t.status, COUNT(*) FROM agents t WHERE t.organization_id = $1 AND t.archived_at IS NULL \
               GROUP BY t.status";
    let mut counted: Vec<(AgentStatus, i64)> = Vec::new();
    for row in rows(scope, sql).await? {
        counted.push((row.try_get_by(0)?, row.try_get_by(1)?));
    }
    let of = |status| counted.iter().find(|(known, _)| *known == status).map_or(0, |(_, count)| *count);
    let all = AgentStatus::ALL.iter();
    Ok(all.map(|status| AgentStatusCount { status: *status, count: of(*status) }).collect())
}

async fn servers(scope: &Scope) -> Result<ServerCounts> {
    let sql = "SELECT COUNT(*), COUNT(CASE WHEN t.status = 'OFFLINE' THEN 1 END), \
               COUNT(CASE WHEN t.status = 'PENDING' THEN 1 END) \
               FROM servers t WHERE t.organization_id = $1 AND t.archived_at IS NULL";
    let rows = rows(scope, sql).await?;
    let Some(row) = rows.first() else { return Ok(ServerCounts { total: 0, offline: 0, pending: 0 }) };
    Ok(ServerCounts { total: row.try_get_by(0)?, offline: row.try_get_by(1)?, pending: row.try_get_by(2)? })
}

async fn unread(scope: &Scope) -> Result<i64> {
    let unread = conversations::UNREAD;
    one(scope, &format!("SELECT COUNT(*) FROM conversations t WHERE t.organization_id = $1 AND {unread}"))
        .await
}

async fn failed(scope: &Scope) -> Result<i64> {
    one(
        scope,
        &format!(
            "SELECT COUNT(*) FROM messages m WHERE m.organization_id = $1 AND {}",
            conversations::FAILED
        ),
    )
    .await
}

async fn undelivered(scope: &Scope) -> Result<i64> {
    let undelivered = conversations::UNDELIVERED.as_str();
    one(
        scope,
        &format!("SELECT COUNT(*) FROM conversations t WHERE t.organization_id = $1 AND {undelivered}"),
    )
    .await
}
