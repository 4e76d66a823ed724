//! The outbound side of channels for `deliveries`: whether they send, their transport, and switching off those that
//! can't.

use std::sync::Arc;

use muster_channels::{Action, Kind, Transport};
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
        queue::{LaneKey, LimitReached, SendPermit, backoff::FAILING},
        store::Tx,
    },
};

/// A channel was switched off automatically.
#[derive(Debug)]
pub struct Failed {
    pub channel: ChannelId,
    pub agent: AgentId,
    pub name: String,
    /// The reason, as a sentence for people.
    pub why: String,
}

impl DomainEvent for Failed {}

impl Failed {
    pub(super) fn new(channel: channels::Model, why: String) -> Self {
        Self { channel: channel.id, agent: channel.agent_id, name: channel.name, why }
    }
}

/// Whether a channel sends messages: not if a person switched it off, or it is inbound only. `None`: it carries no
/// messages.
pub async fn sends_out(tx: &Tx, id: ChannelId) -> Result<Option<bool>> {
    let Some(channel) = connected(&tx.scope).filter(channels::Column::Id.eq(id)).one(tx.connection()).await?
    else {
        return Ok(None);
    };
    Ok(kind_of(channel.transport).map(|_| is_open(&channel)))
}

/// The actions that a channel offers now, which may depend on its account. None if it does not send messages, or can't be
/// opened.
pub async fn offered_actions(tx: &Tx, id: ChannelId) -> Result<&'static [Action]> {
    let channel = connected(&tx.scope).filter(channels::Column::Id.eq(id)).one(tx.connection()).await?;
    let opened = |channel| open(&tx.scope.core, &channel).ok().flatten();
    let Some(transport) = channel.filter(is_open).and_then(opened) else { return Ok(&[]) };
    Ok(transport.traits().actions)
}

/// Whether messages through a channel are sent, now or once the channel works again.
pub(super) fn is_open(channel: &channels::Model) -> bool {
    let is_on = channel.is_active || channel.inactive_reason != Some(InactiveReason::Manual);
    is_on && channel.direction != ChannelDirection::Inbound
}

/// Whether the vendor itself proves who writes, over a connection that Muster opened or with a secret that Muster made.
/// Only such chats can be linked to members. The creator of a Slack app knows its signing secret, so that it proves
/// nothing.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn proves_people(tx: &Tx, id: ChannelId) -> Result<bool> {
    let found = connected(&tx.scope).filter(channels::Column::Id.eq(id)).one(tx.connection()).await?;
    let channel = found.ok_or_else(|| Problem::not_found("channel", id))?;
    Ok(match kind_of(channel.transport) {
        Some(Kind::Discord | Kind::Telegram) => true,
        Some(Kind::Slack) => !channel.webhook_registered,
        Some(Kind::Calendar | Kind::CodeHost | Kind::Drive | Kind::Email | Kind::Webhook) | None => false,
    })
}

/// A channel that sends.
pub struct Sender {
    /// The system's scope in the channel's organization.
    pub scope: Scope,
    pub channel: ChannelId,
    /// The vendor, with the credentials as of `seen`.
    pub transport: Arc<dyn Transport>,
    /// `updated_at` of the channel when it was read.
    pub seen: Timestamp,
}

impl Sender {
    /// Opens a channel to send through it. `None`: it is inactive, deleted, or waiting.
    ///
    /// # Errors
    /// Its secrets can't be opened.
    pub async fn open(core: &Arc<Core>, lane: LaneKey) -> Result<Option<Self>> {
        let (scope, id) = (Scope::system(core, lane.organization_id), ChannelId(lane.lane_id));
        let Some(channel) = active(&scope, id).await? else { return Ok(None) };
        if channel.send_after.is_some_and(|from| from > core.clock.now()) {
            return Ok(None);
        }
        let transport = open(core, &channel)?;
        Ok(transport.map(|transport| Self { scope, channel: id, transport, seen: channel.updated_at }))
    }

    /// Takes a permit for a message to this target within the vendor's rate limits.
    ///
    /// # Errors
    /// The limit is reached. Nothing is counted then.
    pub fn take_permit(&self, target: &str) -> std::result::Result<SendPermit, LimitReached> {
        let core = &self.scope.core;
        core.queue.send_limits.take(&core.clock, (self.scope.org, self.channel), &*self.transport, target)
    }
}

/// Sends nothing through a channel before this instant, because its vendor asked for it or would. Never shortens a
/// wait.
pub async fn delay_sending(tx: &Tx, id: ChannelId, until: Timestamp) -> Result<()> {
    let waiting = tx.scope.update::<channels::Entity>().filter(channels::Column::Id.eq(id));
    let earlier = Condition::any()
        .add(channels::Column::SendAfter.is_null())
        .add(channels::Column::SendAfter.lt(until));
    let waiting = waiting.filter(earlier).col_expr(channels::Column::SendAfter, Expr::value(until));
    waiting.exec(tx.connection()).await?;
    Ok(())
}

/// Records that a channel's vendor was reached: it accepted or refused a message.
pub async fn record_reached(tx: &Tx, id: ChannelId) -> Result<()> {
    let works = tx.scope.update::<channels::Entity>().filter(channels::Column::Id.eq(id));
    let works = works.filter(channels::Column::FailingSince.is_not_null());
    works
        .col_expr(channels::Column::FailingSince, Expr::value(None::<Timestamp>))
        .exec(tx.connection())
        .await?;
    Ok(())
}

/// Records that a valid message could not be sent. `given_up` is the reason of the last attempt, if there will be no
/// other: then a channel that could send nothing for days is switched off. `seen` as for [`switch_off`].
pub async fn record_not_sent(tx: &Tx, id: ChannelId, seen: Timestamp, given_up: Option<&str>) -> Result<()> {
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
    switch_off(tx, id, seen, InactiveReason::DeliveryFailing, &why).await.map(drop)
}

/// Switches off a channel that can't go on, and notifies people of the reason. Its queue waits. The failure was seen
/// with the settings last edited at `seen`: a channel that was edited since stays on. Returns whether this call
/// switched it off.
pub async fn switch_off(
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
    // Another attempt may have switched it off at the same time.
    let Some(channel) = failed.exec_with_returning(tx.connection()).await?.pop() else { return Ok(false) };
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Channel, id));
    let why = format!("{why}\n\nIts messages wait. Correct its settings, and switch it on again.");
    emit(tx, Failed::new(channel, why)).await?;
    Ok(true)
}
