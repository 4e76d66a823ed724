//! The integration tests: one binary, a file per slice and a file per law. `tests/README.md` tells how it works.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod agents;
mod any_bytes;
mod approvals;
mod assignments;
mod attachments;
mod audit;
mod audit_refusals;
mod avatars;
mod calls;
mod canary;
mod channels;
mod channels_edited;
mod contacts;
mod contracts;
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
mod metrics;
mod migrations;
mod openapi_fuzz;
mod organizations;
mod people;
mod permits;
mod policy_files;
mod query_count;
mod record_plans;
mod rest_parity;
mod sealing_keys;
mod search;
mod seed;
mod servers;
mod service_tokens;
mod signing_keys;
mod skills;
mod subscriptions;
mod tenancy;
mod yardstick;
