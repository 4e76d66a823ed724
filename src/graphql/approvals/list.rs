//! The filters and orders of the feed of approvals.

use super::Approval;
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalSort, ApprovalStatus, Severity, SortOrder},
        ids::{AgentId, ConversationId, UserId},
    },
    core::{
        access::Scope,
        store::{holding, holding_as_is, holds, holds_in_any_case},
    },
    read::{Keys, Rows, words},
};

/// SQL: the approval waits for a decision. An overdue one doesn't, even before the job has expired it.
pub const PENDING: &str = "t.status = 'PENDING' AND (t.expires_at IS NULL OR t.expires_at > :now)";
/// SQL: the time of a pending approval is up.
const OVERDUE: &str = "t.status = 'PENDING' AND t.expires_at <= :now";
/// SQL: the caller has snoozed it.
const SNOOZED: &str = "EXISTS (SELECT 1 FROM approval_snoozes s WHERE s.organization_id = t.organization_id \
                       AND s.approval_id = t.id AND s.user_id = :viewer AND s.until > :now)";

/// The filters of a feed of approvals. `None` doesn't filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Vec<ApprovalStatus>>,
    pub kinds: Option<Vec<ApprovalKind>>,
    /// Only those of this severity or a higher one.
    pub severity_at_least: Option<Severity>,
    pub agent_id: Option<AgentId>,
    pub conversation_id: Option<ConversationId>,
    /// Only those that this person should decide.
    pub assignee_id: Option<UserId>,
    /// Only those that the caller has snoozed, or has not.
    pub snoozed: Option<bool>,
    /// Only those in which every word occurs: in the title, the text, the request, or the agent's name.
    pub search: Option<String>,
}

/// The approvals that pass `filter`.
pub fn rows(scope: &Scope, filter: &Filter) -> Rows<Approval> {
    let at_least = filter.severity_at_least.map(|least| {
        let from = Severity::ALL.iter().position(|severity| *severity == least);
        &Severity::ALL[from.unwrap_or_default()..]
    });
    let rows = Rows::of(scope)
        .one_of("t.kind", filter.kinds.as_deref(), ApprovalKind::as_str)
        .one_of("t.severity", at_least, Severity::as_str)
        .filter_if("t.agent_id = ?", filter.agent_id.map(|id| id.0))
        .filter_if("t.conversation_id = ?", filter.conversation_id.map(|id| id.0))
        .filter_if("t.assignee_id = ?", filter.assignee_id.map(|id| id.0))
        .whether(SNOOZED, filter.snoozed);
    let rows = words(filter.search.as_deref()).fold(rows, matching);
    match filter.status.as_deref() {
        Some(status) => rows.filter(&in_state(status), []),
        None => rows,
    }
}

/// SQL for the searched texts that are not stored in folded form. The request's digest is left out, because short words
/// occur in it by chance.
const TEXTS: &str = "COALESCE(t.body, '') || ' ' || COALESCE(t.request ->> 'tool', '') || ' ' || \
                     COALESCE(t.request ->> 'input', '')";

/// Only approvals in which `word` occurs.
fn matching(rows: Rows<Approval>, word: &str) -> Rows<Approval> {
    let Some(name) = holding(word) else { return rows.filter("1 = 0", []) };
    let condition = format!(
        "({} OR t.agent_id IN (SELECT n.id FROM agents n WHERE n.organization_id = $1 AND {}) OR {})",
        holds("t.title_folded"),
        holds("n.name_folded"),
        holds_in_any_case(TEXTS),
    );
    rows.filter(&condition, [name.clone().into(), name.into(), holding_as_is(word).into()])
}

/// SQL: the approval is shown with one of these states.
fn in_state(wanted: &[ApprovalStatus]) -> String {
    let of = |status: &ApprovalStatus| match status {
        ApprovalStatus::Pending => format!("({PENDING})"),
        ApprovalStatus::Expired => format!("(t.status = 'EXPIRED' OR {OVERDUE})"),
        ApprovalStatus::Resolved | ApprovalStatus::Dismissed => format!("t.status = '{status}'"),
    };
    match wanted.iter().map(of).collect::<Vec<_>>() {
        any if any.is_empty() => "1 = 0".to_owned(),
        any => format!("({})", any.join(" OR ")),
    }
}

/// As in the index `approvals_urgent`.
const IS_PENDING: &str = "(CASE t.status WHEN 'PENDING' THEN 1 ELSE 0 END)";
const RISK: &str = "(COALESCE(t.risk, CASE t.severity WHEN 'CRITICAL' THEN 90 WHEN 'HIGH' THEN 70 \
                    WHEN 'MEDIUM' THEN 40 ELSE 10 END))";
const SOON: &str = "(-COALESCE(t.expires_at, 9223372036854775807))";
const EXPIRES: &str = "COALESCE(t.expires_at, 9223372036854775807)";

/// The sort keys. `order` may reverse them.
pub fn keys(sort: ApprovalSort, order: Option<SortOrder>) -> Keys {
    match sort {
        ApprovalSort::Risk => {
            Keys::new("RISK", order.unwrap_or(SortOrder::Desc)).int(IS_PENDING).int(RISK).int(SOON)
        }
        ApprovalSort::Expires => Keys::new("EXPIRES", order.unwrap_or(SortOrder::Asc)).int(EXPIRES),
        ApprovalSort::Created => Keys::new("CREATED", order.unwrap_or(SortOrder::Desc)).int("t.created_at"),
    }
}
