//! Approvals: decisions that agents wait for, and alerts that the service wants a person to look at.
//!
//! For the states see `state.rs`: PENDING until resolved, answered, dismissed, or expired, all of them final.
//! Permissions: `approval.view`, `approval.resolve`. The agent's answer leaves as a command in the outbox,
//! written together with the decision.
//!
//! `reports.rs`: what hosts report; `judge.rs`: what an agent may do without asking; `raise.rs`: asking people;
//! `decide.rs`, `expiry.rs`: how an approval ends; `answers.rs`: how a decision reaches the agent; `plans.rs`: what its host
//! is told.

mod answers;
mod decide;
mod entity;
mod expiry;
pub mod graphql;
mod judge;
pub mod plans;
mod question;
mod raise;
pub mod reports;
mod state;

pub use self::{
    answers::{in_words, lose, told_in_turn},
    decide::{answer, dismiss, resolve},
    expiry::expire_due,
    judge::{authorized, require_access, store_categories},
    question::{Answer, Choice, Question},
    raise::{NewApproval, ToolRequest, Waiting, raise},
};
