//! SQL of the dashboard.

use crate::{
    base::{
        enums::{AgentStatus, Severity},
        problem::Result,
        time::Timestamp,
    },
    core::{
        access::Scope,
        store::sql::{Door as _, row, sql},
    },
};

row! {
    /// Pending approvals of one severity.
    pub(super) struct PendingCount {
        severity: Severity,
        count: i64,
        /// The number assigned to the caller.
        mine: i64,
        /// The earliest expiry.
        next_expires_at: Option<Timestamp>,
    }
}

/// Pending approvals by severity.
pub(super) async fn pending(scope: &Scope) -> Result<Vec<PendingCount>> {
    let sql = sql!(
        "SELECT t.severity, COUNT(*) AS count, COUNT(CASE WHEN t.assignee_id = $3 THEN 1 END) AS mine, \
         MIN(t.expires_at) AS next_expires_at FROM approvals t WHERE t.organization_id = $org AND t.status = 'PENDING' \
         AND (t.expires_at IS NULL OR t.expires_at > $2) GROUP BY t.severity"
    );
    let values = [scope.core.clock.now().into(), scope.request.caller.user().into()];
    scope.all(sql, values).await
}

row! {
    /// The number of agents in one state.
    pub(super) struct StatusCount {
        status: AgentStatus,
        count: i64,
    }
}

/// The number of agents in each state.
pub(super) async fn agents(scope: &Scope) -> Result<Vec<StatusCount>> {
    let sql = sql!(
        "SELECT t.status, COUNT(*) AS count FROM agents t WHERE t.organization_id = $org AND t.archived_at IS NULL \
         GROUP BY t.status"
    );
    scope.all(sql, []).await
}

row! {
    /// The servers, in numbers.
    pub(super) struct Servers {
        total: i64,
        offline: i64,
        pending: i64,
    }
}

/// The servers, in numbers.
pub(super) async fn servers(scope: &Scope) -> Result<Option<Servers>> {
    let sql = sql!(
        "SELECT COUNT(*) AS total, COUNT(CASE WHEN t.status = 'OFFLINE' THEN 1 END) AS offline, \
         COUNT(CASE WHEN t.status = 'PENDING' THEN 1 END) AS pending \
         FROM servers t WHERE t.organization_id = $org AND t.archived_at IS NULL"
    );
    scope.one(sql, []).await
}

/// The number of inactive channels.
pub(super) async fn inactive_channels(scope: &Scope) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM channels t WHERE t.organization_id = $org AND NOT t.is_active \
         AND t.transport <> 'INTERNAL'"
    );
    Ok(scope.scalar(sql, []).await?.unwrap_or(0))
}

/// The number of conversations that are neither resolved nor archived.
pub(super) async fn open_conversations(scope: &Scope) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM conversations t WHERE t.organization_id = $org AND t.status IN ('OPEN', 'PENDING')"
    );
    Ok(scope.scalar(sql, []).await?.unwrap_or(0))
}

/// The number of turns that agents have begun.
pub(super) async fn begun_turns(scope: &Scope) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM turns t WHERE t.organization_id = $org \
         AND t.state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT')"
    );
    Ok(scope.scalar(sql, []).await?.unwrap_or(0))
}

/// The number of decisions that agents wait for in these turns.
pub(super) async fn waiting_requests(scope: &Scope) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM approvals t JOIN agents a ON a.organization_id = t.organization_id \
         AND a.id = t.agent_id WHERE t.organization_id = $org AND t.status = 'PENDING' \
         AND (t.expires_at IS NULL OR t.expires_at > $2) AND t.generation = a.launch_generation \
         AND t.request_key IS NOT NULL"
    );
    Ok(scope.scalar(sql, [scope.core.clock.now().into()]).await?.unwrap_or(0))
}
