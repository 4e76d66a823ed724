//! Money and tokens: the cost of model calls, budgets, and used-up limits.
//!
//! A host measures each call and reports it ([`record_call`]): the call is priced, added to the day and the month, and
//! shown with its turn. Where a budget or a cost guard is set, a host needs a lease for a call ([`grant_lease`]): a
//! part of the rest, so that all hosts together stay within the limit. Every grant is one conditional UPDATE of the
//! month's row. Permissions: `organization.view` and `agent.output.view` read, `organization.edit` allows more.
//!
//! `budget.rs`: the terms; `monthly_totals.rs`: the months' sums; `leases.rs`, `calls.rs`: requests and reports of
//! hosts; `cost_guard.rs`: used-up limits; `usage.rs`: refusals of providers; `limits.rs`: waiting agents;
//! `release.rs`: resuming them; `allow.rs`: allowances; `daily_usage.rs`: usage by day.

mod allow;
mod budget;
mod calls;
mod cost_guard;
mod daily_usage;
mod daily_usage_queries;
mod input;
mod lease_queries;
mod leases;
mod limit_queries;
mod limits;
mod monthly_totals;
mod prices;
mod queries;
mod release;
pub mod usage;

pub use self::{
    allow::{Allowed, allow},
    budget::{is_metered, prices_now},
    calls::record_call,
    cost_guard::{Exhausted, UsedUp},
    daily_usage::{DailyUsage, daily_usage},
    input::AllowSpendingInput,
    lease_queries::LEASE_OVER,
    leases::{expire_due, grant_lease, return_lease},
    limit_queries::LIMIT_OVER,
    limits::{LimitsChanged, changed_for_all, delete_wait, limited_since},
    monthly_totals::GuardedLimit,
    prices::{ModelPrice, prices_of},
    release::{agent_edited, release_due},
};
