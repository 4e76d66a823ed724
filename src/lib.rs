//! Muster: a self-hosted, multi-tenant control plane for the AI agents of organizations.
//!
//! The crate has layers, and each builds only on those before it. A test enforces this (`tests/it/laws/direction.rs`).
//!
//! 1. [`base`]: the vocabulary: ids, enumerations, permissions, time, the error type
//! 2. [`core`]: shared by every feature: settings, database, policy, credentials, secrets, audit log, queue
//! 3. [`read`]: from a selection to rows to JSON · [`resolvers`]: checks before every root field of the schema
//! 4. [`domain`]: the product, one folder per resource
//! 5. [`graphql`]: the schema: objects and root fields of all features
//! 6. [`api`]: `/graphql`, `/v1`, `/mcp`, files and pages over that schema
//! 7. [`handlers`]: which features handle the events and questions of those below them
//! 8. [`service`], [`jobs`]: everything that a process serves, and its recurring work
//! 9. [`seed`]: plausible data in bulk · [`cli`]: the command line, one file per command

// The schema's roots nest one level for each feature.
#![recursion_limit = "256"]

pub mod api;
pub mod base;
pub mod cli;
pub mod core;
pub mod domain;
pub mod graphql;
pub mod handlers;
pub mod jobs;
pub mod read;
pub mod resolvers;
pub mod seed;
pub mod service;
