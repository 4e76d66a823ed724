//! The gate with real peers: curl, git, npm and pip in a sandbox without a network, servers with TLS, models that
//! stream.
//!
//! Names are the tests' own (`*.test`), and all servers are on this machine: the owner's list contains only
//! 127.0.0.1, so every other private address stays refused.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::disallowed_methods,
    reason = "in tests a panic is a failure, counts are small, and what is spawned ends with the test"
)]

mod figures;
mod mcp;
mod mcp_sessions;
mod mcp_tools;
mod model;
mod model_attachments;
mod model_refusals;
mod network;
mod streams;
mod support;
mod tools;

use muster_testing::{servers, sources};
