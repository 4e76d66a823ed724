//! Agents' equipment: credentials, skills, MCP servers, hosts that they may reach.

mod credentials;
mod mcp_judged;
mod mcp_programs;
mod mcp_servers;
mod mcp_tools;
mod network;
mod skills;

/// Mutations of MCP servers.
const CREATE_SERVER: &str =
    "mutation($o: Id!, $i: CreateMcpServerInput!) { createMcpServer(orgId: $o, input: $i) { id } }";
const EDIT_SERVER: &str = "mutation($o: Id!, $m: Id!, $i: UpdateMcpServerInput!) { updateMcpServer(orgId: $o, id: $m, input: $i) { id } }";
const ASSIGN_SERVER: &str = "mutation($o: Id!, $i: Id!, $a: [Id!]!) { setMcpServerAgents(orgId: $o, id: $i, input: { agentIds: $a }) { id } }";
const ARCHIVE_SERVER: &str = "mutation($o: Id!, $m: Id!) { archiveMcpServer(orgId: $o, id: $m) { id } }";
const UNARCHIVE_SERVER: &str = "mutation($o: Id!, $m: Id!) { unarchiveMcpServer(orgId: $o, id: $m) { id } }";
