//! Notifications by mail. The letter names the agent and the kind of request, and its text only if the organization
//! allows that. It links to the approval or agent in the panel, which requires signing in.

use jiff::Timestamp as Instant;

use super::{
    content::{self, Approval, NotificationContent, Subject},
    notify::zone,
    queries,
};
use crate::{
    base::{
        enums::{ApprovalKind, NotificationKind},
        ids::UserId,
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        mail::{Letter, Paragraph, Template},
    },
    domain::{
        mails::{About, safe_name},
        people,
    },
};

/// Writes the letter. Returns it with the recipient's address. `None` if no notification is relevant any longer.
pub async fn compose(
    core: &Core,
    user: UserId,
    about: &[About],
    more: usize,
) -> Result<Option<(String, Letter)>> {
    let mut contents = Vec::with_capacity(about.len());
    for one in about {
        contents.extend(content::load(core, user, one).await?);
    }
    let Some(first) = contents.first() else { return Ok(None) };
    let person = people::user(core, user).await?;
    // The shortest time between two mails counts from the successful attempt.
    queries::store_notified(core, user).await?;
    let rest = contents.len() - 1 + more;
    let mut subject = summarize(first);
    if rest > 0 {
        subject.push_str(&format!(", and {rest} more"));
    }
    let base = core.config.links();
    let items: Vec<Paragraph> = contents.iter().flat_map(|content| write_item(&base, content)).collect();
    let more = match more {
        0 => String::new(),
        more => format!("There {} {} more in the panel.", if more == 1 { "is" } else { "are" }, more),
    };
    let values =
        [("subject", &*subject), ("name", &person.name), ("more", &more), ("site", core.mailer.site())];
    Ok(Some((person.email, Letter::with_items(Template::Notifications, &values, &items))))
}

/// The notification as a sentence without its full stop.
fn summarize(content: &NotificationContent) -> String {
    let approval = match &content.subject {
        Subject::Agent { name, .. } => return format!("{} has failed", safe_name(Some(name), "An agent")),
        Subject::Approval(approval) => describe_approval(approval),
    };
    match content.what {
        NotificationKind::ApprovalAssigned => format!("Assigned to you: {approval}"),
        NotificationKind::ApprovalExpiring => format!("Expires soon: {approval}"),
        NotificationKind::ApprovalRaised | NotificationKind::AgentFailed => approval,
    }
}

fn describe_approval(approval: &Approval) -> String {
    let (default, asks) = match approval.kind {
        ApprovalKind::Question => ("An agent", "asks a question"),
        ApprovalKind::Action => ("An agent", "asks for approval"),
        ApprovalKind::AuthRequired => ("An agent", "needs access to its model"),
        ApprovalKind::CostGuard => ("An agent", "has reached its cost limit"),
        ApprovalKind::ChannelError => ("A channel", "has failed"),
        ApprovalKind::AccessRequest => {
            return format!(
                "A new sender wants to write to {}",
                safe_name(approval.about.as_deref(), "a channel")
            );
        }
        ApprovalKind::ServerAlert => ("A server", "raises an alert"),
    };
    format!("{} {asks}", safe_name(approval.about.as_deref(), default))
}

/// The paragraphs of a notification.
fn write_item(base: &str, content: &NotificationContent) -> Vec<Paragraph> {
    let mut facts = vec![format!("{}.", summarize(content)), format!("Organization: {}.", content.org_name)];
    let mut paragraphs = Vec::new();
    let path = match &content.subject {
        Subject::Agent { id, reason, .. } => {
            facts.extend(reason.map(|reason| format!("Reason: {reason}.")));
            format!("agents/{id}")
        }
        Subject::Approval(approval) => {
            facts.push(format!("Kind: {}, severity: {}.", approval.kind, approval.severity));
            facts.extend(
                approval.expires_at.map(|at| format!("It expires at {}.", local_time(at, &content.zone))),
            );
            paragraphs.extend(approval.text.as_deref().map(|text| {
                let cut: String = text.chars().take(500).collect();
                let mark = if cut.len() < text.len() { "…" } else { "" };
                Paragraph::Text(format!("It says: “{cut}{mark}”"))
            }));
            format!("approvals/{}", approval.id)
        }
    };
    paragraphs.insert(0, Paragraph::Text(facts.join(" ")));
    paragraphs.push(Paragraph::Link(format!("{base}/o/{}/{path}", content.org)));
    paragraphs
}

/// `2026-06-01 14:00 CEST`.
fn local_time(at: Timestamp, name: &str) -> String {
    match Instant::from_millisecond(at.0) {
        Ok(instant) => instant.to_zoned(zone(name)).strftime("%Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => at.to_string(),
    }
}
