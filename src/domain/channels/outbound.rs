//! What deliveries need of channels: the way out, the transport, and what becomes of a channel that can't send.

use std::{sync::Arc, time::Duration};

use muster_channels::{Kind, Transport};
use sea_orm::{ColumnTrait, Condition, QueryFilter, sea_query::Expr};

use super::{
    entity::channels,
    open::{kind_of, open},
    rows::{active, connected},
};
use crate::{
    base::{
        enums::{ChangeOp, ChannelDirection, InactiveReason, RecordKind},
        ids::{AgentId, ChannelId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        Core, Event,
        access::Scope,
        handlers::{DomainEvent, emit},
        queue::{ChannelLane, Full, Room},
        store::Tx,
    },
};

/// A channel was switched off by itself.
#[derive(Debug)]
pub struct Failed {
    /// The channel.
    pub channel: ChannelId,
    /// Its agent.
    pub agent: AgentId,
    /// Its name.
    pub name: String,
    /// Why, for people.
    pub why: String,
}

impl DomainEvent for Failed {}

impl Failed {
    pub(super) fn of(channel: channels::Model, why: String) -> Self {
        Self { channel: channel.id, agent: channel.agent_id, name: channel.name, why }
    }
}

/// How long nothing may be sent until a channel is switched off: longer than the outage of a vendor or a receiver.
const FAILING: Duration = Duration::from_hours(5 * 24);

/// Whether what is said through a channel is sent at all: one that a person switched off, or that goes the other way, sends
/// nothing. `None`: it carries no messages.
pub async fn way_out(tx: &Tx, id: ChannelId) -> Result<Option<bool>> {
    let Some(channel) = connected(&tx.scope).filter(channels::Column::Id.eq(id)).one(tx.connection()).await?
    else {
        return Ok(None);
    };
    Ok(kind_of(channel.transport).map(|_| is_open(&channel)))
}

/// Whether what is said through a channel is sent, at the latest when the channel works again.
pub(super) fn is_open(channel: &channels::Model) -> bool {
    let is_on = channel.is_active || channel.inactive_reason != Some(InactiveReason::Manual);
    is_on && channel.direction != ChannelDirection::Inbound
}

/// Whether a channel's vendor itself says who writes, over a connection that Muster opened or under a secret that Muster made: only
/// there a chat can be linked. Slack's signing secret is known to whoever made the app.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn proves_people(tx: &Tx, id: ChannelId) -> Result<bool> {
    let found = connected(&tx.scope).filter(channels::Column::Id.eq(id)).one(tx.connection()).await?;
    let channel = found.ok_or_else(|| Problem::not_found("channel", id))?;
    Ok(match kind_of(channel.transport) {
        Some(Kind::Telegram) => true,
        Some(Kind::Slack) => !channel.webhook_registered,
        Some(Kind::Email | Kind::Webhook) | None => false,
    })
}

/// A channel that sends.
pub struct Sender {
    /// The service, in the channel's organization.
    pub scope: Scope,
    /// The channel.
    pub channel: ChannelId,
    /// Its vendor, with the credentials that were read.
    pub transport: Arc<dyn Transport>,
    /// When the settings that were read had been edited last.
    pub seen: Timestamp,
}

impl Sender {
    /// Opens a channel to send through it. `None`: it is inactive, or was deleted, or waits.
    ///
    /// # Errors
    /// Its secrets can't be opened.
    pub async fn open(core: &Arc<Core>, lane: ChannelLane) -> Result<Option<Self>> {
        let (scope, id) = (Scope::system(core, lane.organization_id), lane.channel_id);
        let Some(channel) = active(&scope, id).await? else { return Ok(None) };
        if channel.send_after.is_some_and(|from| from > core.clock.now()) {
            return Ok(None);
        }
        let transport = open(core, &channel)?;
        Ok(transport.map(|transport| Self { scope, channel: id, transport, seen: channel.updated_at }))
    }

    /// Takes room for a message to this target within the vendor's limits.
    ///
    /// # Errors
    /// There is none. Nothing was counted.
    pub fn take_room(&self, target: &str) -> std::result::Result<Room, Full> {
        let core = &self.scope.core;
        core.queue.pace.take(&core.clock, (self.scope.org, self.channel), &*self.transport, target)
    }
}

/// Sends nothing through a channel before this instant: its vendor asked for it, or would. It never shortens a wait.
pub async fn wait(tx: &Tx, id: ChannelId, until: Timestamp) -> Result<()> {
    let waiting = tx.scope.update::<channels::Entity>().filter(channels::Column::Id.eq(id));
    let earlier = Condition::any()
        .add(channels::Column::SendAfter.is_null())
        .add(channels::Column::SendAfter.lt(until));
    let waiting = waiting.filter(earlier).col_expr(channels::Column::SendAfter, Expr::value(until));
    waiting.exec(tx.connection()).await?;
    Ok(())
}

/// Notes that a channel's vendor was reached: it took something, or refused it.
pub async fn reached(tx: &Tx, id: ChannelId) -> Result<()> {
    let works = tx.scope.update::<channels::Entity>().filter(channels::Column::Id.eq(id));
    let works = works.filter(channels::Column::FailingSince.is_not_null());
    works
        .col_expr(channels::Column::FailingSince, Expr::value(None::<Timestamp>))
        .exec(tx.connection())
        .await?;
    Ok(())
}

/// Notes that something could not be sent, though nothing is wrong with it. If it is given up after many attempts, the last of
/// which failed for the reason `given_up`, and nothing could be sent for days, the channel is switched off. `seen` as for [`fail`].
pub async fn not_sent(tx: &Tx, id: ChannelId, seen: Timestamp, given_up: Option<&str>) -> Result<()> {
    let fails = tx.scope.update::<channels::Entity>().filter(channels::Column::Id.eq(id));
    let fails = fails.filter(channels::Column::FailingSince.is_null());
    fails.col_expr(channels::Column::FailingSince, Expr::value(tx.now)).exec(tx.connection()).await?;
    let Some(why) = given_up else { return Ok(()) };
    let failing = tx.scope.find::<channels::Entity>().filter(channels::Column::Id.eq(id));
    let failing = failing.filter(channels::Column::FailingSince.lte(tx.now.minus(FAILING)));
    if failing.one(tx.connection()).await?.is_none() {
        return Ok(());
    }
    let why = format!("Nothing could be sent for five days. The last attempt: {why}");
    fail(tx, id, seen, InactiveReason::DeliveryFailing, &why).await.map(drop)
}

/// Switches a channel off that can't go on, and tells people why. Its queue waits. What was learnt with the settings edited last
/// at `seen` says nothing about later ones: then the channel stays on. Returns whether it is switched off by this.
pub async fn fail(
    tx: &Tx,
    id: ChannelId,
    seen: Timestamp,
    reason: InactiveReason,
    why: &str,
) -> Result<bool> {
    let failed = tx.scope.update::<channels::Entity>().filter(channels::Column::Id.eq(id));
    let failed = failed
        .filter(channels::Column::IsActive.eq(true))
        .filter(channels::Column::UpdatedAt.eq(seen))
        .col_expr(channels::Column::IsActive, Expr::value(false))
        .col_expr(channels::Column::InactiveReason, Expr::value(reason.as_str()))
        .col_expr(channels::Column::UpdatedAt, Expr::value(tx.now));
    // Another attempt may have found out at the same time.
    let Some(channel) = failed.exec_with_returning(tx.connection()).await?.pop() else { return Ok(false) };
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Channel, id));
    let why = format!("{why}\n\nIts messages wait. Correct its settings, and switch it on again.");
    emit(tx, Failed::of(channel, why)).await?;
    Ok(true)
}
