//! The host: runs agents on a machine for a Muster control plane (`docs/hosts.md`).
//!
//! ```text
//! control plane ══ gateway ══ journal ══ agent ══ shim ══ the agent's process
//!                    (WebSocket)         (a task)  (a process that outlives the host)
//! ```
//!
//! - `gateway/`: the connection. Commands come in, events go out, both numbered.
//! - `journal/`: durable state; explains why everything happens once.
//! - `agent/`: one task per agent. `acp/`: the protocol with agents, as a state machine.
//! - `runtime/`: agents as plain processes or in containers.
//! - `logs/`: logs of agents.
//! - `metrics.rs`: the page for Prometheus.
//! - `mcp.rs`: Muster's own MCP server, with tools for questions to people. `actions.rs`: its tools of channels.
//! - `backup/`: backups of agents' homes.
//! - `gate.rs`, `gate_address.rs`: the only way out of an agent's sandbox, from the host's side and from the agent's.
//! - `config.rs`: the owner's permissions. `trust.rs`: authorities that vouch for the control plane.
//! - `join.rs`, `rejoin.rs`, `run.rs`, `doctor.rs`, `unit.rs`: the commands.
//!
//! This crate does not depend on the control plane's database or GraphQL.

#![forbid(unsafe_code)]

mod acp;
mod actions;
mod address;
mod agent;
mod backup;
mod bounds;
mod checked_lines;
mod cli;
mod clock;
mod config;
mod doctor;
mod environment;
mod folder;
mod gate;
mod gate_address;
mod gateway;
mod join;
mod journal;
mod late_approvals;
mod logs;
mod machine;
mod mcp;
mod metrics;
mod profile;
mod programs;
mod rejoin;
mod run;
mod runtime;
mod shared;
mod stop;
mod trust;
mod unit;

pub use self::{
    cli::{command_line, main},
    metrics::FAMILIES,
    unit::systemd_path,
};
