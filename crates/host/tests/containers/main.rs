//! Agents in containers, with a real engine: `tests/containers` starts one, and passes its location. Only the control
//! plane is the tests' own.

#![expect(clippy::unwrap_used, reason = "in tests, a panic is a failure")]

mod engine;
mod faults;
mod figures;
mod homes;
mod images;
mod mcp;
mod sandbox;
mod shutdown;
mod tools;

use muster_testing::{engine_client as client, host as support, servers, sources};
