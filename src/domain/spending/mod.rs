//! Money and tokens: what agents' calls of models cost, what they may still spend, and what happens when nothing is left.
//!
//! A host measures each call and reports it ([`called`]): the call is priced, summed by day and by month, and shown with its
//! turn. Where a budget or a cost guard is set, a host needs a lease for it ([`lease`]): a part of what is left, so that all
//! hosts together can't spend more than there is. Every grant is one conditional UPDATE of the month's row. Permissions:
//! `organization.view` and `agent.output.view` read, `organization.edit` allows more.
//!
//! `budget.rs`: what may be spent; `monthly_totals.rs`: what was; `leases.rs`, `calls.rs`: what hosts ask and report; `cost_guard.rs`: nothing
//! is left; `usage.rs`: a provider takes no more; `limits.rs`: agents that wait; `release.rs`: how they go on.

mod allow;
mod budget;
mod calls;
mod cost_guard;
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
    calls::called,
    cost_guard::{Exhausted, UsedUp},
    input::AllowSpendingInput,
    lease_queries::LEASE_OVER,
    leases::{expire_due, lease, returned},
    limit_queries::LIMIT_OVER,
    limits::{LimitsChanged, changed_for_all, forget, limited_since},
    monthly_totals::Guarded,
    prices::{ModelPrice, prices_of},
    release::{agent_edited, release_due},
};
