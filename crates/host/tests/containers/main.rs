//! Agents in containers, with a real engine: `tests/containers` starts one, and says where it is. Only the control plane is
//! the tests' own.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "in tests, a panic is a failure, and counts are small"
)]
#![allow(
    dead_code,
    unused_imports,
    clippy::allow_attributes,
    reason = "what the tests of plain processes need besides"
)]

mod client;
mod ends;
mod engine;
mod faults;
mod figures;
mod images;
mod sandbox;
#[path = "../it/support/mod.rs"]
mod support;
