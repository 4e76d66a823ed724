//! What waits in channels that send no more: people have closed them. What someone was sending there who died has failed: no one
//! knows whether it was sent.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    outcome::{fail_rest, summarize},
    queries,
};
use crate::{
    base::{
        bounds::BATCH,
        ids::{ChannelId, MessageId},
        problem::Result,
    },
    core::{Core, access::Scope, store::Tx},
};

/// Why nothing is sent through a channel any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// It was deleted.
    Deleted,
    /// A person switched it off, or it only receives. When it is open again, people can send by hand what waits, so its text stays.
    Off,
    /// Its agent was deleted. What waits does so until the agent is restored, or its transcript is over; what was being sent is
    /// settled, with the rest of its message.
    Orphaned,
}

impl Closed {
    /// The same in words.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Deleted => "The channel was deleted.",
            Self::Off => "The channel was switched off, or no longer sends.",
            Self::Orphaned => "The agent was deleted.",
        }
    }
}

/// Skips what waits in a channel that a person closes. What is being sent at this moment is left to [`skip_closed`], in case it
/// has to wait again.
pub(super) async fn skip_waiting(tx: &Tx, channel: ChannelId) -> Result<()> {
    let skipped = queries::skip_pending(tx, channel, Closed::Off.why()).await?;
    show(tx, skipped).await
}

/// Skips what waits in channels that were deleted, or that people have closed, and settles what was being sent there, or for a
/// deleted agent. Returns how many parts that were.
///
/// # Errors
/// The database is unreachable; what was skipped stays skipped.
pub async fn skip_closed(core: &Arc<Core>) -> Result<u64> {
    let mut skipped = 0;
    while !core.tasks.stopping.is_cancelled() {
        let Some(found) = queries::closed_channel(core).await? else { break };
        let closed = match found.reason {
            0 => Closed::Deleted,
            1 => Closed::Off,
            _ => Closed::Orphaned,
        };
        let portion = skip(&Scope::system(core, found.organization_id), found.channel_id, closed).await?;
        if portion == 0 {
            break;
        }
        skipped += portion;
    }
    Ok(skipped)
}

/// Skips a portion of what waits in a channel, if it is still closed for this reason. Parts that someone else holds, such as an
/// edit of the channel, are left to the next run: whoever it is may want others that are held here.
async fn skip(scope: &Scope, channel: ChannelId, closed: Closed) -> Result<u64> {
    let tx = scope.begin().await?;
    let skipped = queries::skip_left(&tx, channel, closed, i64::from(BATCH)).await?;
    if closed == Closed::Orphaned {
        for part in &skipped {
            fail_rest(&tx, part.message_id, part.part).await?;
        }
    }
    let portion = skipped.len() as u64;
    show(&tx, skipped.into_iter().map(|part| part.message_id)).await?;
    tx.commit().await?;
    Ok(portion)
}

/// Shows it on the messages of these parts.
async fn show(tx: &Tx, messages: impl IntoIterator<Item = MessageId>) -> Result<()> {
    for message in messages.into_iter().collect::<BTreeSet<_>>() {
        summarize(tx, message).await?;
    }
    Ok(())
}
