//! The `/mcp` interface: the operations of `/v1` as tools, for programs that speak the Model Context Protocol.
//!
//! It has neither its own list of operations nor its own way to run them: a tool is a line of `rest/routes.rs`, its
//! schema is built from the same shapes as the OpenAPI document, and a call executes the same stored document after the
//! same checks, with the same tokens. Callers don't see tools that they can't use in any organization.
//!
//! - `tools.rs`: the tools, derived from the routes.
//! - `server.rs`: listing and calling tools for one caller.
//! - `messages.rs`: the checks before the protocol library.
//! - `http.rs`: the endpoint. Requests are independent: there are no sessions to keep, steal, or exhaust.

mod http;
mod messages;
mod server;
mod tools;

pub use self::{
    http::router,
    tools::{ToolRoute, ToolRoutes, tool_routes},
};
