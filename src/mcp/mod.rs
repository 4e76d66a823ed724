//! MCP servers.

mod entity;
