//! The interfaces that people, programs, and hosts use.
//!
//! - [`middleware`]: the handling of every request, regardless of the interface
//! - [`graphql`]: `/graphql` · [`rest`]: `/v1`, as stored documents over the same schema · [`mcp`]: the same
//!   operations as tools, for programs that speak the Model Context Protocol
//! - [`webhooks`]: `/webhooks`, where vendors deliver the messages of channels
//! - [`gateway`]: `/gateway`, to which the hosts of servers connect
//! - [`files`]: attachments, avatars, exports · [`web`]: the panel, and signing in at a provider
//!
//! An interface turns a request into a call to the schema, and the result into a response. Permissions and meaning
//! are decided below.

pub mod files;
pub mod gateway;
pub mod graphql;
pub mod mcp;
pub mod middleware;
pub mod rest;
pub mod web;
pub mod webhooks;
