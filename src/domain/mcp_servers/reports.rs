//! Reports of hosts about the state of MCP servers.

use muster_protocol::event::{McpReport, McpState};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use super::entity::mcp_server_agents::{Column, Entity};
use crate::{
    base::{
        bounds,
        enums::McpServerStatus,
        plain::{truncated, truncated_line},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    domain::agents::{
        self,
        reporter::{Reporter, lock_current},
    },
};

/// How many tools of a server are stored, because it can report any number.
pub(super) const MAX_TOOLS: usize = 256;

/// Stores the state of one of an agent's servers. The report is ignored if the server has been taken from the agent.
pub async fn reported(tx: &Tx, from: &Reporter, report: McpReport) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let state = match report.state {
        McpState::Idle => McpServerStatus::Idle,
        McpState::Starting => McpServerStatus::Starting,
        McpState::Running => McpServerStatus::Running,
        McpState::Failed => McpServerStatus::Failed,
    };
    let error = report.error.map(|error| truncated_line(&error, bounds::REASON));
    let stderr = report.stderr.map(|stderr| truncated(&stderr, bounds::DETAIL));
    let tools = report.tools.iter().take(MAX_TOOLS).map(|tool| truncated_line(tool, bounds::NAME));
    let row = tx.scope.update::<Entity>();
    let row = row.filter(Column::McpServerId.eq(report.server_id)).filter(Column::AgentId.eq(agent.id));
    row.col_expr(Column::State, Expr::value(state.as_str()))
        .col_expr(Column::LaunchGeneration, Expr::value(from.generation))
        .col_expr(Column::ReportedAt, Expr::value(from.time(tx, Timestamp(0))))
        .col_expr(Column::Error, Expr::value(error))
        .col_expr(Column::Stderr, Expr::value(stderr))
        .col_expr(Column::Tools, Expr::value(serde_json::Value::from(tools.collect::<Vec<_>>())))
        .exec(tx.connection())
        .await?;
    agents::announce(tx, agent.id);
    Ok(())
}
