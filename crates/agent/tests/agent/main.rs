//! Tests of the reference agent as a program, by the protocol.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
mod demo;
mod faults;
mod mcp;
mod models;
mod official_client;
mod sessions;
mod words;

use muster_testing::model;
