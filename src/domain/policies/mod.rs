//! Organizations' own rules as records: editing them, and trying a text before it takes effect.
//!
//! `core/policy` makes the decisions. Each text has one source. `policy.csv` and the expectations are the operator's
//! files, which the service only reads. An organization's own rules come from its file if the policy folder has one,
//! and otherwise from the newest row of `policy_versions`; only then can they be changed through the schema.
//! Permissions: `policy.view`, `policy.edit`. No one can lock an organization's members out of its policy.

mod break_glass;
mod edit;
mod entity;
mod lines;
mod propose;
mod queries;
mod simulate;
mod versions;

pub use self::{
    break_glass::{BreakGlassResult, break_glass},
    edit::{Edit, edit, revert, set_permission},
    propose::{Proposal, propose, try_out},
    simulate::{CellUse, Flip, Simulation, simulate},
    versions::{NONE, Version, history, newest, resolve_version, text_of, version_of},
};
