//! Agents in containers, with a real engine: `tests/containers` starts one, and passes its location. Only the control
//! plane is the tests' own.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::disallowed_methods,
    reason = "in tests, a panic is a failure, counts are small, and what is spawned ends with the test"
)]
#![allow(
    dead_code,
    unused_imports,
    clippy::allow_attributes,
    reason = "what the tests of plain processes need besides"
)]

mod client;
mod engine;
mod faults;
mod figures;
mod homes;
mod images;
mod mcp;
mod sandbox;
#[path = "../../../egress/tests/gate/servers.rs"]
mod servers;
mod shutdown;
#[path = "../../../egress/tests/gate/sources.rs"]
mod sources;
#[path = "../it/support/mod.rs"]
mod support;
mod tools;
