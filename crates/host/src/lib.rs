//! The host: runs agents on a machine, for a Muster control plane (`docs/hosts.md`).
//!
//! ```text
//! control plane ══ gateway ══ journal ══ agent ══ shim ══ the agent's process
//!                    (WebSocket)         (a task)  (a process that outlives the host)
//! ```
//!
//! - `gateway/`: the connection. Commands come in, events go out, both numbered.
//! - `journal/`: what may not be forgotten; says why everything happens once.
//! - `agent/`: one task for each agent. `acp/`: the protocol with agents, as a state machine.
//! - `mcp.rs`: Muster's own MCP server, by which every agent can ask.
//! - `join.rs`, `run.rs`, `doctor.rs`, `unit.rs`: the commands.
//!
//! Nothing here knows the control plane's database or GraphQL.

#![forbid(unsafe_code)]

mod acp;
mod address;
mod agent;
mod cli;
mod clock;
mod doctor;
mod folder;
mod gateway;
mod join;
mod journal;
mod machine;
mod mcp;
mod programs;
mod run;
mod shared;
mod unit;

pub use self::cli::main;
