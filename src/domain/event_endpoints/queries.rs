//! SQL of event endpoints.

use sea_orm::{DbErr, FromQueryResult as _, QueryResult};

use super::entity::event_deliveries;
use crate::{
    base::{
        enums::{EventDeliveryStatus, EventType},
        ids::{EventEndpointId, OrgId, UserId},
        permission::Role,
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        queue::{Depth, LaneKey, OLDEST_DUE},
        store::{
            Tx,
            sql::{Row, RunSql as _, RunWritingSql as _, every_org_sql, row, sql, text},
        },
    },
    domain::people::REACHABLE,
};

row! {
    /// An endpoint that wants an event.
    pub(super) struct Wanting {
        id: EventEndpointId,
        is_active: bool,
    }
}

/// Locks the endpoints that want events of this type.
pub(super) async fn wanting(tx: &Tx, kind: EventType) -> Result<Vec<Wanting>> {
    let sql = sql!(
        "SELECT id, is_active FROM event_endpoints WHERE organization_id = $org AND CAST(types AS TEXT) LIKE $2 \
         ORDER BY id FOR SHARE"
    );
    tx.all(sql, [format!("%\"{kind}\"%").into()]).await
}

/// The event `d` is the first unsent one of its subject.
const FIRST: &str = "NOT EXISTS (SELECT 1 FROM event_deliveries earlier \
     WHERE earlier.organization_id = d.organization_id AND earlier.endpoint_id = d.endpoint_id \
     AND earlier.subject = d.subject AND earlier.id < d.id AND earlier.status = 'PENDING')";

/// The events that are due at `$1` for endpoints that are on, each the first of its subject.
pub const EVENT_DUE: &str = text!(
    "event_deliveries d JOIN event_endpoints e ON e.organization_id = d.organization_id AND e.id = d.endpoint_id \
     WHERE d.status = 'PENDING' AND d.available_at <= $1 AND e.is_active AND ",
    FIRST
)
.postgres;

/// The endpoints of all organizations with due events.
pub(super) async fn due_endpoints(core: &Core) -> Result<Vec<LaneKey>> {
    let due = every_org_sql!(
        OLDEST_DUE[0],
        "SELECT d.organization_id, d.endpoint_id AS lane_id, d.available_at FROM ",
        EVENT_DUE,
        OLDEST_DUE[1]
    );
    core.db.every_org().all(due, [core.clock.now().into()]).await
}

impl Row for event_deliveries::Model {
    fn read(row: &QueryResult) -> std::result::Result<Self, DbErr> {
        Self::from_query_result(row, "")
    }
}

/// The due events of an endpoint, at most `most`.
pub(super) async fn due_events(
    scope: &Scope,
    endpoint: EventEndpointId,
    most: i64,
) -> Result<Vec<event_deliveries::Model>> {
    let due = sql!(
        "SELECT d.* FROM event_deliveries d WHERE d.organization_id = $org AND d.endpoint_id = $2 \
         AND d.status = 'PENDING' AND d.available_at <= $3 AND ",
        FIRST,
        " ORDER BY d.available_at, d.id LIMIT $4"
    );
    scope.all(due, [endpoint.into(), scope.core.clock.now().into(), most.into()]).await
}

/// The number of events to be sent.
pub async fn waiting(core: &Core) -> Result<Option<Depth>> {
    let sql = every_org_sql!(
        "SELECT 'EVENT' AS kind, COUNT(organization_id) AS depth, MIN(created_at) AS oldest FROM event_deliveries \
         WHERE status = 'PENDING'"
    );
    core.db.every_org().one(sql, []).await
}

/// Records that an endpoint was reached. Returns whether it had failed before.
pub(super) async fn record_reached(tx: &Tx, endpoint: EventEndpointId) -> Result<bool> {
    let sql = sql!(
        "UPDATE event_endpoints SET failing_since = NULL WHERE organization_id = $org AND id = $2 \
         AND failing_since IS NOT NULL"
    );
    Ok(tx.execute(sql, [endpoint.into()]).await? > 0)
}

/// Makes the failed events of an endpoint due now. Those that are being sent have no error.
pub(super) async fn hasten(tx: &Tx, endpoint: EventEndpointId) -> Result<()> {
    let sql = sql!(
        "UPDATE event_deliveries SET available_at = $3 WHERE organization_id = $org AND endpoint_id = $2 \
         AND status = 'PENDING' AND error IS NOT NULL"
    );
    tx.execute(sql, [endpoint.into(), tx.now.into()]).await?;
    Ok(())
}

/// Records that an endpoint has not accepted an event. Returns since when it accepts none. `None`: it was deleted.
pub(super) async fn record_failure(tx: &Tx, endpoint: EventEndpointId) -> Result<Option<Timestamp>> {
    let sql = sql!(
        "UPDATE event_endpoints SET failing_since = COALESCE(failing_since, $3) \
         WHERE organization_id = $org AND id = $2 RETURNING failing_since"
    );
    tx.scalar(sql, [endpoint.into(), tx.now.into()]).await
}

/// Makes the unsent events of an endpoint wait until it is switched on.
pub(super) async fn hold(tx: &Tx, endpoint: EventEndpointId) -> Result<()> {
    let sql = sql!(
        "UPDATE event_deliveries SET status = 'WAITING' WHERE organization_id = $org AND endpoint_id = $2 \
         AND status = 'PENDING'"
    );
    tx.execute(sql, [endpoint.into()]).await?;
    Ok(())
}

/// Makes the unsent events of an endpoint due now.
pub(super) async fn release(tx: &Tx, endpoint: EventEndpointId) -> Result<()> {
    let sql = sql!(
        "UPDATE event_deliveries SET status = 'PENDING', attempts = 0, available_at = $3 \
         WHERE organization_id = $org AND endpoint_id = $2 AND status IN ('PENDING', 'WAITING')"
    );
    tx.execute(sql, [endpoint.into(), tx.now.into()]).await?;
    Ok(())
}

/// The number of settled events of an endpoint in a period.
pub(super) async fn count_settled(
    tx: &Tx,
    endpoint: EventEndpointId,
    (from, until): (Timestamp, Timestamp),
) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM event_deliveries WHERE organization_id = $org AND endpoint_id = $2 \
         AND created_at >= $3 AND created_at <= $4 AND status IN ('SENT', 'FAILED')"
    );
    Ok(tx.scalar(sql, [endpoint.into(), from.into(), until.into()]).await?.unwrap_or_default())
}

/// Queues the settled events of a period again.
pub(super) async fn replay(
    tx: &Tx,
    endpoint: EventEndpointId,
    (from, until): (Timestamp, Timestamp),
    status: EventDeliveryStatus,
) -> Result<()> {
    let sql = sql!(
        "UPDATE event_deliveries SET status = $5, attempts = 0, available_at = $6, error = NULL, sent_at = NULL \
         WHERE organization_id = $org AND endpoint_id = $2 AND created_at >= $3 AND created_at <= $4 \
         AND status IN ('SENT', 'FAILED')"
    );
    let values = [endpoint.into(), from.into(), until.into(), status.into(), tx.now.into()];
    tx.execute(sql, values).await?;
    Ok(())
}

row! {
    /// A member who can be reached by mail.
    pub(super) struct Member {
        user_id: UserId,
        role: Role,
    }
}

/// The reachable members of the organization.
pub(super) async fn members(tx: &Tx) -> Result<Vec<Member>> {
    let sql = sql!(
        "SELECT m.user_id, m.role FROM members m JOIN users u ON u.id = m.user_id \
         JOIN organizations o ON o.id = m.organization_id WHERE m.organization_id = $org AND ",
        REACHABLE,
        " ORDER BY m.user_id"
    );
    tx.all(sql, []).await
}

row! {
    /// An endpoint that the service has switched off, and a member to notify.
    pub(super) struct OffEndpoint {
        name: String,
        /// Whether the receiver says that it no longer exists.
        is_gone: bool,
        inactive_detail: Option<String>,
        organization: String,
        role: Role,
        person: String,
        email: String,
    }
}

/// The endpoint, if the service has switched it off and the member can be reached.
pub(super) async fn off_endpoint(
    core: &Core,
    (org, person): (OrgId, UserId),
    endpoint: EventEndpointId,
) -> Result<Option<OffEndpoint>> {
    let sql = every_org_sql!(
        "SELECT e.name, (e.inactive_reason = 'GONE') AS is_gone, e.inactive_detail, o.name AS organization, m.role, \
         u.name AS person, u.email FROM members m JOIN users u ON u.id = m.user_id \
         JOIN organizations o ON o.id = m.organization_id \
         JOIN event_endpoints e ON e.organization_id = m.organization_id AND e.id = $3 \
         WHERE m.organization_id = $1 AND m.user_id = $2 AND NOT e.is_active AND e.inactive_reason <> 'MANUAL' AND ",
        REACHABLE
    );
    core.db.every_org().one(sql, [org.into(), person.into(), endpoint.into()]).await
}
