//! The gate: the one way out of an agent's sandbox. A Unix socket, on which the host answers HTTP/1.1.
//!
//! ```text
//! agent ── 127.0.0.1:3128 ── relay (muster-shim) ── socket ── Gate ─┬─ /model/…      the agent's model, with its key
//!                                                                   ├─ /c/<name>/…   a credential's address, with its headers
//!                                                                   ├─ CONNECT       listed hosts, TLS untouched
//!                                                                   └─ http://…      listed hosts
//! agent ── stdio ── relay (muster-shim mcp) ── socket of an MCP server ── Gate ── the server, each call judged
//! ```
//!
//! The agent holds no key: the gate adds it, towards the address that it is for and nowhere else. What is allowed comes from
//! the launch plan ([`Rules`]); what the control plane has to decide, grant or know goes through [`Outside`]. Names are
//! resolved once, by the host, and every address must be public unless the host's operator lists its network
//! (`muster-addresses`, [`Reach`]).
//!
//! - `gate.rs`: the socket, its connections, and which part answers; `shared.rs`: what all requests share.
//! - `bounds.rs`: how much and how long. `rules.rs`: what is allowed; `outside.rs`: what the host does for the gate; `answers.rs`: bodies and refusals.
//! - `reach.rs`: names, addresses, connections; `client.rs`: HTTP towards the world.
//! - `tunnel.rs`: CONNECT; `hello.rs`: the name in a ClientHello.
//! - `forward.rs`: requests that are passed on; `queries.rs`, `heads.rs`: their parameters and headers.
//! - `crossing.rs`: hosts that are not listed; `refusals.rs`: what was refused, counted.
//! - `secrets.rs`: what others read has none. `encoding.rs`, `fields.rs`: JSON that is passed on; `room.rs`: the memory that it may take.
//! - `model/`: the model's proxy, usage, prices, leases; `mcp/`: MCP servers.

mod answers;
mod bounds;
mod client;
mod crossing;
mod encoding;
mod fields;
#[cfg(test)]
mod foreign;
mod forward;
mod gate;
mod heads;
mod hello;
mod mcp;
mod model;
mod outside;
mod queries;
mod reach;
mod refusals;
mod room;
mod rules;
mod secrets;
mod shared;
mod tunnel;

pub use self::{
    gate::Gate,
    mcp::{Place, turn_away},
    outside::{Asking, Leased, Outside, Verdict},
    reach::{Reach, ReachError},
    rules::Rules,
};
