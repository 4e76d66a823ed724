//! What turns have spent, read from the calls that their hosts measured.

use muster_protocol::event::Usage;
use sea_orm::QueryResult;

use crate::{
    base::{
        ids::{AgentId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
};

/// What a turn has spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Tokens and money. The cost is unknown if that of one call is.
    pub usage: Usage,
    /// The model that was called last.
    pub model: String,
}

/// What a turn has spent, as its host measured it. None: it measured nothing.
///
/// # Errors
/// The database is unreachable.
pub async fn measured(tx: &Tx, turn: TurnId) -> Result<Option<Measured>> {
    let sum = |column: &str| format!("CAST(SUM({column}) AS BIGINT)");
    let columns =
        ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"].map(sum).join(", ");
    let sql = format!(
        "SELECT {columns}, CASE WHEN COUNT(cost_micro) = COUNT(*) THEN CAST(SUM(cost_micro) AS BIGINT) END, \
         (SELECT m.model FROM model_calls m WHERE m.organization_id = $1 AND m.turn_id = $2 \
         ORDER BY m.started_at DESC, m.id DESC LIMIT 1) FROM model_calls WHERE organization_id = $1 AND turn_id = $2"
    );
    let rows = tx.rows(&sql, vec![tx.scope.org.into(), turn.into()]).await?;
    let read = |row: &QueryResult| -> Result<Option<Measured>> {
        let Some(model) = row.try_get_by(5)? else { return Ok(None) };
        let usage = Usage {
            input: row.try_get_by(0)?,
            output: row.try_get_by(1)?,
            cache_read: row.try_get_by(2)?,
            cache_write: row.try_get_by(3)?,
            cost_micro: row.try_get_by(4)?,
        };
        Ok(Some(Measured { usage, model }))
    };
    rows.first().map_or(Ok(None), read)
}

/// Whether the agent's host has measured a call since then. None: the turn was never begun, and none was of it.
///
/// # Errors
/// The database is unreachable.
pub async fn has_measured(tx: &Tx, agent: AgentId, since: Option<Timestamp>) -> Result<bool> {
    let Some(since) = since else { return Ok(false) };
    let sql =
        "SELECT 1 FROM model_calls WHERE organization_id = $1 AND agent_id = $2 AND started_at >= $3 LIMIT 1";
    let values = vec![tx.scope.org.into(), agent.into(), since.into()];
    Ok(!tx.rows(sql, values).await?.is_empty())
}
