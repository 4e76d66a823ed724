//! Hosts: the programs on servers that run agents. This feature has the state of their connections; the sockets are in
//! `api/gateway`.
//!
//! - `link.rs`: a connection, and how it ends.
//! - `join.rs`: exchanges a provisioning token for the host's own. `rejoin.rs`: a host rejoins from its folder after a
//!   restore.
//! - `handshake.rs`: accepts a connection. It gets an epoch, which is counted in the database, and **every write on its
//!   behalf names that epoch**. So an older connection, on any replica, writes nothing.
//! - `commands.rs`: numbers commands, and sends them until they are in the host's journal.
//! - `events.rs`: stores a host's reports, each once; `apply.rs` dispatches them.
//! - `plan_requests.rs`: answers a host's requests for plans; `turn_plan.rs`: the prompt of a turn.
//! - `refusals.rs`: shows people why a host is refused.
//! - `load_alerts.rs`: the machine's load, and alerts. `load_history.rs`: the load over time.
//! - `delta_stream.rs`: text that is being written, for live viewers. `log_stream.rs`: lines of agents' logs.
//! - `presence.rs`: jobs that find ended connections, connected hosts and lost hosts.
//! - `queries.rs`: SQL.
//!
//! Organization and server come from the connection's token, never from a frame. A host's report about an agent counts
//! only if the agent is on its server and the launch is the current one; costs of an earlier launch on its server count
//! too.

mod apply;
mod commands;
mod delta_stream;
mod events;
mod handshake;
mod join;
mod link;
mod load_alerts;
mod load_history;
mod load_history_queries;
mod log_stream;
mod plan_requests;
mod presence;
mod queries;
mod refusals;
mod rejoin;
mod turn_plan;

pub use self::{
    apply::apply,
    commands::{MAX_UNACKNOWLEDGED, acknowledge_commands, next_commands},
    delta_stream::Viewing,
    events::{MAX_EVENTS, gap, store_events},
    handshake::{WINDOW, accept_connection},
    join::join,
    link::{Ended, Identity, Link, Refusal, identify, parse_host_token},
    load_alerts::Readings,
    load_history::{ServerLoad, delete_load_history, load_history},
    log_stream::{LOG_LEASE, WatchedLogs},
    plan_requests::{PlanAnswer, answer},
    presence::{SILENT, mark_offline, record_disconnect, refresh_presence, wake_connections},
    refusals::record_refusal,
    turn_plan::turn_plan,
};
use crate::base::plain;

/// A host's text in a form that people can read: one line of at most `most` characters, without control characters.
fn readable(text: &str, most: usize) -> Option<String> {
    let text: String = plain::one_line(text).chars().take(most).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
