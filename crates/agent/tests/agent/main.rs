//! The reference agent as a program: each test starts it and speaks the protocol with it, as a host does.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
mod faults;
mod mcp;
mod models;
mod official_client;
mod sessions;
mod words;

#[path = "../support/model.rs"]
mod model;
