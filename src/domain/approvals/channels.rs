//! Approvals about channels that the service switched off.

use super::{NewApproval, raise};
use crate::{
    base::{
        enums::{ApprovalKind, Severity},
        problem::Result,
    },
    core::store::Tx,
    domain::channels::Failed,
};

/// Raises a CHANNEL_ERROR: a channel has failed and was switched off.
pub async fn raise_channel_error(tx: &Tx, failed: &Failed) -> Result<()> {
    let title = format!("{} can no longer send or receive", failed.name);
    let new = NewApproval {
        body: Some(failed.why.clone()),
        severity: Severity::High,
        agent_id: Some(failed.agent),
        channel_id: Some(failed.channel),
        ..NewApproval::new(ApprovalKind::ChannelError, title)
    };
    raise(tx, new).await?;
    Ok(())
}
