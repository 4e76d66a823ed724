//! Notifications by mail. The letter names agent and kind, what is asked only where the organization allows it, and has a
//! link to exactly that approval or agent in the panel, which requires signing in.

use jiff::Timestamp as Instant;

use super::{
    content::{self, Approval, Line, Subject},
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
    domain::{mails::About, people},
};

/// The most characters of what is asked that a mail contains.
const LONGEST: usize = 500;

/// Writes the letter, and says who gets it. `None` if there is nothing left to tell.
pub async fn compose(
    core: &Core,
    user: UserId,
    about: &[About],
    more: usize,
) -> Result<Option<(String, Letter)>> {
    let mut lines = Vec::with_capacity(about.len());
    for one in about {
        lines.extend(look::at(core, user, one).await?);
    }
    let Some(first) = lines.first() else { return Ok(None) };
    let person = people::user(core, user).await?;
    // The quiet time counts from the attempt that succeeds.
    queries::store_told(core, user).await?;
    let rest = lines.len() - 1 + more;
    let mut subject = phrase(first);
    if rest > 0 {
        subject.push_str(&format!(", and {rest} more"));
    }
    let base = core.config.links();
    let items: Vec<Paragraph> = lines.iter().flat_map(|line| item(&base, line)).collect();
    let more = match more {
        0 => String::new(),
        more => format!("There {} {} more in the panel.", if more == 1 { "is" } else { "are" }, more),
    };
    let values =
        [("subject", &*subject), ("name", &person.name), ("more", &more), ("site", core.mailer.site())];
    Ok(Some((person.email, Letter::with_items(Template::Notifications, &values, &items))))
}

/// What a line says, in one sentence without its full stop.
fn phrase(line: &Line) -> String {
    let approval = match &line.subject {
        Subject::Agent { name, .. } => return format!("{} has failed", named(Some(name), "An agent")),
        Subject::Approval(approval) => asks(approval),
    };
    match line.what {
        NotificationKind::ApprovalAssigned => format!("Assigned to you: {approval}"),
        NotificationKind::ApprovalExpiring => format!("Expires soon: {approval}"),
        NotificationKind::ApprovalRaised | NotificationKind::AgentFailed => approval,
    }
}

fn asks(approval: &Approval) -> String {
    let (default, asks) = match approval.kind {
        ApprovalKind::Question => ("An agent", "asks a question"),
        ApprovalKind::Action => ("An agent", "asks for approval"),
        ApprovalKind::AuthRequired => ("An agent", "needs access to its model"),
        ApprovalKind::CostGuard => ("An agent", "has reached its cost limit"),
        ApprovalKind::ChannelError => ("A channel", "has failed"),
        ApprovalKind::AccessRequest => {
            return format!(
                "A new sender wants to write to {}",
                named(approval.about.as_deref(), "a channel")
            );
        }
        ApprovalKind::ServerAlert => ("A server", "raises an alert"),
    };
    format!("{} {asks}", named(approval.about.as_deref(), default))
}

/// A name, unless a mail program would make a link of it: no one sends people elsewhere by the name of an agent.
fn named<'a>(name: Option<&'a str>, default: &'a str) -> &'a str {
    name.filter(|name| !name.contains("://")).unwrap_or(default)
}

/// The paragraphs of a line.
fn item(base: &str, line: &Line) -> Vec<Paragraph> {
    let mut facts = vec![format!("{}.", phrase(line)), format!("Organization: {}.", line.org_name)];
    let mut paragraphs = Vec::new();
    let path = match &line.subject {
        Subject::Agent { id, reason, .. } => {
            facts.extend(reason.map(|reason| format!("Reason: {reason}.")));
            format!("agents/{id}")
        }
        Subject::Approval(approval) => {
            facts.push(format!("Kind: {}, severity: {}.", approval.kind, approval.severity));
            facts.extend(approval.expires_at.map(|at| format!("It expires at {}.", local(at, &line.zone))));
            paragraphs.extend(approval.text.as_deref().map(|text| {
                let cut: String = text.chars().take(LONGEST).collect();
                let mark = if cut.len() < text.len() { "…" } else { "" };
                Paragraph::Text(format!("It says: “{cut}{mark}”"))
            }));
            format!("approvals/{}", approval.id)
        }
    };
    paragraphs.insert(0, Paragraph::Text(facts.join(" ")));
    paragraphs.push(Paragraph::Link(format!("{base}/o/{}/{path}", line.org)));
    paragraphs
}

/// `2026-06-01 14:00 CEST`.
fn local(at: Timestamp, name: &str) -> String {
    match Instant::from_millisecond(at.0) {
        Ok(instant) => instant.to_zoned(zone(name)).strftime("%Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => at.to_string(),
    }
}
