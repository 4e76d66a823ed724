//! The interfaces for programs: REST, GraphQL, MCP, and what they have in common.

mod absent_variables;
mod any_bytes;
pub mod calls;
mod conflicts;
mod edits;
mod etags;
mod events;
mod feeds;
mod graphql_documents;
mod graphql_http;
mod graphql_peers;
mod hand_written;
mod idempotency;
mod introspection;
mod mcp_clients;
mod mcp_tools;
mod middleware;
mod openapi_fuzz;
pub mod query_count;
mod rate_limits;
mod record_plans;
mod resource_limits;
mod rest_parity;
mod search;
mod subscriptions;
