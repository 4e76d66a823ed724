//! What there is to say about an approval or an agent now: nothing once it is decided, once the agent is up again, or to a
//! person who may no longer see it.

use sea_orm::QueryResult;

use super::tell::{REACHABLE, permission};
use crate::{
    base::{
        enums::{ApprovalKind, NotificationKind, Severity, StatusReason},
        ids::{AgentId, ApprovalId, OrgId, UserId},
        permission::Role,
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{Core, outbox::About},
};

/// Something to tell a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What happened.
    pub what: NotificationKind,
    /// The organization.
    pub org: OrgId,
    /// Its name.
    pub org_name: String,
    /// The person's time zone, or the organization's.
    pub zone: String,
    /// What it is about.
    pub subject: Subject,
}

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An approval.
    Approval(Approval),
    /// An agent that has failed.
    Agent {
        /// The agent.
        id: AgentId,
        /// Its name.
        name: String,
        /// Why it failed.
        reason: Option<StatusReason>,
    },
}

/// A pending approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The approval.
    pub id: ApprovalId,
    /// Its kind.
    pub kind: ApprovalKind,
    /// Its severity.
    pub severity: Severity,
    /// The name of the channel that failed, or that someone wants to write to; else of the agent that asks, or of the server.
    pub about: Option<String>,
    /// What is asked, if the organization lets mail contain it.
    pub text: Option<String>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// What to tell the person, if there is still anything.
///
/// # Errors
/// The database is unreachable.
pub async fn at(core: &Core, user: UserId, about: &About) -> Result<Option<Line>> {
    let (sql, id) = match (about.approval, about.agent) {
        (Some(approval), _) => (of_approval(about.what), approval.0),
        (None, Some(agent)) => (of_agent(), agent.0),
        (None, None) => return Ok(None),
    };
    let values = vec![about.org.into(), user.into(), id.into(), core.clock.now().into()];
    let Some(row) = core.db.one(sql, values).await? else { return Ok(None) };
    let role: Role = row.try_get_by::<String, _>(0)?.parse().map_err(Problem::internal)?;
    if !core.policy.allows(about.org, role, permission(about.what)) {
        return Ok(None);
    }
    let subject = match (about.approval, about.agent) {
        (Some(id), _) => Subject::Approval(approval(id, &row)?),
        (None, Some(id)) => Subject::Agent { id, name: row.try_get_by(3)?, reason: row.try_get_by(4)? },
        (None, None) => return Ok(None),
    };
    let (org_name, zone) = (row.try_get_by(1)?, row.try_get_by(2)?);
    Ok(Some(Line { what: about.what, org: about.org, org_name, zone, subject }))
}

/// What both statements select first. `$1` is the organization, `$2` the person.
const MEMBER: &str = "SELECT m.role, o.name, COALESCE(u.time_zone, o.timezone)";

/// `$3` is the approval, `$4` the time.
fn of_approval(what: NotificationKind) -> String {
    let still = match what {
        NotificationKind::ApprovalAssigned => " AND a.assignee_id = m.user_id",
        _ => "",
    };
    format!(
        "{MEMBER}, a.kind, a.severity, \
         COALESCE(CASE WHEN a.kind IN ('CHANNEL_ERROR', 'ACCESS_REQUEST') THEN c.name END, g.name, s.name), \
         CASE WHEN o.mail_request_text THEN a.title END, CASE WHEN o.mail_request_text THEN a.body END, a.expires_at \
         FROM members m JOIN users u ON u.id = m.user_id JOIN organizations o ON o.id = m.organization_id \
         JOIN approvals a ON a.organization_id = m.organization_id AND a.id = $3 \
         LEFT JOIN agents g ON g.organization_id = a.organization_id AND g.id = a.agent_id \
         LEFT JOIN channels c ON c.organization_id = a.organization_id AND c.id = a.channel_id \
         LEFT JOIN servers s ON s.organization_id = a.organization_id AND s.id = a.server_id \
         WHERE m.organization_id = $1 AND m.user_id = $2 AND {REACHABLE} \
         AND a.status = 'PENDING' AND (a.expires_at IS NULL OR a.expires_at > $4){still} \
         AND NOT EXISTS (SELECT 1 FROM approval_snoozes z WHERE z.organization_id = a.organization_id \
         AND z.approval_id = a.id AND z.user_id = m.user_id AND z.until > $4)"
    )
}

/// `$3` is the agent, `$4` the time.
fn of_agent() -> String {
    format!(
        "{MEMBER}, g.name, g.status_reason \
         FROM members m JOIN users u ON u.id = m.user_id JOIN organizations o ON o.id = m.organization_id \
         JOIN agents g ON g.organization_id = m.organization_id AND g.id = $3 \
         WHERE m.organization_id = $1 AND m.user_id = $2 AND {REACHABLE} \
         AND g.status = 'ERROR' AND g.archived_at IS NULL AND g.status_changed_at <= $4"
    )
}

fn approval(id: ApprovalId, row: &QueryResult) -> Result<Approval> {
    let (title, body): (Option<String>, Option<String>) = (row.try_get_by(6)?, row.try_get_by(7)?);
    let text = [title, body].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Ok(Approval {
        id,
        kind: row.try_get_by(3)?,
        severity: row.try_get_by(4)?,
        about: row.try_get_by(5)?,
        text: Some(text).filter(|text| !text.is_empty()),
        expires_at: row.try_get_by(8)?,
    })
}
