//! Muster: a self-hosted, multi-tenant control plane for the AI agents of organizations.
//!
//! The house has floors, and each stands on those before it. A test keeps it so (`tests/it/direction.rs`).
//!
//! 1. [`base`]: the vocabulary: ids, enumerations, permissions, time, the one error
//! 2. [`core`]: what every slice may hold: settings, database, policy, credentials, secrets, audit log, outbox
//! 3. [`read`]: from a selection to rows to JSON · [`fields`]: what every root field of the schema goes through
//! 4. [`slices`]: the product, a folder a resource
//! 5. [`schema`]: the root fields of all slices
//! 6. [`faces`]: GraphQL, `/v1`, `/mcp`, files and pages over that schema
//! 7. [`service`], [`rounds`]: everything that a process serves and does beside
//! 8. [`seed`]: plenty of plausible data · [`cli`]: the command line, a file a command

pub mod base;
pub mod cli;
pub mod core;
pub mod faces;
pub mod fields;
pub mod read;
pub mod rounds;
pub mod schema;
pub mod seed;
pub mod service;
pub mod slices;
