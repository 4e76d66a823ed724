//! The ways in: the interfaces that people, programs, and agents use.
//!
//! - [`edge`]: what happens to every request, regardless of the face
//! - [`graphql`]: `/graphql` · [`rest`]: `/v1`, as stored documents over the same schema · [`mcp`]: the same
//!   operations as tools, for programs that speak the Model Context Protocol
//! - [`inlet`]: `/webhooks`, where vendors send what comes in through channels
//! - [`gateway`]: `/gateway`, to which the hosts of servers connect
//! - [`files`]: attachments, avatars, exports · [`panel`]: the pages for people, and signing in at a provider
//!
//! A face turns a request into a call to the schema, and the result into a response. Permissions and meaning
//! are decided below.

pub mod edge;
pub mod files;
pub mod gateway;
pub mod graphql;
pub mod inlet;
pub mod mcp;
pub mod panel;
pub mod rest;
