//! The integration tests: one binary, a file per slice and a file per law. `tests/README.md` tells how it works.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod agents;
mod any_bytes;
mod approvals;
mod assignments;
mod attachments;
mod audit;
mod canary;
mod channels;
mod channels_edited;
mod contacts;
mod conversations;
mod credentials;
mod docs;
mod edge;
mod graphql_http;
mod graphql_peers;
mod harness;
mod harness_itself;
mod mcp;
mod messages;
mod organizations;
mod people;
mod policy_files;
mod search;
mod seed;
mod servers;
mod skills;
mod subscriptions;
mod tenancy;
