//! Listening: polls vendors, or keeps a webhook registered with them (`channels/registration.rs`). Each channel has
//! a task in one of the processes, which holds its lease.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use muster_channels::{Cursor, Event, Failure, Link, Reading, Sink, Skipped, Stopped, Transport};
use parking_lot::Mutex;
use tokio::{
    sync::{Mutex as Turn, watch},
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    Ingest,
    lease::{LEASE, Lease, Position},
    queries::unheard_channels,
    skipped, typing_indicator,
};
use crate::{
    base::{
        bounds,
        enums::InactiveReason,
        ids::{ChannelId, OrgId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{access::Scope, sealing::random_bytes},
    domain::channels::{self, Channel, open_to_listen, probe, registration},
};

/// The link's cause while no process listens although nothing failed.
const PAUSED: &str = "It is not listened to at the moment.";
/// How many channels a process takes on at a time: after an outage, all channels are waiting.
const AT_ONCE: i64 = 64;
/// How many of them may belong to one organization, so that no tenant keeps others waiting.
const OF_ONE: i64 = AT_ONCE / 4;

/// The channels that this process listens to.
#[derive(Default)]
pub(super) struct Listening(Mutex<HashSet<(OrgId, ChannelId)>>);

impl Ingest {
    /// Listens to channels until the service ends.
    pub fn listen(self: &Arc<Self>) {
        let ingest = Arc::clone(self);
        let holder = hex::encode(random_bytes::<16>());
        self.core.tasks.spawn(async move {
            let mut tick = interval(bounds::RECONCILE_INTERVAL);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while ingest.core.tasks.stopping.run_until_cancelled(tick.tick()).await.is_some() {
                if let Err(problem) = ingest.take_on(&holder).await {
                    tracing::error!(%problem, "channels.not_listened_to");
                }
            }
        });
    }

    /// The channels without a listener, longest waiting first: since they were created, or since their listener ended.
    /// At most as many as a process takes on at a time, and at most one organization's share of each.
    pub async fn waiting(&self) -> Result<Vec<(OrgId, ChannelId)>> {
        let unheard = unheard_channels(&self.core, OF_ONE, AT_ONCE).await?;
        Ok(unheard.into_iter().map(|place| (place.organization_id, place.id)).collect())
    }

    /// Starts to listen to channels without a listener.
    async fn take_on(self: &Arc<Self>, holder: &str) -> Result<()> {
        for (org, channel) in self.waiting().await? {
            let lease = Lease { org, channel, holder: holder.to_owned() };
            if !self.listening.add((org, channel)) {
                continue;
            }
            let ingest = Arc::clone(self);
            self.core.tasks.spawn(async move {
                let _guard = ListeningGuard(&ingest.listening, (lease.org, lease.channel));
                if let Err(problem) = ingest.listen_to(&lease).await {
                    let (org, channel) = (lease.org.0, lease.channel.0);
                    tracing::error!(org, channel, %problem, "channel.listener_failed");
                }
            });
        }
        Ok(())
    }

    /// Listens to one channel for as long as its lease holds and its settings stay the same.
    async fn listen_to(&self, lease: &Lease) -> Result<()> {
        let core = &self.core;
        let Some(cursor) = lease.acquire(core).await? else { return Ok(()) };
        let scope = Scope::system(core, lease.org);
        let Some(channel) = channels::active(&scope, lease.channel).await? else { return Ok(()) };
        let seen = channel.updated_at;
        let channel = match probe::ask_again(&scope, channel).await? {
            Ok(channel) => channel,
            Err(why) => return self.switch_off(&scope, lease, seen, InactiveReason::AuthFailed, &why).await,
        };
        let Some(channel) = registration::prepare_path(&scope, channel).await? else { return Ok(()) };
        let Some(transport) = open_to_listen(&scope, &channel).await? else { return Ok(()) };
        let (links, latest) = watch::channel(None);
        let reading = Arc::default();
        let sink =
            ListenerSink { ingest: self, channel: &channel, transport: &*transport, lease, links, reading };
        // Drops the sink when it ends, so that `record_links` ends, too.
        let listening = async move {
            Ok::<_, Problem>(tokio::select! {
                ended = self.receive_events(&sink, cursor) => Some(ended?),
                ended = self.wait_for_end(&sink) => { ended?; None }
            })
        };
        let (ended, ()) = tokio::join!(listening, lease.record_links(core, latest));
        let ended = ended?;
        registration::release(&scope, &channel, &*transport).await?;
        match ended {
            Some(Failure::Credentials(cause)) => {
                self.switch_off(&scope, lease, seen, InactiveReason::AuthFailed, cause.as_str()).await
            }
            Some(Failure::Gone(cause)) => {
                self.switch_off(&scope, lease, seen, InactiveReason::Gone, cause.as_str()).await
            }
            Some(failure) => {
                tracing::warn!(org = lease.org.0, channel = lease.channel.0, %failure, "channel.not_listened_to");
                lease.record_link(core, &Link::Down(failure.to_string().into())).await?;
                lease.give_up(core, core.clock.now().plus(Duration::from_secs(30))).await
            }
            None => self.pause(lease).await,
        }
    }

    /// Switches the channel off, unless it was edited after `seen`: then a process may listen with its new settings.
    async fn switch_off(
        &self,
        scope: &Scope,
        lease: &Lease,
        seen: Timestamp,
        reason: InactiveReason,
        why: &str,
    ) -> Result<()> {
        let tx = scope.begin().await?;
        let is_off = channels::switch_off(&tx, lease.channel, seen, reason, why).await?;
        tx.commit().await?;
        if !is_off {
            return self.pause(lease).await;
        }
        lease.record_link(&self.core, &Link::Down(why.into())).await?;
        lease.give_up(&self.core, self.core.clock.now().plus(Duration::from_secs(30))).await
    }

    /// Lets another process listen at once.
    async fn pause(&self, lease: &Lease) -> Result<()> {
        lease.record_link(&self.core, &Link::Down(PAUSED.into())).await?;
        lease.give_up(&self.core, self.core.clock.now()).await
    }

    /// Returns once listening has to end, after the current read has been stored. Holding the returned guard keeps
    /// another read from starting.
    async fn wait_for_end(&self, sink: &ListenerSink<'_>) -> Result<Option<Reading>> {
        let why = tokio::select! {
            renewed = self.renew_lease(sink.lease, sink.channel) => renewed,
            shown = typing_indicator::show(&self.core, sink.channel, sink.transport) => shown,
            () = self.core.tasks.stopping.cancelled() => Ok(()),
        };
        // Less than the remaining time of the lease.
        let last = timeout(bounds::ANSWER_WAIT, sink.reading()).await.ok();
        why.map(|()| last)
    }

    /// Receives events until a failure, which it returns.
    async fn receive_events(&self, sink: &ListenerSink<'_>, cursor: Option<Cursor>) -> Result<Failure> {
        let ListenerSink { channel, transport, .. } = *sink;
        let scope = Scope::system(&self.core, sink.lease.org);
        if registration::is_wanted(&self.core, channel) {
            return registration::keep_registered(&scope, channel, transport, sink).await;
        }
        if let Err(failure) = registration::unregister(&scope, channel, transport).await? {
            return Ok(failure);
        }
        Ok(match transport.listen(cursor, sink).await {
            Ok(never) => match never {},
            Err(failure) => failure,
        })
    }

    /// Renews the lease until it is lost, or the channel's settings or its bot's name change.
    async fn renew_lease(&self, lease: &Lease, channel: &Channel) -> Result<()> {
        let mut tick = interval(LEASE / 3);
        loop {
            tick.tick().await;
            let scope = Scope::system(&self.core, lease.org);
            let now = channels::active(&scope, lease.channel).await?;
            let is_same = now.is_some_and(|now| {
                now.updated_at == channel.updated_at && now.bot_username == channel.bot_username
            });
            if !is_same || !lease.renew(&self.core).await? {
                return Ok(());
            }
        }
    }
}

impl Listening {
    fn add(&self, key: (OrgId, ChannelId)) -> bool {
        self.0.lock().insert(key)
    }

    fn remove(&self, key: (OrgId, ChannelId)) {
        self.0.lock().remove(&key);
    }
}

/// Removes a channel from those that this process listens to when dropped, even by a panic.
struct ListeningGuard<'a>(&'a Listening, (OrgId, ChannelId));

impl Drop for ListeningGuard<'_> {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}

/// Receives the events of a transport.
struct ListenerSink<'a> {
    ingest: &'a Ingest,
    channel: &'a Channel,
    transport: &'a dyn Transport,
    lease: &'a Lease,
    links: watch::Sender<Option<Link>>,
    /// Locked during a read that must not be interrupted.
    reading: Arc<Turn<()>>,
}

impl ListenerSink<'_> {
    async fn store(&self, events: Vec<Event>, cursor: Option<Cursor>) -> Result<()> {
        let position = cursor.map(|cursor| Position { lease: self.lease.clone(), cursor });
        // Its lists may have been edited meanwhile.
        let channel = self.ingest.reload_channel(self.lease.org, self.channel.id).await?;
        self.ingest.store_events(&channel, self.transport, events, position).await.map(drop)
    }
}

impl Sink for ListenerSink<'_> {
    fn admit(
        &self,
        events: Vec<Event>,
        cursor: Option<Cursor>,
    ) -> BoxFuture<'_, std::result::Result<(), Stopped>> {
        Box::pin(async move {
            self.store(events, cursor).await.map_err(|problem| {
                let (org, channel) = (self.lease.org.0, self.channel.id.0);
                tracing::warn!(org, channel, %problem, "channel.not_admitted");
                Stopped
            })
        })
    }

    fn reading(&self) -> BoxFuture<'_, Reading> {
        Box::pin(Arc::clone(&self.reading).lock_owned())
    }

    fn link(&self, link: Link) {
        self.links.send_replace(Some(link));
    }

    fn skipped(&self, skipped: Skipped) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Skipped { vendor_id, subject, reason } = &skipped;
            let (org, channel) = (self.lease.org.0, self.channel.id.0);
            tracing::warn!(org, channel, vendor_id, subject, %reason, "channel.event_skipped");
            let scope = Scope::system(&self.ingest.core, self.lease.org);
            if let Err(problem) = skipped::record(&scope, self.channel.id, skipped).await {
                tracing::warn!(org, channel, %problem, "channel.skipped_not_recorded");
            }
        })
    }
}
