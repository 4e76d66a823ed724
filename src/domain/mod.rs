//! The product: one folder per resource.
//!
//! Most features have the same files: `mod.rs` (operations and their errors, the public interface), `entity.rs` (rows,
//! private), `input.rs` (the fields that callers may set), `queries.rs` (its SQL), and `state.rs` if the resource has a
//! lifecycle. A feature may call another feature's `mod.rs`, never its entity. The schema's view of a resource is one
//! layer up, in `src/graphql/<resource>`.
//!
//! Features are ordered (`docs/architecture.md`, `tests/it/laws/direction.rs`): each calls only features below it, and
//! notifies those above it with events ([`core::handlers`](crate::core::handlers)).
//!
//! Features share these files: [`edits`] (a record's last editor, and whether an edit is outdated), [`locks`] (the
//! order of locking records), [`patch`] (applying an edit's fields to columns), [`versions`] (versions of records).

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
pub mod event_endpoints;
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
pub mod rights;
pub mod search;
pub mod servers;
pub mod service_tokens;
pub mod skills;
pub mod spending;
pub mod versions;
