//! Waits of turns for money, for tokens, and for the release of their organization. Once such a wait has ended, it is
//! written for each turn that it delayed. Waits for people and providers are not written: approvals and calls show
//! them.

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

/// Records that the agent's turns have waited for this limit since then.
pub async fn record_limit_wait(tx: &Tx, agent: AgentId, limit: LimitKind, since: Timestamp) -> Result<()> {
    match wait_of(limit) {
        Some(wait) => record_wait(tx, Some(agent), wait, since).await,
        None => Ok(()),
    }
}

/// Records that the organization's queued turns have waited for its release since then.
pub async fn record_release_wait(tx: &Tx, since: Timestamp) -> Result<()> {
    record_wait(tx, None, TurnWait::Stop, since).await
}

/// The waits of a turn that has ended, with start and end. `turn`: as it was before its end.
pub(super) async fn load_wait_spans(
    tx: &Tx,
    turn: &turns::Model,
    ended: Timestamp,
) -> Result<Vec<(TurnWait, Timestamp, Timestamp)>> {
    let past = queries::past_waits(tx, turn.id).await?.into_iter();
    let mut waits: Vec<_> = past.map(|past| (past.kind, past.from_at, past.until_at)).collect();
    if turn.state == TurnState::WaitingLimit
        && let Some((limit, since)) = ask(tx, LimitOf(turn.agent_id)).await?
        && let Some(wait) = wait_of(limit)
    {
        waits.push((wait, since.max(turn.created_at), ended));
    }
    // The end comes from the host's clock.
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

/// Writes the wait for all waiting turns of the agent, or of the organization. Only traces show it.
async fn record_wait(tx: &Tx, agent: Option<AgentId>, wait: TurnWait, since: Timestamp) -> Result<()> {
    if !traces::on() {
        return Ok(());
    }
    queries::add_waits(tx, agent, wait, since).await
}
