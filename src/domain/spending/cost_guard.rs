//! A used-up limit: notifies people, and pauses or stops the agent, in the middle of a turn if necessary.

use std::time::Duration;

use muster_protocol::plan::PlanResponse;

use super::{
    budget::Terms,
    leases::SpentLimit,
    limit_queries::Limit,
    limits,
    monthly_totals::{self, BudgetOwner, GuardedLimit},
};
use crate::{
    base::{
        enums::{CostGuardAction, LimitKind},
        ids::AgentId,
        problem::Result,
        time::Timestamp,
    },
    core::{
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{agents::LockedAgent, conversations::turns},
};

/// A limit is used up.
#[derive(Debug)]
pub struct UsedUp {
    pub of: GuardedLimit,
    /// The agent that could not go on.
    pub cause: AgentId,
    /// One line.
    pub title: &'static str,
    /// The amounts and the consequence.
    pub body: String,
    /// The proposed allowance: millionths, or tokens for the next 60 minutes.
    pub amount: i64,
    /// When there is something to spend again.
    pub until: Timestamp,
    /// A dismissal since then still counts.
    pub since: Timestamp,
    /// Whether the agent continues. Then one notice since `since` is enough.
    pub is_notice: bool,
}

impl DomainEvent for UsedUp {}

/// An agent must be stopped because a limit is used up.
#[derive(Debug)]
pub struct Exhausted {
    pub agent: AgentId,
    pub reason: String,
}

impl DomainEvent for Exhausted {}

/// Keeps the agent from spending more: its turns wait, or it is stopped.
pub(super) async fn enforce(
    tx: &Tx,
    agent: &LockedAgent,
    terms: &Terms,
    spent: &SpentLimit,
) -> Result<PlanResponse> {
    let reason = describe(terms, spent);
    // First: it may lock the month's row, which precedes rows of limits in the lock order.
    notify_people(tx, agent, terms, spent).await?;
    let limit = Limit { kind: spent.kind, reason: &reason, until: spent.until, credential: None };
    limits::set_wait(tx, agent.id, &limit).await?;
    turns::limit_turns(tx, agent.id).await?;
    if spent.action == CostGuardAction::Stop {
        emit(tx, Exhausted { agent: agent.id, reason: reason.clone() }).await?;
    }
    let reason = match spent.action {
        CostGuardAction::Stop => format!("{reason} You are stopped."),
        _ => format!("{reason} End your turn: it resumes by itself once there is something to spend again."),
    };
    Ok(PlanResponse::Spent { reason, until: Some(spent.until.0) })
}

/// Notifies people that a limit is used up. For NOTIFY, once a month or hour. Otherwise once until they decide, and not
/// within an hour of a dismissal. A request about tokens lasts an hour, after which the counted tokens have expired.
pub(super) async fn notify_people(
    tx: &Tx,
    agent: &LockedAgent,
    terms: &Terms,
    spent: &SpentLimit,
) -> Result<()> {
    let of = spent.owner.limit(spent.kind);
    let title = match (of.kind, of.agent) {
        (LimitKind::Tokens, _) => "The agent has used up its hourly tokens",
        (_, Some(_)) => "The agent's monthly budget is used up",
        (_, None) => "The organization's monthly budget is used up",
    };
    if spent.owner == BudgetOwner::Organization {
        // Locks the month's row, so that only one of two agents notifies people.
        monthly_totals::lock_organization(tx, terms).await?;
    }
    let is_notice = spent.action == CostGuardAction::Notify;
    let (since, until) = match spent.kind {
        LimitKind::Tokens => (tx.now.minus(Duration::from_hours(1)), tx.now.plus(Duration::from_hours(1))),
        _ if is_notice => (super::budget::month(&terms.zone, tx.now).0, spent.until),
        _ => (tx.now.minus(Duration::from_hours(1)), spent.until),
    };
    // A fifth of the limit, or the cost of the next call if that is more.
    let amount = (spent.limit / 5).max(spent.short).max(1);
    let body = match spent.action {
        CostGuardAction::Notify => format!("{} It continues.", describe(terms, spent)),
        CostGuardAction::Pause => format!("{} Its turns wait.", describe(terms, spent)),
        CostGuardAction::Stop => format!("{} It is stopped.", describe(terms, spent)),
    };
    emit(tx, UsedUp { of, cause: agent.id, title, body, amount, until, since, is_notice }).await
}

/// The used-up limit in one sentence.
pub(super) fn describe(terms: &Terms, spent: &SpentLimit) -> String {
    let amount = |value: i64| match spent.kind {
        LimitKind::Tokens => value.to_string(),
        _ => format_money(value, &terms.currency),
    };
    let limit = amount(spent.limit);
    let whose = match (spent.kind, spent.owner) {
        (LimitKind::Tokens, _) => format!("The agent's {limit} tokens of the last 60 minutes are used up"),
        (_, BudgetOwner::Agent(_)) => format!("The agent's budget of {limit} for this month is used up"),
        (_, BudgetOwner::Organization) => {
            format!("The organization's budget of {limit} for this month is used up")
        }
    };
    let held = match spent.held {
        0 => String::new(),
        held => format!(", {} held for calls under way", amount(held)),
    };
    format!("{whose}: {} used{held}.", amount(spent.used))
}

/// Millionths as an amount: `12.50 EUR`. Cents are enough, except below one.
fn format_money(micro: i64, currency: &str) -> String {
    let (whole, part) = (micro / 1_000_000, micro % 1_000_000);
    if whole == 0 && part % 10_000 != 0 {
        return format!("0.{:04} {currency}", part / 100);
    }
    format!("{whole}.{:02} {currency}", part / 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_two_decimals_and_a_small_one_four() {
        let shown = [12_500_000, 1_009_999, 500_000, 64_500, 0].map(|micro| format_money(micro, "EUR"));
        assert_eq!(shown, ["12.50 EUR", "1.00 EUR", "0.50 EUR", "0.0645 EUR", "0.00 EUR"]);
    }
}
