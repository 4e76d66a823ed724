//! Approvals: what agents wait for a person to decide, and what the service wants somebody to look at.
//!
//! States: see `state.rs`; PENDING until it is resolved, answered, dismissed, or has expired; each of these is
//! final. Who may: `approval.view`, `approval.resolve`. What leaves the process: the answer for the agent,
//! as a command in the outbox, written with the decision.

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
