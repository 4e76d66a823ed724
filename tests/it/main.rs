//! The integration tests: one binary, a file per slice and a file per law. `tests/README.md` tells how it works.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod agents;
mod approvals;
mod audit;
mod channels;
mod channels_edited;
mod contacts;
mod assignments;
mod credentials;
mod docs;
mod harness;
mod harness_itself;
mod mcp;
mod policy_files;
mod seed;
mod servers;
mod skills;
