//! What turns have waited for, other than people: money or tokens, and the release of their organization. A wait is written for
//! each turn that it held back, once it is over. A wait for a provider is not: the turn's calls show it.

use super::{entity::turns, queries, rate_limited::LimitOf};
use crate::{
    base::{
        enums::{LimitKind, TurnState, TurnWait},
        ids::AgentId,
        problem::Result,
        time::Timestamp,
    },
    core::{handlers::ask, store::Tx, telemetry::traces},
};

/// This limit has held the agent's turns back since then, and no longer does.
pub async fn waited(tx: &Tx, agent: AgentId, limit: LimitKind, since: Timestamp) -> Result<()> {
    match wait_of(limit) {
        Some(wait) => keep(tx, Some(agent), wait, since).await,
        None => Ok(()),
    }
}

/// The organization has been stopped since then, and is no longer: what was not sent has waited.
pub async fn waited_for_release(tx: &Tx, since: Timestamp) -> Result<()> {
    keep(tx, None, TurnWait::Stop, since).await
}

/// What the turn, which has just ended, has waited for, from when and until when. `turn`: as it was before.
pub(super) async fn waits(
    tx: &Tx,
    turn: &turns::Model,
    ended: Timestamp,
) -> Result<Vec<(TurnWait, Timestamp, Timestamp)>> {
    let past = queries::waits(tx, turn.id).await?.into_iter();
    let mut waits: Vec<_> = past.map(|past| (past.kind, past.from_at, past.until_at)).collect();
    if turn.state == TurnState::WaitingLimit
        && let Some((limit, since)) = ask(tx, LimitOf(turn.agent_id)).await?
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
    queries::add_waits(tx, agent, wait, since).await
}
