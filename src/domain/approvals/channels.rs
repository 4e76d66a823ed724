//! Approvals about channels that were switched off by themselves.

use super::{NewApproval, raise};
use crate::{
    base::{
        enums::{ApprovalKind, Severity},
        problem::Result,
    },
    core::store::Tx,
    domain::channels::Failed,
};

/// Tells people that a channel was switched off by itself.
pub async fn channel_failed(tx: &Tx, failed: &Failed) -> Result<()> {
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
