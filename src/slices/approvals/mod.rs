//! Approvals: decisions that agents wait for, and alerts that the service wants a person to look at.
//!
//! For the states see `state.rs`: PENDING until resolved, answered, dismissed, or expired, all of them final.
//! Permissions: `approval.view`, `approval.resolve`. The agent's answer leaves as a command in the outbox,
//! written together with the decision.

mod decide;
mod entity;
mod expiry;
pub mod graphql;
mod question;
mod raise;
mod state;

pub use self::{
    decide::{answer, dismiss, resolve},
    expiry::expire_due,
    question::{Answer, Choice, Question},
    raise::{NewApproval, ToolRequest, raise},
};
