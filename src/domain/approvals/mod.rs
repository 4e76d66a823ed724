//! Approvals: decisions that agents wait for, and alerts that the service wants a person to look at.
//!
//! For the states see `state.rs`: PENDING until resolved, answered, dismissed, or expired, all of them final.
//! Permissions: `approval.view`, `approval.resolve`. The agent's answer leaves as a command, written together with the decision.
//!
//! `reports.rs`: what hosts report; `risk_check.rs`: what an agent may do without asking; `raise.rs`: asking people; `channels.rs`:
//! channels that have failed; `auto_resolve.rs`: what ends because its cause was fixed; `assignment.rs`: who looks after it; `decide.rs`,
//! `expiry.rs`: how an approval ends; `answers.rs`: how a decision reaches the agent; `plans.rs`: what its host gets; `chat_view.rs`:
//! what people are shown of it in chats.

mod answers;
mod assignment;
mod auto_resolve;
mod channels;
mod chat_view;
mod decide;
mod end;
mod entity;
mod expiry;
pub mod plans;
mod queries;
mod question;
mod raise;
pub mod reports;
mod risk_check;
mod rows;
mod state;

pub use self::{
    answers::{in_words, lose, told_in_turn},
    assignment::{Assigned, Expiring, Snoozed, assign, forget_assignee, remind_due, snooze},
    auto_resolve::{
        NETWORK, agent_deleted, channel_deleted, credential_accepted, guard_cost, host_allowed,
        limits_changed, require_credential, server_deleted, spending_allowed, withdraw_access_requests,
        withdraw_channel_errors,
    },
    channels::channel_failed,
    chat_view::{Shown, shown},
    decide::{Closed, answer, answer_shown, dismiss, resolve},
    expiry::{expire_due, overdue},
    queries::{OVERDUE, TO_REMIND},
    question::{Answer, Choice, Question},
    raise::{NewApproval, Raised, ToolRequest, Waiting, raise},
    reports::waited_for,
    risk_check::{authorized, require_access, store_categories},
    rows::pending_of,
};
