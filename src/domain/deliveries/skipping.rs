//! Skips the waiting parts of channels that no longer send, because people closed them. Parts that a sender abandoned
//! there fail: it is unknown whether they were sent.

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

/// Why a channel no longer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    Deleted,
    /// A person switched it off or made it inbound. The text of skipped parts is kept: once the channel sends again,
    /// people can send them by hand.
    Off,
    /// Its agent was deleted. Waiting parts stay until the agent is restored or its transcripts are deleted. Abandoned
    /// parts are settled, with the rest of their messages.
    Orphaned,
}

impl Closed {
    /// The reason as a sentence for people.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Deleted => "The channel was deleted.",
            Self::Off => "The channel was switched off, or no longer sends.",
            Self::Orphaned => "The agent was deleted.",
        }
    }
}

/// Skips the waiting parts of a channel that a person closes. Leaves parts that are being sent to [`skip_closed`], as
/// they may have to wait again.
pub(super) async fn skip_waiting(tx: &Tx, channel: ChannelId) -> Result<()> {
    let skipped = queries::skip_pending(tx, channel, Closed::Off.why()).await?;
    summarize_messages(tx, skipped).await
}

/// Skips the waiting parts of channels that were deleted or closed by people, and settles abandoned parts there and in
/// channels of deleted agents. Returns the number of parts.
pub async fn skip_closed(core: &Arc<Core>) -> Result<u64> {
    let mut skipped = 0;
    while !core.tasks.stopping.is_cancelled() {
        let Some(found) = queries::closed_channel(core).await? else { break };
        let closed = match found.reason {
            0 => Closed::Deleted,
            1 => Closed::Off,
            _ => Closed::Orphaned,
        };
        let portion =
            skip_portion(&Scope::system(core, found.organization_id), found.channel_id, closed).await?;
        if portion == 0 {
            break;
        }
        skipped += portion;
    }
    Ok(skipped)
}

/// Skips a portion of the parts in a channel, if it is still closed for this reason. Leaves locked parts to the next
/// run: the transaction that locked them, such as an edit of the channel, may be waiting for parts locked here.
async fn skip_portion(scope: &Scope, channel: ChannelId, closed: Closed) -> Result<u64> {
    let tx = scope.begin().await?;
    let skipped = queries::skip_left(&tx, channel, closed, i64::from(BATCH)).await?;
    if closed == Closed::Orphaned {
        for part in &skipped {
            fail_rest(&tx, part.message_id, part.part).await?;
        }
    }
    let portion = skipped.len() as u64;
    summarize_messages(&tx, skipped.into_iter().map(|part| part.message_id)).await?;
    tx.commit().await?;
    Ok(portion)
}

async fn summarize_messages(tx: &Tx, messages: impl IntoIterator<Item = MessageId>) -> Result<()> {
    for message in messages.into_iter().collect::<BTreeSet<_>>() {
        summarize(tx, message).await?;
    }
    Ok(())
}
