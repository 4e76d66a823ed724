//! Turns: what an agent is given to do at a time, in one conversation.
//!
//! A message to an agent makes a QUEUED turn, or joins the one that its conversation has ([`queued`]). It is sent when the
//! agent runs and the conversation has no open turn ([`send`]): when it is written, when the turn before it ends, when the
//! agent has started or resumes. The host then asks what to say ([`brief`]), which fixes the turn's messages: what is
//! written from then on belongs to the next turn. For the states see `state.rs`.
//!
//! Anyone who changes turns holds the agent's row first ([`agents::lock_agent`]), so that no message is written while the agent's
//! status changes, and no two replicas send the same turn. Permissions: `agent.output.view` reads, `agent.interact` cancels.
//!
//! `queue.rs`: making, sending, cancelling; `requeue.rs`: what did not reach its host waits again, and is sent by a job;
//! `rate_limited.rs`: while the agent may not call its model; `usage.rs`: what they have spent; `reports.rs`: what hosts report;
//! `ending.rs`: what becomes of the turns of a launch that has ended; `plans.rs`: what is said to the agent; `prompt.rs`: the same
//! as parts of a prompt; `takeover.rs`: while a person answers instead of the agent; `trace.rs`: their traces; `wait_spans.rs`: what
//! they have waited for, for these.

mod ending;
mod entity;
mod plans;
pub mod prompt;
mod queries;
mod queue;
mod rate_limited;
pub mod reports;
mod requeue;
mod rows;
mod state;
mod takeover;
mod trace;
mod usage;
mod wait_spans;

pub use self::{
    ending::{abandon, lose},
    plans::{Briefing, brief},
    queue::{
        Cause, cancel, cancel_all, cancel_open, cut_open, queued, reaches, send, send_due, send_queued,
        takes_turns,
    },
    rate_limited::{LimitOf, go_on, is_of, limit, remeasured, waits},
    reports::{Authorized, Started},
    requeue::{free_unsent, resent, send_left},
    rows::{answered, asked, require_of, state_of},
    takeover::{is_yielded, resume, yield_to_person},
    wait_spans::{waited, waited_for_release},
};
