//! Organizations' own rules as records: who gives them which text; and trying another one before it decides.
//!
//! What decides is `core/policy`. A text has one owner. `policy.csv` and the expectations are the operator's files; the
//! service only reads them. An organization's own rules belong to its file where the policy folder has one, and otherwise
//! to the newest row of `policy_versions`: only then can they be changed through the schema. Who may: `policy.view`,
//! `policy.edit`; nobody edits the members of an organization out of its policy.

mod break_glass;
mod edit;
mod entity;
pub mod graphql;
mod lines;
mod objects;
mod simulate;
mod versions;

pub use self::{
    break_glass::{Broken, break_glass},
    edit::{Edit, edit, revert, set_permission},
    simulate::{Flip, Simulation, simulate},
    versions::{NONE, Version, history, newest, text_of, version_named, version_of},
};
