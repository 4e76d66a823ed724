//! Approvals: decisions that agents wait for, and alerts that the service wants a person to look at.
//!
//! For the states see `state.rs`: PENDING until resolved, answered, dismissed, or expired, all of them final.
//! Permissions: `approval.view`, `approval.resolve`. The agent's answer leaves as a command, written together with the decision.
//!
//! `reports.rs`: what hosts report; `judge.rs`: what an agent may do without asking; `raise.rs`: asking people; `channels.rs`:
//! channels that have failed; `fixed.rs`: what ends because its cause was fixed; `attention.rs`: who looks after it; `decide.rs`,
//! `expiry.rs`: how an approval ends; `answers.rs`: how a decision reaches the agent; `plans.rs`: what its host gets; `shown.rs`:
//! what people are shown of it in chats.

mod answers;
mod attention;
mod channels;
mod decide;
mod end;
mod entity;
mod expiry;
mod fixed;
mod judge;
pub mod plans;
mod queries;
mod question;
mod raise;
pub mod reports;
mod rows;
mod shown;
mod state;

pub use self::{
    answers::{in_words, lose, told_in_turn},
    attention::{Assigned, Expiring, Snoozed, assign, forget_assignee, remind_due, snooze},
    channels::channel_failed,
    decide::{Closed, answer, answer_shown, dismiss, resolve},
    expiry::{expire_due, overdue},
    fixed::{
        NETWORK, agent_deleted, channel_deleted, credential_accepted, guard_cost, host_allowed,
        limits_changed, require_credential, server_deleted, spending_allowed, withdraw_access_requests,
        withdraw_channel_errors,
    },
    judge::{authorized, require_access, store_categories},
    queries::{OVERDUE, TO_REMIND},
    question::{Answer, Choice, Question},
    raise::{NewApproval, Raised, ToolRequest, Waiting, raise},
    reports::waited_for,
    rows::pending_of,
    shown::{Shown, shown},
};
