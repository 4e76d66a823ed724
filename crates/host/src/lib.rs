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
//! - `runtime/`: how agents are run: as plain processes, or in containers.
//! - `mcp.rs`: Muster's own MCP server, by which every agent can ask.
//! - `backup/`: copies of agents' homes.
//! - `gate.rs`, `way.rs`: the one way out of an agent's sandbox, from the host's side and from the agent's.
//! - `config.rs`: what the operator allows. `join.rs`, `rejoin.rs`, `run.rs`, `doctor.rs`, `unit.rs`: the commands.
//!
//! Nothing here knows the control plane's database or GraphQL.

#![forbid(unsafe_code)]

mod acp;
mod address;
mod agent;
mod backup;
mod bounds;
mod checked;
mod cli;
mod clock;
mod config;
mod doctor;
mod folder;
mod gate;
mod gateway;
mod grants;
mod join;
mod journal;
mod machine;
mod mcp;
mod profile;
mod programs;
mod rejoin;
mod run;
mod runtime;
mod shared;
mod stop;
mod unit;
mod way;

pub use self::cli::main;
