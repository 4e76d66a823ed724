//! Approvals: decisions that agents wait for, and alerts that need a person.
//!
//! An approval is PENDING until it is resolved, answered, dismissed or expired; all of these are final (`state.rs`).
//! Permissions: `approval.view`, `approval.resolve`. The decision's transaction also writes the command that takes it
//! to the agent.
//!
//! `reports.rs`: reports of hosts; `risk_check.rs`: actions that need no decision; `raise.rs`: raising an approval;
//! `channels.rs`: failed channels; `auto_resolve.rs`: approvals whose cause was fixed; `assignment.rs`: assigning and
//! snoozing; `decide.rs`, `expiry.rs`: the end of an approval; `answers.rs`: delivery of a decision to the agent;
//! `plans.rs`: decisions for hosts; `chat_view.rs`: requests in chats.

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
    answers::{describe_answers, mark_delivered_in_turn, settle_ended_launches},
    assignment::{Assigned, Expiring, Snoozed, assign, forget_assignee, remind_due, snooze},
    auto_resolve::{
        NETWORK, approve_allowed_host, raise_cost_guard, request_credential, resolve_raised_limit,
        withdraw_access_requests, withdraw_channel_errors, withdraw_credential_requests,
        withdraw_for_deleted_agent, withdraw_for_deleted_channel, withdraw_for_deleted_server,
        withdraw_outdated_guards,
    },
    channels::raise_channel_error,
    chat_view::{Shown, load_shown},
    decide::{Closed, answer, answer_shown, dismiss, resolve},
    expiry::{expire_due, overdue},
    queries::{OVERDUE, TO_REMIND},
    question::{Answer, Choice, Question},
    raise::{NewApproval, Raised, ToolRequest, WaitingRequest, raise},
    reports::count_waiting,
    risk_check::{request_model_access, store_categories, withdraw_model_access_requests},
    rows::count_pending,
};
