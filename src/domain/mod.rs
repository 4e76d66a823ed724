//! The product: one folder per resource.
//!
//! Most features have the same files: `mod.rs` (operations and their errors, the only way in), `entity.rs` (rows,
//! private), `input.rs` (what callers may set), `queries.rs` (its SQL), and `state.rs` if the resource has a lifecycle. A feature
//! may call another feature's `mod.rs`, never its entity. What the schema shows of a resource is above, in
//! `src/graphql/<resource>`.
//!
//! They have an order (`docs/architecture.md`, `tests/it/laws/direction.rs`): each uses only those below it, and tells those above it
//! by events ([`core::handlers`](crate::core::handlers)).
//!
//! What features share are files: [`edits`] (who edited a record last, and whether an edit is late), [`locks`] (the order in
//! which records are locked), [`patch`] (fields of an edit to columns), [`versions`] (versions of records).

pub mod agents;
pub mod approvals;
pub mod audit;
pub mod avatars;
pub mod backups;
pub mod channels;
pub mod chat_approvals;
pub mod commands;
pub mod contacts;
pub mod conversations;
pub mod credentials;
pub mod dashboard;
pub mod deliveries;
pub mod edits;
pub mod emergency_stop;
pub mod hosts;
pub mod ingest;
pub mod launch;
pub mod locks;
pub mod mails;
pub mod mcp_servers;
pub mod model_credentials;
pub mod network;
pub mod notifications;
pub mod orgs;
pub mod patch;
pub mod people;
pub mod policies;
mod queries;
pub mod search;
pub mod servers;
pub mod service_tokens;
pub mod skills;
pub mod spending;
pub mod versions;
