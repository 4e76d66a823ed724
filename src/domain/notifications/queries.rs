//! SQL of notifications.

use sea_orm::{DbBackend, Value};

use super::Choice;
use crate::{
    base::{
        enums::{ApprovalKind, NotificationKind, NotificationPace, Severity, StatusReason},
        ids::{AgentId, ApprovalId, OrgId, UserId},
        permission::Role,
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            Transaction, Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, installation_sql, row, sql, text},
        },
    },
    domain::people::REACHABLE,
};

pub(super) async fn choice(scope: &Scope, person: UserId) -> Result<Option<Choice>> {
    let sql = sql!(
        "SELECT approval_raised, approval_expiring, agent_failed FROM notification_settings \
         WHERE organization_id = $org AND user_id = $2"
    );
    scope.one(sql, [person.into()]).await
}

/// Stores the person's choice. Absent fields keep their value.
pub(super) async fn store_choice(tx: &Tx, person: UserId, choice: Choice) -> Result<()> {
    let sql = sql!(
        "INSERT INTO notification_settings (organization_id, user_id, approval_raised, approval_expiring, agent_failed) \
         VALUES ($org, $2, $3, $4, $5) ON CONFLICT (organization_id, user_id) DO UPDATE SET \
         approval_raised = COALESCE(excluded.approval_raised, notification_settings.approval_raised), \
         approval_expiring = COALESCE(excluded.approval_expiring, notification_settings.approval_expiring), \
         agent_failed = COALESCE(excluded.agent_failed, notification_settings.agent_failed)"
    );
    let Choice { approval_raised, approval_expiring, agent_failed } = choice;
    let values = [person.into(), approval_raised.into(), approval_expiring.into(), agent_failed.into()];
    tx.execute(sql, values).await?;
    Ok(())
}

row! {
    /// A reachable member.
    pub(super) struct Member {
        user_id: UserId,
        role: Role,
        approval_raised: Option<NotificationPace>,
        approval_expiring: Option<NotificationPace>,
        agent_failed: Option<NotificationPace>,
        /// The person's time zone, or the organization's.
        zone: String,
    }
}

/// A group of members.
#[derive(Clone, Copy)]
pub(super) enum MemberFilter {
    Everyone,
    Member(UserId),
    Assignee(ApprovalId),
    /// The alert recipients of the channel, if the approval is a channel error.
    Alerted(ApprovalId),
    /// The watchers of the approval's conversation.
    Watchers(ApprovalId),
    /// OWNER and ADMIN.
    Answering,
}

const MEMBERS: &str = "SELECT m.user_id, m.role, s.approval_raised, s.approval_expiring, s.agent_failed, \
     COALESCE(u.time_zone, o.timezone) AS zone FROM members m \
     JOIN users u ON u.id = m.user_id JOIN organizations o ON o.id = m.organization_id \
     LEFT JOIN notification_settings s ON s.organization_id = m.organization_id AND s.user_id = m.user_id \
     WHERE m.organization_id = $org AND ";
const BY_ID: &str = " ORDER BY m.user_id";

const ALERTED: &str = " AND m.user_id IN (SELECT CAST(e.value AS BIGINT) FROM approvals a JOIN channels c \
     ON c.organization_id = a.organization_id AND c.id = a.channel_id, ";
const OF_FAILURE: &str = "(c.alert_recipient_user_ids) e \
     WHERE a.organization_id = $org AND a.id = $2 AND a.kind = 'CHANNEL_ERROR')";

/// The reachable members of a group.
pub(super) async fn reachable(tx: &Tx, who: MemberFilter) -> Result<Vec<Member>> {
    let (sql, value): (_, Option<Value>) = match who {
        MemberFilter::Everyone => (sql!(MEMBERS, REACHABLE, BY_ID), None),
        MemberFilter::Member(user) => {
            (sql!(MEMBERS, REACHABLE, " AND m.user_id = $2", BY_ID), Some(user.into()))
        }
        MemberFilter::Assignee(approval) => {
            let sql = sql!(
                MEMBERS,
                REACHABLE,
                " AND EXISTS (SELECT 1 FROM approvals a WHERE a.organization_id = m.organization_id AND a.id = $2 \
                 AND a.assignee_id = m.user_id)",
                BY_ID
            );
            (sql, Some(approval.into()))
        }
        MemberFilter::Alerted(approval) => {
            let sql = match tx.scope.core.db.backend() {
                DbBackend::Postgres => {
                    sql!(MEMBERS, REACHABLE, ALERTED, "json_array_elements_text", OF_FAILURE, BY_ID)
                }
                _ => sql!(MEMBERS, REACHABLE, ALERTED, "json_each", OF_FAILURE, BY_ID),
            };
            (sql, Some(approval.into()))
        }
        MemberFilter::Watchers(approval) => {
            let sql = sql!(
                MEMBERS,
                REACHABLE,
                " AND EXISTS (SELECT 1 FROM approvals a JOIN conversation_watches w \
                 ON w.organization_id = a.organization_id AND w.conversation_id = a.conversation_id \
                 WHERE a.organization_id = m.organization_id AND a.id = $2 AND w.user_id = m.user_id)",
                BY_ID
            );
            (sql, Some(approval.into()))
        }
        MemberFilter::Answering => {
            (sql!(MEMBERS, REACHABLE, " AND m.role IN ('OWNER', 'ADMIN')", BY_ID), None)
        }
    };
    tx.all(sql, value.into_iter().collect::<Vec<_>>()).await
}

/// Stores a notification of a person for `due`. Raises the count of one that is still stored.
pub(super) async fn store(
    tx: &Tx,
    person: UserId,
    what: NotificationKind,
    (approval, agent): (Option<ApprovalId>, Option<AgentId>),
    due: Timestamp,
) -> Result<()> {
    const NEW: &str = "INSERT INTO notifications (organization_id, user_id, what, approval_id, agent_id, due_at) \
         VALUES ($org, $2, $3, $4, $5, $6) ON CONFLICT ";
    const COUNTED: &str = " DO UPDATE SET raised = notifications.raised + 1";
    let sql = match approval {
        Some(_) => {
            sql!(NEW, "(organization_id, approval_id, user_id, what) WHERE approval_id IS NOT NULL", COUNTED)
        }
        None => sql!(NEW, "(organization_id, agent_id, user_id) WHERE agent_id IS NOT NULL", COUNTED),
    };
    tx.execute(sql, [person.into(), what.into(), approval.into(), agent.into(), due.into()]).await?;
    Ok(())
}

/// Removes the person's notifications of a new approval.
pub(super) async fn remove_raised(tx: &Tx, approval: ApprovalId, person: UserId) -> Result<()> {
    let sql = sql!(
        "DELETE FROM notifications WHERE organization_id = $org AND approval_id = $2 AND user_id = $3 \
         AND what IN ('APPROVAL_RAISED', 'APPROVAL_ASSIGNED')"
    );
    tx.execute(sql, [approval.into(), person.into()]).await?;
    Ok(())
}

/// SQL: the notification `n` is due at `$1`, and its person has not snoozed its approval.
const DUE: &str = "n.due_at <= $1 AND NOT EXISTS (SELECT 1 FROM approval_snoozes z \
     WHERE z.organization_id = n.organization_id AND z.approval_id = n.approval_id AND z.user_id = n.user_id \
     AND z.until > $1)";

/// SQL: the shortest time between two mails to a person, in milliseconds: five minutes.
const QUIET: &str = "300000";

/// The notifications due at `$1` of people who may be notified now: their last mail was sent, and the quiet time after
/// it is over.
pub const TO_COLLECT: &str = text!(
    "notifications n WHERE ",
    DUE,
    " AND NOT EXISTS (SELECT 1 FROM notified d WHERE d.user_id = n.user_id AND d.told_at > $1 - ",
    QUIET,
    ") AND NOT EXISTS (SELECT 1 FROM mails x WHERE x.order_key = 'notifications:' || CAST(n.user_id AS TEXT))"
)
.postgres;

/// The people to be notified at `now`: 200 at most.
pub(super) async fn due_people(core: &Core, now: Timestamp) -> Result<Vec<UserId>> {
    let sql = every_org_sql!("SELECT DISTINCT n.user_id FROM ", TO_COLLECT, " LIMIT 200");
    core.db.every_org().column(sql, [now.into()]).await
}

row! {
    /// A notification that is due.
    pub(super) struct Due {
        id: i64,
        /// How often it was raised.
        raised: i64,
        organization_id: OrgId,
        what: NotificationKind,
        approval_id: Option<ApprovalId>,
        agent_id: Option<AgentId>,
    }
}

/// The person's notifications due at `now`: the first 500.
pub(super) async fn due(core: &Core, person: UserId, now: Timestamp) -> Result<Vec<Due>> {
    let sql = every_org_sql!(
        "SELECT n.id, n.raised, n.organization_id, n.what, n.approval_id, n.agent_id FROM notifications n \
         WHERE n.user_id = $2 AND ",
        DUE,
        " ORDER BY n.id LIMIT 500"
    );
    core.db.every_org().all(sql, [now.into(), person.into()]).await
}

/// Removes the person's notifications that were raised exactly this often.
pub(super) async fn remove(
    core: &Core,
    tx: &Transaction,
    person: UserId,
    (ids, raised): (&[i64], i64),
) -> Result<()> {
    let sql =
        installation_sql!("DELETE FROM notifications WHERE user_id = $1 AND id = ANY($2) AND raised = $3");
    tx.execute(sql, [person.into(), core.db.keys(ids), raised.into()]).await?;
    Ok(())
}

/// Stores that the person is notified at `now`. False: the quiet time after the last mail is not over.
pub(super) async fn take_turn(tx: &Transaction, person: UserId, now: Timestamp) -> Result<bool> {
    let sql = installation_sql!(
        "INSERT INTO notified (user_id, told_at) VALUES ($1, $2) ON CONFLICT (user_id) DO UPDATE \
         SET told_at = excluded.told_at WHERE notified.told_at <= $2 - ",
        QUIET
    );
    Ok(tx.execute(sql, [person.into(), now.into()]).await? == 1)
}

/// Stores that the person is notified now.
pub(super) async fn store_notified(core: &Core, person: UserId) -> Result<()> {
    let sql = installation_sql!("UPDATE notified SET told_at = $2 WHERE user_id = $1");
    core.db.installation().execute(sql, [person.into(), core.clock.now().into()]).await?;
    Ok(())
}

row! {
    /// A pending approval and its recipient.
    pub(super) struct Approval {
        role: Role,
        org_name: String,
        /// The person's time zone, or the organization's.
        zone: String,
        kind: ApprovalKind,
        severity: Severity,
        /// The name of the channel, agent or server.
        about: Option<String>,
        /// If the organization allows it in mail.
        title: Option<String>,
        /// If the organization allows it in mail.
        body: Option<String>,
        expires_at: Option<Timestamp>,
    }
}

row! {
    /// A failed agent and the recipient.
    pub(super) struct FailedAgent {
        role: Role,
        org_name: String,
        /// The person's time zone, or the organization's.
        zone: String,
        name: String,
        status_reason: Option<StatusReason>,
    }
}

/// The member `$2` of the organization `$1`.
const MEMBER: &str = "SELECT m.role, o.name AS org_name, COALESCE(u.time_zone, o.timezone) AS zone, ";
const FROM_MEMBERS: &str =
    " FROM members m JOIN users u ON u.id = m.user_id JOIN organizations o ON o.id = m.organization_id ";
const WHO_IS: &str = " WHERE m.organization_id = $1 AND m.user_id = $2 AND ";

/// The approval `$3`. `$4` is the time.
const APPROVAL: &str = "a.kind, a.severity, \
     COALESCE(CASE WHEN a.kind IN ('CHANNEL_ERROR', 'ACCESS_REQUEST') THEN c.name END, g.name, s.name) AS about, \
     CASE WHEN o.mail_request_text THEN a.title END AS title, CASE WHEN o.mail_request_text THEN a.body END AS body, \
     a.expires_at";
const JOIN_APPROVAL: &str = "JOIN approvals a ON a.organization_id = m.organization_id AND a.id = $3 \
     LEFT JOIN agents g ON g.organization_id = a.organization_id AND g.id = a.agent_id \
     LEFT JOIN channels c ON c.organization_id = a.organization_id AND c.id = a.channel_id \
     LEFT JOIN servers s ON s.organization_id = a.organization_id AND s.id = a.server_id";
const IS_OPEN: &str = " AND a.status = 'PENDING' AND (a.expires_at IS NULL OR a.expires_at > $4) \
     AND NOT EXISTS (SELECT 1 FROM approval_snoozes z WHERE z.organization_id = a.organization_id \
     AND z.approval_id = a.id AND z.user_id = m.user_id AND z.until > $4)";

/// The approval, if it is pending and the person can be reached. For a notification of an assignment, it must still be
/// assigned to the person.
pub(super) async fn approval(
    core: &Core,
    (org, person): (OrgId, UserId),
    (approval, what): (ApprovalId, NotificationKind),
) -> Result<Option<Approval>> {
    let sql = match what {
        NotificationKind::ApprovalAssigned => every_org_sql!(
            MEMBER,
            APPROVAL,
            FROM_MEMBERS,
            JOIN_APPROVAL,
            WHO_IS,
            REACHABLE,
            IS_OPEN,
            " AND a.assignee_id = m.user_id"
        ),
        _ => every_org_sql!(MEMBER, APPROVAL, FROM_MEMBERS, JOIN_APPROVAL, WHO_IS, REACHABLE, IS_OPEN),
    };
    let values = [org.into(), person.into(), approval.into(), core.clock.now().into()];
    core.db.every_org().one(sql, values).await
}

/// The agent, if it is in the state ERROR and the person can be reached.
pub(super) async fn failed_agent(
    core: &Core,
    (org, person): (OrgId, UserId),
    agent: AgentId,
) -> Result<Option<FailedAgent>> {
    let sql = every_org_sql!(
        MEMBER,
        "g.name, g.status_reason",
        FROM_MEMBERS,
        "JOIN agents g ON g.organization_id = m.organization_id AND g.id = $3",
        WHO_IS,
        REACHABLE,
        " AND g.status = 'ERROR' AND g.archived_at IS NULL AND g.status_changed_at <= $4"
    );
    let values = [org.into(), person.into(), agent.into(), core.clock.now().into()];
    core.db.every_org().one(sql, values).await
}
