//! SQL of the dashboard.

use crate::{
    base::{
        enums::{AgentStatus, Severity},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::sql::{RunSql as _, every_org_sql, row, sql, text},
    },
    domain::conversations,
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

/// Pending approvals by severity, without those that the caller has snoozed.
pub(super) async fn pending(scope: &Scope) -> Result<Vec<PendingCount>> {
    let sql = sql!(
        "SELECT t.severity, COUNT(*) AS count, COUNT(CASE WHEN t.assignee_id = $3 THEN 1 END) AS mine, \
         MIN(t.expires_at) AS next_expires_at FROM approvals t WHERE t.organization_id = $org AND t.status = 'PENDING' \
         AND (t.expires_at IS NULL OR t.expires_at > $2) AND NOT EXISTS (SELECT 1 FROM approval_snoozes s \
         WHERE s.organization_id = t.organization_id AND s.approval_id = t.id AND s.user_id = $3 AND s.until > $2) \
         GROUP BY t.severity"
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

row! {
    /// A number of records in one state.
    pub(super) struct StateCount {
        /// What is counted.
        what: String,
        state: String,
        count: f64,
    }
}

/// The messages of the last seven days whose delivery failed, at `$1`. Joined crosswise, so that SQLite looks up those
/// of each organization, and does not scan the older ones.
const FAILED_MESSAGES: &str = text!(
    "m.organization_id AS organization_id, 'FAILED' AS state FROM organizations o CROSS JOIN messages m \
     WHERE m.organization_id = o.id AND ",
    conversations::FAILED
)
.postgres;

/// Counts rows of one kind by state. At most 100,000 are read, so that records piled up by one organization don't make
/// a scrape slow.
macro_rules! by_state {
    ($what:literal, $rows:expr) => {
        text!(
            "SELECT '",
            $what,
            "' AS what, r.state AS state, CAST(COUNT(r.organization_id) AS DOUBLE PRECISION) AS count FROM (SELECT ",
            $rows,
            " LIMIT 100000) r GROUP BY r.state UNION ALL "
        )
        .postgres
    };
}

/// The records of all organizations by state at `$1`, since when the oldest pending approval waits, and what is spent
/// in the current month. A sum of money is a floating-point number: it can't overflow, however much hosts report.
pub(super) async fn totals(core: &Core) -> Result<Vec<StateCount>> {
    let sql = every_org_sql!(
        by_state!("agents", "organization_id, status AS state FROM agents WHERE archived_at IS NULL"),
        by_state!("hosts", "organization_id, status AS state FROM servers WHERE archived_at IS NULL"),
        by_state!("turns", "organization_id, state FROM turns WHERE ended_at IS NULL"),
        by_state!("approvals", "organization_id, severity AS state FROM approvals WHERE status = 'PENDING'"),
        by_state!(
            "deliveries",
            "organization_id, 'WAITING' AS state FROM messages WHERE delivery_status IN ('PENDING', 'SENDING')"
        ),
        by_state!("deliveries", FAILED_MESSAGES),
        by_state!(
            "channels",
            "organization_id, CASE WHEN NOT is_active THEN COALESCE(inactive_reason, 'MANUAL') \
             WHEN failing_since IS NOT NULL THEN 'FAILING' ELSE 'ACTIVE' END AS state \
             FROM channels WHERE archived_at IS NULL AND transport <> 'INTERNAL'"
        ),
        "SELECT 'oldest_approval', '', CAST(COALESCE(MIN(p.created_at), $1) AS DOUBLE PRECISION) FROM approvals p \
         WHERE p.status = 'PENDING' UNION ALL \
         SELECT 'spending', o.currency, CAST(SUM(CAST(m.cost_micro AS DOUBLE PRECISION)) AS DOUBLE PRECISION) \
         FROM organizations o CROSS JOIN organization_months m WHERE m.organization_id = o.id AND m.from_at <= $1 \
         AND m.until_at > $1 GROUP BY o.currency"
    );
    core.db.every_org().all(sql, [core.clock.now().into()]).await
}
