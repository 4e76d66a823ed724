//! Leases: of all processes one listens to a channel, so that no message is asked for twice.

use muster_channels::{Cursor, Link};
use tokio::sync::watch;

pub(super) use super::queries::Lease;
use super::queries::{cursor_of_lease, extend_lease, keep_cursor, show_link, take_lease};
use crate::{
    base::{
        enums::{ChangeOp, LinkState, RecordKind},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, Event, store::Tx},
};

/// How long a lease lasts, also that of a process that has died. It is renewed at a third of it.
pub(super) const LEASE: std::time::Duration = std::time::Duration::from_secs(15);

/// How far a listener has read.
pub(super) struct Position {
    /// Its lease, which must hold.
    pub lease: Lease,
    /// How far.
    pub cursor: Cursor,
}

impl Lease {
    /// Takes the lease, unless someone has it. Returns how far was read, if it was taken.
    pub async fn take(&self, core: &Core) -> Result<Option<Option<Cursor>>> {
        if !take_lease(core, self, core.clock.now().plus(LEASE)).await? {
            return Ok(None);
        }
        Ok(Some(cursor_of_lease(core, self).await?.map(Cursor)))
    }

    /// Renews it. Returns whether it still holds.
    pub async fn renew(&self, core: &Core) -> Result<bool> {
        extend_lease(core, self, core.clock.now().plus(LEASE)).await
    }

    /// Gives it up: someone may take it from this instant.
    pub async fn give_up(&self, core: &Core, from: Timestamp) -> Result<()> {
        extend_lease(core, self, from).await.map(drop)
    }

    /// Shows whether the vendor is reached. Since when is the first time that it was said.
    pub async fn link(&self, core: &Core, link: &Link) -> Result<()> {
        let (state, cause) = match link {
            Link::Up => (LinkState::Up, None),
            Link::Down(cause) => (LinkState::Down, Some(cause.as_str().to_owned())),
        };
        // What is said again is not news.
        if show_link(core, self, state, cause.clone()).await? {
            tracing::info!(channel = self.channel.0, state = state.as_str(), cause, "channel.link");
            core.events.publish(Event::new(self.org, ChangeOp::Updated, RecordKind::Channel, self.channel));
        }
        Ok(())
    }

    /// Shows what a listener says of its link, until it ends. One after another, so that the last word is the last one written.
    pub async fn follow(&self, core: &Core, mut latest: watch::Receiver<Option<Link>>) {
        while latest.changed().await.is_ok() {
            let Some(link) = latest.borrow_and_update().clone() else { continue };
            if let Err(problem) = self.link(core, &link).await {
                tracing::warn!(channel = self.channel.0, %problem, "channel.link_not_kept");
            }
        }
    }
}

/// Keeps how far a listener has read, in the transaction of what it brought.
///
/// # Errors
/// `CONFLICT`: the lease is over, so someone else may be reading the same.
pub(super) async fn advance(tx: &Tx, position: &Position) -> Result<()> {
    if keep_cursor(tx, &position.lease, position.cursor.0.clone()).await? {
        return Ok(());
    }
    Err(Problem::new(Code::Conflict, "Another process listens to this channel now."))
}
