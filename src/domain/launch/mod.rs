//! Launches: starting and stopping agents, launch plans, and reports of hosts about launches.
//!
//! The feature `agents` has the record, its states and its lock. This one also deals with turns, approvals, credentials
//! and spending: start, stop, pause and restart (`running.rs`), launch plans (`plans/`), reports of hosts
//! (`reports.rs`), a record of each launch (`launches.rs`), failures (`failing.rs`), and automatic restarts
//! (`recovery.rs`). It writes the columns of `agents` about launches, and is therefore the only other feature that uses
//! their rows. It gives hosts their tasks as [`commands`](super::commands). Permissions: `agent.*`.

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
