//! The integration tests: one binary, with a folder per subject. `tests/README.md` explains them.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

/// The allocator of `muster` itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod agents;
mod api;
mod approvals;
mod audit;
mod channels;
mod cli;
mod conversations;
mod event_endpoints;
mod faults;
mod gateway;
mod harness;
mod laws;
mod operations;
mod organizations;
mod panel;
mod people;
mod policies;
mod spending;
mod tools;
