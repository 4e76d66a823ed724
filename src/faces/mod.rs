//! The ways in: what people, programs and agents speak with the service.
//!
//! - [`edge`]: what happens to every request, whatever its face
//! - [`graphql`]: `/graphql` · [`rest`]: `/v1`, as stored documents over the same schema · [`mcp`]: the same operations as
//!   tools, for programs that speak the Model Context Protocol
//! - [`files`]: attachments, avatars, exports · [`pages`]: what a browser is shown
//!
//! A face turns a request into a call of the schema, and its answer into a response. What is allowed and what it means is
//! decided below.

pub mod edge;
pub mod files;
pub mod graphql;
pub mod mcp;
pub mod pages;
pub mod rest;
