//! Money and tokens: what agents' calls of models cost, what they may still spend, and what happens when nothing is left.
//!
//! A host measures each call and reports it ([`called`]): the call is priced, summed by day and by month, and shown with its
//! turn. Where a budget or a cost guard is set, a host needs a lease for it ([`lease`]): a part of what is left, so that all
//! hosts together can't spend more than there is. Every grant is one conditional UPDATE of the month's row. Permissions:
//! `organization.view` and `agent.output.view` read, `organization.edit` allows more.
//!
//! `terms.rs`: what may be spent; `months.rs`: what was; `measured.rs`: what turns have spent; `leases.rs`, `calls.rs`: what
//! hosts ask and report; `guard.rs`: nothing is left; `usage.rs`: a provider takes no more; `limits.rs`: agents that wait;
//! `release.rs`: how they go on.

mod allow;
mod calls;
pub mod graphql;
mod guard;
mod leases;
mod limits;
mod measured;
mod months;
mod prices;
mod queries;
mod release;
mod terms;
pub mod usage;

pub use self::{
    allow::allow,
    calls::called,
    leases::{expire_due, lease, returned},
    limits::{changed_for_all, forget, is_limited, limited_since},
    measured::{Measured, has_measured, measured},
    prices::prices_of,
    release::{changed, reconsider, release_due},
    terms::{is_metered, prices_now},
};
