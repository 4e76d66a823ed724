//! Policies as records: every text that a policy file has had, editing them, and what was decided by them.
//!
//! What decides is `core/policy`; this slice is how an organization's own file is changed while the service runs. The
//! newest row of `policy_versions` is the truth about it, and every replica brings its folder to that (`sync`); a hand
//! edit of the file becomes a row too. `policy.csv` and `expectations.csv` are the operator's: their texts are kept here,
//! and only the operator writes them. Who may: `policy.view`, `policy.edit`; nobody edits the members of an
//! organization out of its policy.

mod break_glass;
mod edit;
mod entity;
pub mod graphql;
mod lines;
mod place;
mod retry;
mod simulate;
mod sync;
mod unwritten;
mod versions;

/// What folder and database had in common.
fn synced(core: &crate::core::Core) -> std::sync::Arc<Synced> {
    let any = core.policies.get_or_init(|| std::sync::Arc::new(Synced::default()));
    std::sync::Arc::clone(any).downcast().unwrap_or_default()
}

pub use self::{
    break_glass::{Aside, Broken, break_glass, set_aside},
    edit::{Edit, edit, revert, revert_operators, set_permission},
    place::sweep,
    simulate::{Flip, Simulation, simulate},
    sync::{Synced, round as sync},
    unwritten::{Unwritten, of_no_organization, unwritten},
    versions::{NO_FILE, Version, history, operator_history, owner_of, published, version_named, version_of},
};
pub use crate::core::access::decisions::{
    Decision, Decisions, Outcome, flush as flush_decisions, prune as prune_decisions,
};
