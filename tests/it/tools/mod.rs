//! What agents are equipped with: credentials, skills, MCP servers, hosts that they may reach.

mod credentials;
mod mcp_judged;
mod mcp_programs;
mod mcp_servers;
mod network;
mod skills;
