//! Launches: what starts, plans and ends the work of an agent, and what hosts report of it.
//!
//! The agents' own feature has the record, its states and its lock. Here is what also concerns turns, approvals, credentials
//! and spending: a start, stop, pause or restart (`running.rs`), what its host launches it with (`plans/`), what that
//! reports (`reports.rs`), how each launch went (`launches.rs`), failures (`failing.rs`), and whether an agent that has failed
//! is started again (`recovery.rs`). This feature is the one that writes the columns of `agents` about launches, and therefore
//! the only other one that uses their rows. What hosts have to do are [`commands`](super::commands). Permissions: `agent.*`.

mod entity;
mod failing;
mod launches;
pub mod plans;
mod queries;
mod recovery;
pub mod reports;
mod running;

pub use self::{
    failing::{Failed, end_late_starts, fail, half_deadline},
    queries::{RESTART_DUE, SPAWNING},
    running::{
        SkippedAgent, StartedAgents, confirm_host, pause, restart, resume, start, start_all, start_due, stop,
        stop_in,
    },
};
