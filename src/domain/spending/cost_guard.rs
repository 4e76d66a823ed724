//! Nothing is left to spend: people are notified, and the agent is paused or stopped, in the middle of a turn if necessary.

use std::time::Duration;

use muster_protocol::plan::PlanResponse;

use super::{
    budget::Terms,
    leases::Spent,
    limit_queries::Limit,
    limits,
    monthly_totals::{self, Guarded, Of},
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

/// Nothing is left to spend of a limit.
#[derive(Debug)]
pub struct UsedUp {
    /// The limit.
    pub of: Guarded,
    /// The agent that could not go on.
    pub cause: AgentId,
    /// That nothing is left, in one line.
    pub title: &'static str,
    /// What was spent, and what follows.
    pub body: String,
    /// How much is proposed to be allowed on top: millionths, or tokens for the next 60 minutes.
    pub amount: i64,
    /// When it is over, because there is something to spend again.
    pub until: Timestamp,
    /// People who have dismissed it since then are left alone.
    pub since: Timestamp,
    /// Whether the agent goes on: people who were notified since then know enough.
    pub is_notice: bool,
}

impl DomainEvent for UsedUp {}

/// An agent has nothing left to spend, and is to be stopped then.
#[derive(Debug)]
pub struct Exhausted {
    /// The agent.
    pub agent: AgentId,
    /// What is spent, in words.
    pub reason: String,
}

impl DomainEvent for Exhausted {}

/// Keeps the agent from spending more. Its turns wait, or it is stopped.
pub(super) async fn act(tx: &Tx, agent: &LockedAgent, terms: &Terms, spent: &Spent) -> Result<PlanResponse> {
    let reason = words(terms, spent);
    // First: it may hold the month's row, which comes before rows of limits.
    tell(tx, agent, terms, spent).await?;
    let limit = Limit { kind: spent.kind, reason: &reason, until: spent.until, credential: None };
    limits::set(tx, agent.id, &limit).await?;
    turns::limit(tx, agent.id).await?;
    if spent.action == CostGuardAction::Stop {
        emit(tx, Exhausted { agent: agent.id, reason: reason.clone() }).await?;
    }
    let reason = match spent.action {
        CostGuardAction::Stop => format!("{reason} You are stopped."),
        _ => format!("{reason} End your turn: it goes on by itself once there is something to spend again."),
    };
    Ok(PlanResponse::Spent { reason, until: Some(spent.until.0) })
}

/// Tells people that nothing is left: of NOTIFY once for each month or hour, else once while they have not decided, and not within
/// an hour after they have dismissed it. For tokens they are asked for an hour: by then those that counted do so no more.
pub(super) async fn tell(tx: &Tx, agent: &LockedAgent, terms: &Terms, spent: &Spent) -> Result<()> {
    let of = spent.of.limit(spent.kind);
    let title = match (of.kind, of.agent) {
        (LimitKind::Tokens, _) => "The agent has used up its tokens of an hour",
        (_, Some(_)) => "The agent's budget of the month is used up",
        (_, None) => "The organization's budget of the month is used up",
    };
    if spent.of == Of::Organization {
        // Holds the month's row, so that of two agents that find nothing left only one tells people.
        months::hold(tx, terms).await?;
    }
    let is_notice = spent.action == CostGuardAction::Notify;
    let (since, until) = match spent.kind {
        LimitKind::Tokens => (tx.now.minus(Duration::from_hours(1)), tx.now.plus(Duration::from_hours(1))),
        _ if is_notice => (super::budget::month(&terms.zone, tx.now).0, spent.until),
        _ => (tx.now.minus(Duration::from_hours(1)), spent.until),
    };
    // A fifth of the limit, or what the next call takes if that is more.
    let amount = (spent.limit / 5).max(spent.short).max(1);
    let body = match spent.action {
        CostGuardAction::Notify => format!("{} It goes on.", words(terms, spent)),
        CostGuardAction::Pause => format!("{} Its turns wait.", words(terms, spent)),
        CostGuardAction::Stop => format!("{} It is stopped.", words(terms, spent)),
    };
    emit(tx, UsedUp { of, cause: agent.id, title, body, amount, until, since, is_notice }).await
}

/// What is spent, in words.
pub(super) fn words(terms: &Terms, spent: &Spent) -> String {
    let amount = |of: i64| match spent.kind {
        LimitKind::Tokens => of.to_string(),
        _ => money(of, &terms.currency),
    };
    let limit = amount(spent.limit);
    let whose = match (spent.kind, spent.of) {
        (LimitKind::Tokens, _) => format!("The agent's {limit} tokens of the last 60 minutes are used up"),
        (_, Of::Agent(_)) => format!("The agent's budget of {limit} for this month is used up"),
        (_, Of::Organization) => format!("The organization's budget of {limit} for this month is used up"),
    };
    let held = match spent.held {
        0 => String::new(),
        held => format!(", {} held for calls under way", amount(held)),
    };
    format!("{whose}: {} used{held}.", amount(spent.used))
}

/// Millionths as an amount: `12.50 EUR`. Cents are enough, except below one.
fn money(micro: i64, currency: &str) -> String {
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
        let shown = [12_500_000, 1_009_999, 500_000, 64_500, 0].map(|micro| money(micro, "EUR"));
        assert_eq!(shown, ["12.50 EUR", "1.00 EUR", "0.50 EUR", "0.0645 EUR", "0.00 EUR"]);
    }
}
