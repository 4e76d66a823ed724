//! Leases: of all processes one listens to a channel, so that no message is asked for twice.

use muster_channels::{Cursor, Link};
use sea_orm::Value;
use tokio::sync::watch;

use crate::{
    base::{
        enums::{ChangeOp, LinkState, RecordKind},
        ids::{ChannelId, OrgId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, Event, store::Tx},
};

/// How long a lease lasts. It is renewed at a third of it.
pub(super) const LEASE: std::time::Duration = std::time::Duration::from_secs(15);

/// A channel's lease.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The channel's organization.
    pub org: OrgId,
    /// The channel.
    pub channel: ChannelId,
    /// Who holds it: a name that no other process has.
    pub holder: String,
}

/// How far a listener has read.
pub(super) struct Position {
    /// Its lease, which must hold.
    pub lease: Lease,
    /// How far.
    pub cursor: Cursor,
}

impl Lease {
    fn key(&self) -> [Value; 3] {
        [self.org.into(), self.channel.into(), self.holder.clone().into()]
    }

    /// Takes the lease, unless somebody has it. Returns how far was read, if it was taken.
    pub async fn take(&self, core: &Core) -> Result<Option<Option<Cursor>>> {
        let sql = "INSERT INTO channel_listeners (organization_id, channel_id, holder, until) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (organization_id, channel_id) DO UPDATE SET holder = excluded.holder, until = excluded.until \
                   WHERE channel_listeners.until <= $5";
        let now = core.clock.now();
        let mut values = self.key().to_vec();
        values.extend([now.plus(LEASE).into(), now.into()]);
        if core.db.execute(sql, values).await? == 0 {
            return Ok(None);
        }
        let sql = "SELECT cursor FROM channel_listeners WHERE organization_id = $1 AND channel_id = $2 AND holder = $3";
        let row = core.db.one(sql.to_owned(), self.key().to_vec()).await?;
        let cursor = match row {
            Some(row) => row.try_get_by::<Option<String>, _>(0)?,
            None => None,
        };
        Ok(Some(cursor.map(Cursor)))
    }

    /// Renews it. Returns whether it still holds.
    pub async fn renew(&self, core: &Core) -> Result<bool> {
        self.set(core, "until = $4", vec![core.clock.now().plus(LEASE).into()]).await
    }

    /// Gives it up: somebody may take it from this instant.
    pub async fn give_up(&self, core: &Core, from: Timestamp) -> Result<()> {
        self.set(core, "until = $4", vec![from.into()]).await.map(drop)
    }

    /// Shows whether the vendor is reached. Since when is the first time that it was said.
    pub async fn link(&self, core: &Core, link: &Link) -> Result<()> {
        let (state, cause) = match link {
            Link::Up => (LinkState::Up, None),
            Link::Down(cause) => (LinkState::Down, Some(cause.as_str().to_owned())),
        };
        // What is said again is not news.
        let sql = "UPDATE channel_listeners SET link = $4, cause = $5, \
                   linked_at = CASE WHEN link = $4 AND linked_at IS NOT NULL THEN linked_at ELSE $6 END \
                   WHERE organization_id = $1 AND channel_id = $2 AND holder = $3 \
                   AND (link IS NULL OR link <> $4 OR COALESCE(cause, '') <> COALESCE($5, ''))";
        let mut values = self.key().to_vec();
        values.extend([state.as_str().into(), cause.clone().into(), core.clock.now().into()]);
        if core.db.execute(sql, values).await? == 1 {
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

    async fn set(&self, core: &Core, what: &str, values: Vec<Value>) -> Result<bool> {
        let sql = format!(
            "UPDATE channel_listeners SET {what} WHERE organization_id = $1 AND channel_id = $2 AND holder = $3"
        );
        let values = self.key().into_iter().chain(values).collect();
        Ok(core.db.execute(&sql, values).await? == 1)
    }
}

/// Keeps how far a listener has read, in the transaction of what it brought.
///
/// # Errors
/// `CONFLICT`: the lease is over, so somebody else may be reading the same.
pub(super) async fn advance(tx: &Tx, position: &Position) -> Result<()> {
    let sql = "UPDATE channel_listeners SET cursor = $4 WHERE organization_id = $1 AND channel_id = $2 AND holder = $3 \
               AND until > $5";
    let mut values = position.lease.key().to_vec();
    values.extend([position.cursor.0.clone().into(), tx.now.into()]);
    if tx.run(sql, values).await? == 1 {
        return Ok(());
    }
    Err(Problem::new(Code::Conflict, "Another process listens to this channel now."))
}
