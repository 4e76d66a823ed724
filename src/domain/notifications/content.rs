//! The current content of a notification: none once the approval is decided, the agent runs again, or the person may no
//! longer see it.

use super::{notify::permission, queries};
use crate::{
    base::{
        enums::{ApprovalKind, NotificationKind, Severity, StatusReason},
        ids::{AgentId, ApprovalId, OrgId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::Core,
    domain::mails::About,
};

/// The content of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationContent {
    pub what: NotificationKind,
    pub org: OrgId,
    pub org_name: String,
    /// The person's time zone, or the organization's.
    pub zone: String,
    pub subject: Subject,
}

/// The subject of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Approval(Approval),
    /// An agent that has failed.
    Agent {
        id: AgentId,
        name: String,
        reason: Option<StatusReason>,
    },
}

/// A pending approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    pub kind: ApprovalKind,
    pub severity: Severity,
    /// The name of the channel, for a channel error or an access request; otherwise of the agent or server.
    pub about: Option<String>,
    /// The text of the request, if the organization's settings allow it in mail.
    pub text: Option<String>,
    pub expires_at: Option<Timestamp>,
}

/// Loads the content of a notification for a person, if it is still relevant.
pub async fn load(core: &Core, user: UserId, about: &About) -> Result<Option<NotificationContent>> {
    let who = (about.org, user);
    let (role, org_name, zone, subject) = match (about.approval, about.agent) {
        (Some(id), _) => {
            let Some(row) = queries::approval(core, who, (id, about.what)).await? else { return Ok(None) };
            let subject = Subject::Approval(Approval {
                id,
                kind: row.kind,
                severity: row.severity,
                about: row.about,
                text: request_text(row.title, row.body),
                expires_at: row.expires_at,
            });
            (row.role, row.org_name, row.zone, subject)
        }
        (None, Some(id)) => {
            let Some(row) = queries::failed_agent(core, who, id).await? else { return Ok(None) };
            let subject = Subject::Agent { id, name: row.name, reason: row.status_reason };
            (row.role, row.org_name, row.zone, subject)
        }
        (None, None) => return Ok(None),
    };
    let content = NotificationContent { what: about.what, org: about.org, org_name, zone, subject };
    Ok(core.policy.allows(about.org, role, permission(about.what)).then_some(content))
}

fn request_text(title: Option<String>, body: Option<String>) -> Option<String> {
    let text = [title, body].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(text).filter(|text| !text.is_empty())
}
