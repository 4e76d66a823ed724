//! The gate: the only way out of an agent's sandbox. The host serves HTTP/1.1 on a Unix socket.
//!
//! ```text
//! agent ── 127.0.0.1:3128 ── relay (muster-shim) ── socket ── Gate ─┬─ /model/…      the agent's model, with its key
//!                                                                   ├─ /c/<name>/…   a credential's address, with its headers
//!                                                                   ├─ CONNECT       listed hosts, TLS untouched
//!                                                                   └─ http://…      listed hosts
//! agent ── stdio ── relay (muster-shim mcp) ── socket of an MCP server ── Gate ── the server, each call judged
//! ```
//!
//! The agent holds no key: the gate adds it, and only towards the key's own address. The launch plan sets the
//! permissions ([`Rules`]). Decisions, leases and reports of the control plane go through [`HostServices`]. The host
//! resolves each name once, and every address must be public unless the host's owner lists its network
//! (`muster-addresses`, [`Reach`]).
//!
//! - `gate.rs`: the socket, its connections, routing; `shared.rs`: state shared by all requests.
//! - `bounds.rs`: default limits. `rules.rs`: permissions; `host_services.rs`: the host's services; `answers.rs`: bodies and
//!   refusals; `call_counts.rs`: calls, counted for metrics.
//! - `reach.rs`: names, addresses, connections; `client.rs`: outgoing HTTP.
//! - `tunnel.rs`: CONNECT; `client_hello.rs`: the name in a ClientHello.
//! - `forward.rs`: forwarded requests; `queries.rs`, `header_filter.rs`: their parameters and headers.
//! - `host_access.rs`: access to hosts; `refusals.rs`: refused connections, counted.
//! - `credential_uses.rs`: uses of credentials, reported.
//! - `secrets.rs`: removes secrets from text. `encoding.rs`, `fields.rs`: forwarded JSON; `memory.rs`: its memory
//!   budget.
//! - `model/`: the model proxy, usage, prices, leases; `mcp/`: MCP servers.

mod answers;
mod bounds;
mod call_counts;
mod client;
mod client_hello;
mod credential_uses;
mod encoding;
mod fields;
mod forward;
mod gate;
mod header_filter;
mod host_access;
mod host_services;
#[cfg(test)]
mod hostile_input;
mod mcp;
mod memory;
mod model;
mod queries;
mod reach;
mod refusals;
mod rules;
mod secrets;
mod shared;
mod tunnel;

pub use self::{
    call_counts::CallCounts,
    gate::Gate,
    host_services::{CrossingDecision, CrossingRequest, HostServices, LeaseOutcome},
    mcp::{ASKED, AWAY, SessionKey, turn_away},
    reach::{Reach, ReachError},
    rules::{NETWORK_TOOL, Rules},
    secrets::Secrets,
};
