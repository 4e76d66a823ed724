//! The notifications that a member has chosen, and the defaults of roles.

use serde_json::json;

use super::queries;
use crate::{
    base::{
        enums::{ChangeOp, NotificationKind, NotificationPace, RecordKind},
        permission::Role,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, audit, store::sql::row},
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

row! {
    /// A member's choice. `None`: the default; in an update: unchanged.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Choice {
        /// A new approval, or one that is assigned to them.
        approval_raised: Option<NotificationPace>,
        /// An approval that is about to expire.
        approval_expiring: Option<NotificationPace>,
        /// An agent that has failed.
        agent_failed: Option<NotificationPace>,
    }
}

/// The pace of one kind: the member's choice, or the default. Approvals are notified at once. Failed agents concern
/// every member who may see them, so that by default only the members responsible for the organization are notified.
pub(super) fn pace(what: NotificationKind, chosen: Option<NotificationPace>, role: Role) -> NotificationPace {
    chosen.unwrap_or(match (what, role) {
        (NotificationKind::AgentFailed, Role::Operator | Role::Viewer) => NotificationPace::Off,
        _ => NotificationPace::AtOnce,
    })
}

/// The caller's notification settings in the scope's organization, with defaults.
///
/// # Errors
/// `PERMISSION_DENIED` for a service token; the database is unreachable.
pub async fn effective_paces(scope: &Scope) -> Result<Paces> {
    let person = scope.person()?;
    let role =
        scope.membership.role.ok_or_else(|| Problem::new(Code::NotAMember, "You are not a member."))?;
    let chosen = queries::choice(scope, person.id).await?.unwrap_or_default();
    Ok(Paces {
        approval_raised: pace(NotificationKind::ApprovalRaised, chosen.approval_raised, role),
        approval_expiring: pace(NotificationKind::ApprovalExpiring, chosen.approval_expiring, role),
        agent_failed: pace(NotificationKind::AgentFailed, chosen.agent_failed, role),
    })
}

/// Updates the caller's notification settings in the scope's organization. Absent fields keep their value.
///
/// # Errors
/// `PERMISSION_DENIED` for a service token; the database is unreachable.
pub async fn update_settings(scope: &Scope, choice: Choice) -> Result<()> {
    let person = scope.person()?.id;
    let Choice { approval_raised, approval_expiring, agent_failed } = choice;
    let tx = scope.begin().await?;
    queries::store_choice(&tx, person, choice).await?;
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
