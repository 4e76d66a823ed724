//! What a member wants to be told, and the default of their role.

use sea_orm::{ConnectionTrait, Statement};
use serde_json::json;

use crate::{
    base::{
        enums::{ChangeOp, NotificationKind, NotificationPace, RecordKind},
        permission::Role,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, audit},
};

/// When a member is notified of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paces {
    /// A new approval, or one that is assigned to them.
    pub approval_raised: NotificationPace,
    /// An approval that is about to expire.
    pub approval_expiring: NotificationPace,
    /// An agent that has failed.
    pub agent_failed: NotificationPace,
}

/// A member's own choice. `None`: the default, or when setting: as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// A new approval, or one that is assigned to them.
    pub approval_raised: Option<NotificationPace>,
    /// An approval that is about to expire.
    pub approval_expiring: Option<NotificationPace>,
    /// An agent that has failed.
    pub agent_failed: Option<NotificationPace>,
}

/// The pace of one kind: the member's choice, or else the default. A person who is asked wants to know at once. Agents that fail
/// concern every member who may see them, so only those who answer for the organization are notified by default.
pub(super) fn pace(what: NotificationKind, chosen: Option<NotificationPace>, role: Role) -> NotificationPace {
    chosen.unwrap_or(match (what, role) {
        (NotificationKind::AgentFailed, Role::Operator | Role::Viewer) => NotificationPace::Off,
        _ => NotificationPace::AtOnce,
    })
}

/// The column of a kind's setting.
pub(super) const fn column(what: NotificationKind) -> &'static str {
    match what {
        NotificationKind::ApprovalRaised | NotificationKind::ApprovalAssigned => "approval_raised",
        NotificationKind::ApprovalExpiring => "approval_expiring",
        NotificationKind::AgentFailed => "agent_failed",
    }
}

/// The caller's notifications in the scope's organization.
///
/// # Errors
/// `PERMISSION_DENIED` for a service token; the database is unreachable.
pub async fn of(scope: &Scope) -> Result<Paces> {
    let person = scope.person()?;
    let role =
        scope.membership.role.ok_or_else(|| Problem::new(Code::NotAMember, "You are not a member."))?;
    let sql = "SELECT approval_raised, approval_expiring, agent_failed FROM notification_settings \
               WHERE organization_id = $1 AND user_id = $2";
    let row = scope.core.db.one(sql.to_owned(), vec![scope.org.into(), person.id.into()]).await?;
    let chosen = match row {
        Some(row) => Choice {
            approval_raised: row.try_get_by(0)?,
            approval_expiring: row.try_get_by(1)?,
            agent_failed: row.try_get_by(2)?,
        },
        None => Choice::default(),
    };
    Ok(Paces {
        approval_raised: pace(NotificationKind::ApprovalRaised, chosen.approval_raised, role),
        approval_expiring: pace(NotificationKind::ApprovalExpiring, chosen.approval_expiring, role),
        agent_failed: pace(NotificationKind::AgentFailed, chosen.agent_failed, role),
    })
}

/// Sets the caller's notifications in the scope's organization. What is left out stays as it is.
///
/// # Errors
/// `PERMISSION_DENIED` for a service token; the database is unreachable.
pub async fn set(scope: &Scope, choice: Choice) -> Result<()> {
    let person = scope.person()?.id;
    let Choice { approval_raised, approval_expiring, agent_failed } = choice;
    let tx = scope.begin().await?;
    let sql = "INSERT INTO notification_settings (organization_id, user_id, approval_raised, approval_expiring, agent_failed) \
               VALUES ($1, $2, $3, $4, $5) ON CONFLICT (organization_id, user_id) DO UPDATE SET \
               approval_raised = COALESCE(excluded.approval_raised, notification_settings.approval_raised), \
               approval_expiring = COALESCE(excluded.approval_expiring, notification_settings.approval_expiring), \
               agent_failed = COALESCE(excluded.agent_failed, notification_settings.agent_failed)";
    let chosen = [approval_raised, approval_expiring, agent_failed];
    let chosen = chosen.map(|pace| pace.map(|pace| pace.as_str().to_owned()).into());
    let values = [scope.org.into(), person.into()].into_iter().chain(chosen);
    tx.connection().execute_raw(Statement::from_sql_and_values(scope.core.db.backend(), sql, values)).await?;
    let changes = [
        ("approval_raised", approval_raised),
        ("approval_expiring", approval_expiring),
        ("agent_failed", agent_failed),
    ];
    let changes = changes.into_iter().filter_map(|(name, pace)| Some((name.to_owned(), json!(pace?))));
    let (op, kind) = (ChangeOp::Updated, RecordKind::Member);
    let changes = serde_json::Value::Object(changes.collect());
    audit::record(&tx, audit::Entry { operation: "setNotifications", op, kind, id: person.0, changes });
    tx.commit().await
}
