//! Organizations' own rules as records: who changes them, and trying out a text before it decides.
//!
//! `core/policy` makes the decisions. A text has one owner. `policy.csv` and the expectations are the
//! operator's files, which the service only reads. An organization's own rules belong to its file if the policy
//! folder has one, and otherwise to the newest row of `policy_versions`; only then can they be changed through
//! the schema. Permissions: `policy.view`, `policy.edit`. No one can lock an organization's members out of its
//! policy.

mod break_glass;
mod edit;
mod entity;
mod lines;
mod propose;
mod queries;
mod simulate;
mod versions;

pub use self::{
    break_glass::{Broken, break_glass},
    edit::{Edit, edit, revert, set_permission},
    propose::{Proposal, propose, try_out},
    simulate::{Flip, Simulation, simulate},
    versions::{NONE, Version, history, newest, text_of, version_named, version_of},
};
