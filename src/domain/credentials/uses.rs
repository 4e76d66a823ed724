//! When credentials were last used.

use super::queries::mark_used;
use crate::{
    base::{problem::Result, time::Timestamp},
    core::store::Tx,
    domain::agents::reporter::{Reporter, lock_current},
};

/// Records a host's report that it used these credentials for an agent. Those that the agent doesn't have are left out.
pub async fn record_use(tx: &Tx, from: &Reporter, credentials: &[i64]) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    mark_used(tx, agent.id, credentials, from.time(tx, Timestamp(0))).await
}
