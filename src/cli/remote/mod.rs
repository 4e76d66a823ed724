//! Commands to a running service: over `/graphql`, with the caller's token and under the caller's permissions.
//!
//! - `client`: the connection, and what it refuses
//! - `operations`: the operations, which are in `operations.graphql`
//! - `named`: records by their names · `shown`: records as tables and as lines
//! - `agent`, `approval`, `server`: a command each; `muster apply` and `muster export` are in [`super::apply`]

mod agent;
mod approval;
mod client;
mod named;
mod operations;
mod server;
mod shown;

#[cfg(test)]
pub use self::operations::text as operation;
pub use self::{
    agent::Agent,
    approval::Approval,
    client::{Refusal, Remote, Target, taken},
    server::Server,
};
