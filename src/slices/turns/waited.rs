//! What turns have waited for, other than people: money or tokens, and the release of their organization. A wait is written for
//! each turn that it held back, once it is over. A wait for a provider is not: the turn's calls show it.

use sea_orm::Value;

use super::{entity::turns, queue::DUE};
use crate::{
    base::{
        enums::{LimitKind, TurnState, TurnWait},
        ids::AgentId,
        problem::Result,
        time::Timestamp,
    },
    core::{store::Tx, telemetry::traces},
    slices::spending,
};

/// This limit has held the agent's turns back since then, and no longer does.
///
/// # Errors
/// The database is unreachable.
pub async fn waited(tx: &Tx, agent: AgentId, limit: LimitKind, since: Timestamp) -> Result<()> {
    match wait_of(limit) {
        Some(wait) => keep(tx, Some(agent), wait, since).await,
        None => Ok(()),
    }
}

/// The organization has been stopped since then, and is no longer: what was not sent has waited.
///
/// # Errors
/// The database is unreachable.
pub async fn waited_for_release(tx: &Tx, since: Timestamp) -> Result<()> {
    keep(tx, None, TurnWait::Stop, since).await
}

/// What the turn, which has just ended, has waited for, from when and until when. `turn`: as it was before.
pub(super) async fn waits(
    tx: &Tx,
    turn: &turns::Model,
    ended: Timestamp,
) -> Result<Vec<(TurnWait, Timestamp, Timestamp)>> {
    let sql = "SELECT kind, from_at, until_at FROM turn_waits WHERE organization_id = $1 AND turn_id = $2 \
               ORDER BY from_at";
    let mut waits: Vec<(TurnWait, Timestamp, Timestamp)> = Vec::new();
    for row in tx.rows(sql, vec![tx.scope.org.into(), turn.id.into()]).await? {
        waits.push((row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?));
    }
    if turn.state == TurnState::WaitingLimit
        && let Some((limit, since)) = spending::limited_since(tx, turn.agent_id).await?
        && let Some(wait) = wait_of(limit)
    {
        waits.push((wait, since.max(turn.created_at), ended));
    }
    // The host's clock says when it ended.
    let within = waits.into_iter().map(|(wait, from, until)| (wait, from, until.min(ended)));
    Ok(within.filter(|(_, from, until)| from < until).collect())
}

const fn wait_of(limit: LimitKind) -> Option<TurnWait> {
    match limit {
        LimitKind::Money => Some(TurnWait::Budget),
        LimitKind::Tokens => Some(TurnWait::Tokens),
        LimitKind::Usage => None,
    }
}

/// Writes the wait of all the agent's turns that could not go on, or of all the organization's that could not be sent. Only
/// traces show it.
async fn keep(tx: &Tx, agent: Option<AgentId>, wait: TurnWait, since: Timestamp) -> Result<()> {
    if !traces::on() {
        return Ok(());
    }
    // Those that wait for a person or for another turn as well are not held back by this alone.
    let waiting = match agent {
        Some(_) => format!("(turns.state = 'WAITING_LIMIT' OR {DUE}) AND turns.agent_id = $5"),
        None => DUE.to_owned(),
    };
    let sql = format!(
        "INSERT INTO turn_waits (organization_id, turn_id, kind, from_at, until_at) \
         SELECT organization_id, id, $2, CASE WHEN created_at < $3 THEN $3 ELSE created_at END, $4 FROM turns \
         WHERE turns.organization_id = $1 AND {waiting} AND created_at < $4 AND $3 < $4 ON CONFLICT DO NOTHING"
    );
    let mut values: Vec<Value> = vec![tx.scope.org.into(), wait.as_str().into(), since.into(), tx.now.into()];
    values.extend(agent.map(Value::from));
    tx.run(&sql, values).await?;
    Ok(())
}
