//! What there is to say about an approval or an agent now: nothing once it is decided, once the agent is up again, or to a
//! person who may no longer see it.

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
pub async fn at(core: &Core, user: UserId, about: &About) -> Result<Option<Line>> {
    let who = (about.org, user);
    let (role, org_name, zone, subject) = match (about.approval, about.agent) {
        (Some(id), _) => {
            let Some(row) = queries::approval(core, who, (id, about.what)).await? else { return Ok(None) };
            let subject = Subject::Approval(Approval {
                id,
                kind: row.kind,
                severity: row.severity,
                about: row.about,
                text: asked(row.title, row.body),
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
    let line = Line { what: about.what, org: about.org, org_name, zone, subject };
    Ok(core.policy.allows(about.org, role, permission(about.what)).then_some(line))
}

fn asked(title: Option<String>, body: Option<String>) -> Option<String> {
    let text = [title, body].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(text).filter(|text| !text.is_empty())
}
