//! Turns: units of an agent's work in a conversation.
//!
//! A message to an agent creates a QUEUED turn, or joins the queued turn of its conversation ([`queue_turn`]). The turn
//! is sent once the agent runs and the conversation has no open turn ([`send`]): when it is written, when the previous
//! turn ends, when the agent starts or resumes. The host then asks for the prompt ([`brief`]), which fixes the turn's
//! messages: later messages belong to the next turn. For the states see `state.rs`.
//!
//! Lock the agent's row before changing turns ([`agents::lock_agent`]), so that no message is written while the agent's
//! status changes, and no two replicas send the same turn. Permissions: `agent.output.view` reads, `agent.interact`
//! cancels and retries.
//!
//! `queue.rs`: creating, sending, cancelling; `requeue.rs`: sending undelivered turns again; `retry.rs`: retrying
//! failed ones; `rate_limited.rs`: turns of agents that may not call their model; `usage.rs`: their cost; `reports.rs`:
//! hosts' reports; `ending.rs`: the end of launches and agents; `plans.rs`: the messages of a turn; `prompt.rs`:
//! messages as parts of a prompt; `takeover.rs`: turns while a person answers instead of the agent; `trace.rs`: traces;
//! `wait_spans.rs`: waits in traces.

mod ending;
mod entity;
mod plans;
pub mod prompt;
mod queries;
mod queue;
mod rate_limited;
pub mod reports;
mod requeue;
mod retry;
mod rows;
mod state;
mod takeover;
mod trace;
mod usage;
mod wait_spans;

pub use self::{
    ending::{cancel_for_deleted_agent, end_lost},
    plans::{Briefing, brief},
    queries::is_under_way,
    queue::{
        Cause, cancel, cancel_all, cancel_open, cut_open, extend_turn, queue_turn, send, send_due,
        send_queued, takes_turns,
    },
    rate_limited::{LimitOf, apply_measurement, belongs_to, has_waiting, limit_turns, resume_turns},
    reports::{Authorized, Started},
    requeue::{free_unsent, requeue_unsent, send_left},
    retry::retry,
    rows::{Ended, find_open_turn, mark_answered, mark_asked, require_turn, state_of},
    takeover::{is_yielded, resume, yield_to_person},
    wait_spans::{record_limit_wait, record_release_wait},
};
