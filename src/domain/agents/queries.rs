//! SQL of agents.

use super::revisions::{CREDENTIALS, MCP_SERVERS, SKILLS};
use crate::{
    base::{ids::AgentId, problem::Result},
    core::store::{
        Tx,
        sql::{RunSql as _, RunWritingSql as _, row, sql},
    },
};

/// SQL condition: no host is connected to the server of the agent `t`.
pub(in crate::domain) const AWAY: &str = "EXISTS (SELECT 1 FROM servers s WHERE s.organization_id = t.organization_id \
     AND s.id = t.server_id AND s.status NOT IN ('ONLINE', 'DEGRADED'))";
/// SQL condition: the organization of the agent `t` is stopped.
pub(in crate::domain) const HALTED: &str =
    "EXISTS (SELECT 1 FROM organizations o WHERE o.id = t.organization_id AND o.stopped_at IS NOT NULL)";

/// SQL condition: someone has restarted the agent `t`, and it is not down yet.
const RESTARTING: &str = "EXISTS (SELECT 1 FROM agent_launches l WHERE l.organization_id = t.organization_id \
     AND l.agent_id = t.id AND l.generation = t.launch_generation + 1)";

/// SQL for the status reason of the agent `t`.
#[must_use]
pub fn reason_sql() -> String {
    status_case(
        "'WAITING_FOR_HOST'",
        "'HOST_AWAY'",
        "'RESTARTING'",
        "'ORGANIZATION_STOPPED'",
        "t.status_reason",
    )
}

/// SQL for the status reason of the agent `t` in words.
#[must_use]
pub fn detail_sql() -> String {
    status_case(
        "'No host is connected to its server.'",
        "'The host of its server is not connected.'",
        "'It starts again as soon as it is down.'",
        "'The organization is stopped.'",
        "t.status_detail",
    )
}

fn status_case(waiting: &str, away: &str, restarting: &str, halted: &str, stored: &str) -> String {
    format!(
        "CASE WHEN t.status IN ('STOPPED', 'ERROR') THEN {stored} \
         WHEN {AWAY} THEN CASE t.status WHEN 'SPAWNING' THEN {waiting} ELSE {away} END \
         WHEN t.status = 'STOPPING' THEN CASE WHEN {RESTARTING} THEN {restarting} ELSE {stored} END \
         WHEN {HALTED} THEN {halted} ELSE {stored} END"
    )
}

/// SQL condition: a row of `agent_revisions` is its agent's newest.
pub(super) const IS_NEWEST_REVISION: &str = "number = (SELECT a.revision FROM agents a \
     WHERE a.organization_id = agent_revisions.organization_id AND a.id = agent_revisions.agent_id)";

/// Deletes the revisions of these agents except the newest `kept` ones and those of the last launches.
pub(super) async fn delete_old_revisions(tx: &Tx, agents: &[AgentId], kept: i64) -> Result<()> {
    let sql = sql!(
        "DELETE FROM agent_revisions WHERE organization_id = $org AND agent_id = ANY($2) \
         AND number <= (SELECT a.revision - $3 FROM agents a WHERE a.organization_id = agent_revisions.organization_id \
         AND a.id = agent_revisions.agent_id AND agent_revisions.number <> COALESCE(a.launched_revision, 0))"
    );
    tx.execute(sql, [keys_of(tx, agents), kept.into()]).await?;
    Ok(())
}

row! {
    /// A credential, MCP server or skill of an agent.
    pub(super) struct Assignment {
        agent_id: AgentId,
        kind: String,
        id: i64,
        /// 0 unless it is a skill.
        version: i64,
    }
}

/// The credentials, MCP servers and skills of these agents that aren't archived, by kind, ordered by id.
pub(super) async fn assigned_records(tx: &Tx, agents: &[AgentId]) -> Result<Vec<Assignment>> {
    const USED: &str = "WHERE j.organization_id = $org AND j.agent_id = ANY($2) AND x.archived_at IS NULL";
    let sql = sql!(
        "SELECT j.agent_id, '",
        SKILLS,
        "' AS kind, x.id AS id, x.version AS version FROM skill_agents j \
         JOIN skills x ON x.organization_id = j.organization_id AND x.id = j.skill_id ",
        USED,
        " UNION ALL SELECT j.agent_id, '",
        MCP_SERVERS,
        "' AS kind, x.id AS id, CAST(0 AS BIGINT) AS version FROM mcp_server_agents j \
         JOIN mcp_servers x ON x.organization_id = j.organization_id AND x.id = j.mcp_server_id ",
        USED,
        " UNION ALL SELECT j.agent_id, '",
        CREDENTIALS,
        "' AS kind, x.id AS id, CAST(0 AS BIGINT) AS version FROM credential_agents j \
         JOIN credentials x ON x.organization_id = j.organization_id AND x.id = j.credential_id ",
        USED,
        " ORDER BY kind, id"
    );
    tx.all(sql, [keys_of(tx, agents)]).await
}

fn keys_of(tx: &Tx, agents: &[AgentId]) -> sea_orm::Value {
    let ids: Vec<i64> = agents.iter().map(|agent| agent.0).collect();
    tx.scope.core.db.keys(&ids)
}
