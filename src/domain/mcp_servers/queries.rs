//! SQL of MCP servers' tools.

use sea_orm::Value;

use crate::{
    base::{
        ids::{AgentId, McpServerId},
        problem::Result,
        time::Timestamp,
    },
    core::store::{
        Tx,
        sql::{RunSql as _, RunWritingSql as _, row, sql},
    },
};

row! {
    /// A tool of an MCP server, without its definitions.
    pub(super) struct KnownTool {
        mcp_server_id: i64,
        name: String,
        digest: Option<String>,
        new_digest: Option<String>,
        enabled: bool,
        risk: Option<i64>,
        known_since: Timestamp,
    }
}

/// The tools of these servers, by server and name.
pub(super) async fn known_tools(tx: &Tx, servers: &[i64]) -> Result<Vec<KnownTool>> {
    let sql = sql!(
        "SELECT mcp_server_id, name, digest, new_digest, enabled, risk, known_since FROM mcp_server_tools \
         WHERE organization_id = $org AND mcp_server_id = ANY($2) ORDER BY mcp_server_id, name"
    );
    tx.all(sql, [tx.scope.core.db.keys(servers)]).await
}

/// A definition as a host reports it.
pub(super) struct ReportedTool {
    pub name: String,
    pub digest: String,
    pub definition: Option<serde_json::Value>,
}

/// Stores a reported definition. One that differs from the accepted one waits beside it. A tool without a definition is
/// accepted at once if `is_accepted`.
pub(super) async fn store_tool(
    tx: &Tx,
    server: McpServerId,
    tool: ReportedTool,
    is_accepted: bool,
) -> Result<()> {
    // If its definition was forgotten.
    let restore = sql!(
        "UPDATE mcp_server_tools SET definition = $4, digest = $5, new_definition = $6, new_digest = $7, known_since = $8 \
         WHERE organization_id = $org AND mcp_server_id = $2 AND name = $3 AND digest IS NULL AND new_digest IS NULL"
    );
    let sql = sql!(
        "INSERT INTO mcp_server_tools (organization_id, mcp_server_id, name, definition, digest, new_definition, new_digest, \
         known_since) VALUES ($org, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (organization_id, mcp_server_id, name) \
         DO UPDATE SET new_definition = CASE WHEN mcp_server_tools.digest = COALESCE(excluded.digest, excluded.new_digest) \
         THEN NULL ELSE COALESCE(excluded.definition, excluded.new_definition) END, \
         new_digest = NULLIF(COALESCE(excluded.digest, excluded.new_digest), mcp_server_tools.digest)"
    );
    let ReportedTool { name, digest, definition } = tool;
    let (accepted, new) = if is_accepted {
        ((definition, Some(digest)), (None, None))
    } else {
        ((None, None), (definition, Some(digest)))
    };
    let values: [Value; 7] = [
        server.into(),
        name.into(),
        accepted.0.into(),
        accepted.1.into(),
        new.0.into(),
        new.1.into(),
        tx.now.into(),
    ];
    if tx.execute(restore, values.clone()).await? == 0 {
        tx.execute(sql, values).await?;
    }
    Ok(())
}

/// Sets a tool's switch and risk.
pub(super) async fn set_tool(
    tx: &Tx,
    server: McpServerId,
    name: &str,
    (enabled, risk): (bool, Option<i64>),
) -> Result<()> {
    let sql = sql!(
        "UPDATE mcp_server_tools SET enabled = $4, risk = $5 WHERE organization_id = $org AND mcp_server_id = $2 AND name = $3"
    );
    tx.execute(sql, [server.into(), name.into(), enabled.into(), risk.into()]).await?;
    Ok(())
}

/// Accepts the waiting definition with this digest. Returns whether there was one.
pub(super) async fn accept_tool(tx: &Tx, server: McpServerId, digest: &str) -> Result<bool> {
    let sql = sql!(
        "UPDATE mcp_server_tools SET definition = new_definition, digest = new_digest, new_definition = NULL, \
         new_digest = NULL WHERE organization_id = $org AND mcp_server_id = $2 AND new_digest = $3"
    );
    Ok(tx.execute(sql, [server.into(), digest.into()]).await? > 0)
}

/// Forgets the definitions of these tools of a server. Only tools that people have switched or rated stay.
pub(super) async fn forget_definitions(tx: &Tx, server: McpServerId, names: &[String]) -> Result<()> {
    let undecided = sql!(
        "DELETE FROM mcp_server_tools WHERE organization_id = $org AND mcp_server_id = $2 AND name = ANY($3) \
         AND enabled AND risk IS NULL"
    );
    let decided = sql!(
        "UPDATE mcp_server_tools SET definition = NULL, digest = NULL, new_definition = NULL, new_digest = NULL \
         WHERE organization_id = $org AND mcp_server_id = $2 AND name = ANY($3)"
    );
    let values = [server.into(), tx.scope.core.db.keys(names)];
    tx.execute(undecided, values.clone()).await?;
    tx.execute(decided, values).await?;
    Ok(())
}

/// Records that an agent's host is asked to test a server. Returns whether the agent has it.
pub(super) async fn begin_test(tx: &Tx, server: McpServerId, agent: AgentId) -> Result<bool> {
    let sql = sql!(
        "UPDATE mcp_server_agents SET test_asked_at = $4, tested_at = NULL, test_error = NULL, protocol = NULL, \
         program = NULL WHERE organization_id = $org AND mcp_server_id = $2 AND agent_id = $3"
    );
    Ok(tx.execute(sql, [server.into(), agent.into(), tx.now.into()]).await? > 0)
}
