//! Leases: only one process listens to a channel, so that no message is fetched twice.

use muster_channels::{Cursor, Link};
use tokio::sync::watch;

pub(super) use super::queries::Lease;
use super::queries::{cursor_of_lease, extend_lease, store_cursor, store_link, take_lease};
use crate::{
    base::{
        enums::{ChangeOp, LinkState, RecordKind},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, Event, store::Tx},
};

/// The duration of a lease, including that of a process that died. It is renewed every third of this time.
pub(super) const LEASE: std::time::Duration = std::time::Duration::from_secs(15);

/// How far a listener has read.
pub(super) struct Position {
    /// Must still be valid when the position is stored.
    pub lease: Lease,
    pub cursor: Cursor,
}

impl Lease {
    /// Takes the lease, unless another process has it. Returns the last cursor if it was taken.
    pub async fn acquire(&self, core: &Core) -> Result<Option<Option<Cursor>>> {
        if !take_lease(core, self, core.clock.now().plus(LEASE)).await? {
            return Ok(None);
        }
        Ok(Some(cursor_of_lease(core, self).await?.map(Cursor)))
    }

    /// Returns whether the lease was still held.
    pub async fn renew(&self, core: &Core) -> Result<bool> {
        extend_lease(core, self, core.clock.now().plus(LEASE)).await
    }

    /// Gives the lease up: any process may take it from this instant on.
    pub async fn give_up(&self, core: &Core, from: Timestamp) -> Result<()> {
        extend_lease(core, self, from).await.map(drop)
    }

    /// Stores whether the vendor is reachable. Repeating a state keeps the time it began.
    pub async fn record_link(&self, core: &Core, link: &Link) -> Result<()> {
        let (state, cause) = match link {
            Link::Up => (LinkState::Up, None),
            Link::Down(cause) => (LinkState::Down, Some(cause.as_str().to_owned())),
        };
        // Subscribers are notified only of a change.
        if store_link(core, self, state, cause.clone()).await? {
            let (org, channel, state) = (self.org.0, self.channel.0, state.as_str());
            tracing::info!(org, channel, state, cause, "channel.link");
            core.events.publish(Event::new(self.org, ChangeOp::Updated, RecordKind::Channel, self.channel));
        }
        Ok(())
    }

    /// Stores the link states that a listener reports, until it ends. One at a time, so that the latest is written
    /// last.
    pub async fn record_links(&self, core: &Core, mut latest: watch::Receiver<Option<Link>>) {
        while latest.changed().await.is_ok() {
            let Some(link) = latest.borrow_and_update().clone() else { continue };
            if let Err(problem) = self.record_link(core, &link).await {
                tracing::warn!(org = self.org.0, channel = self.channel.0, %problem, "channel.link_not_kept");
            }
        }
    }
}

/// Stores how far a listener has read, in the transaction that stores the messages.
///
/// # Errors
/// `CONFLICT`: the lease is over, so another process may be reading the same messages.
pub(super) async fn advance(tx: &Tx, position: &Position) -> Result<()> {
    if store_cursor(tx, &position.lease, position.cursor.0.clone()).await? {
        return Ok(());
    }
    Err(Problem::new(Code::Conflict, "Another process listens to this channel now."))
}
