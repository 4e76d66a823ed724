//! Listening: channels whose vendor is asked, or knows where to send (`channels/told.rs`). Each has a task in one of the
//! processes, which holds its lease.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use muster_channels::{Cursor, Event, Failure, Link, Reading, Sink, Skipped, Stopped, Transport};
use parking_lot::Mutex;
use tokio::{
    sync::{Mutex as Turn, watch},
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    Door,
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
    domain::channels::{self, Channel, open_to_listen, probe, telegram_webhook},
};

/// Why no one listens, if nothing failed.
const PAUSED: &str = "It is not listened to at the moment.";
/// How many channels a process takes on at a time: after an outage, all of them wait.
const AT_ONCE: i64 = 64;
/// How many of them may be one organization's, so that no tenant's channels keep others' waiting.
const OF_ONE: i64 = AT_ONCE / 4;

/// The channels that this process listens to.
#[derive(Default)]
pub(super) struct Listening(Mutex<HashSet<(OrgId, ChannelId)>>);

impl Door {
    /// Listens to the channels whose vendors are asked, until the service ends.
    pub fn listen(self: &Arc<Self>) {
        let door = Arc::clone(self);
        let holder = hex::encode(random_bytes::<16>());
        self.core.tasks.spawn(async move {
            let mut tick = interval(bounds::LOOK);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while door.core.tasks.stopping.run_until_cancelled(tick.tick()).await.is_some() {
                if let Err(problem) = door.take_on(&holder).await {
                    tracing::error!(%problem, "channels.not_listened_to");
                }
            }
        });
    }

    /// The channels that no one listens to, those first that have waited longest: since they were made, or since their listener
    /// ended. So many of them as a process takes on at a time, and of each organization its part.
    pub async fn waiting(&self) -> Result<Vec<(OrgId, ChannelId)>> {
        let unheard = unheard_channels(&self.core, OF_ONE, AT_ONCE).await?;
        Ok(unheard.into_iter().map(|place| (place.organization_id, place.id)).collect())
    }

    /// Takes on channels that no one listens to.
    async fn take_on(self: &Arc<Self>, holder: &str) -> Result<()> {
        for (org, channel) in self.waiting().await? {
            let lease = Lease { org, channel, holder: holder.to_owned() };
            if !self.listening.enter((org, channel)) {
                continue;
            }
            let door = Arc::clone(self);
            self.core.tasks.spawn(async move {
                let _listens = Listens(&door.listening, (lease.org, lease.channel));
                if let Err(problem) = door.serve(&lease).await {
                    tracing::error!(channel = lease.channel.0, %problem, "channel.listener_failed");
                }
            });
        }
        Ok(())
    }

    /// Listens to one channel for as long as its lease holds and its settings stay the same.
    async fn serve(&self, lease: &Lease) -> Result<()> {
        let core = &self.core;
        let Some(cursor) = lease.take(core).await? else { return Ok(()) };
        let scope = Scope::system(core, lease.org);
        let Some(channel) = channels::active(&scope, lease.channel).await? else { return Ok(()) };
        let seen = channel.updated_at;
        let channel = match probe::ask_again(&scope, channel).await? {
            Ok(channel) => channel,
            Err(why) => return self.over(&scope, lease, seen, InactiveReason::AuthFailed, &why).await,
        };
        let Some(channel) = telegram_webhook::prepare_path(&scope, channel).await? else { return Ok(()) };
        let Some(transport) = open_to_listen(&scope, &channel).await? else { return Ok(()) };
        let (links, latest) = watch::channel(None);
        let reading = Arc::default();
        let ear = Ear { door: self, channel: &channel, transport: &*transport, lease, links, reading };
        // It drops the ear when it ends, so that there are no more links to follow.
        let hearing = async move {
            Ok::<_, Problem>(tokio::select! {
                ended = self.hear(&ear, cursor) => Some(ended?),
                ended = self.let_end(&ear) => { ended?; None }
            })
        };
        let (ended, ()) = tokio::join!(hearing, lease.follow(core, latest));
        let ended = ended?;
        telegram_webhook::release(&scope, &channel, &*transport).await?;
        match ended {
            Some(Failure::Credentials(cause)) => {
                self.over(&scope, lease, seen, InactiveReason::AuthFailed, cause.as_str()).await
            }
            Some(Failure::Gone(cause)) => {
                self.over(&scope, lease, seen, InactiveReason::Gone, cause.as_str()).await
            }
            Some(failure) => {
                tracing::warn!(channel = lease.channel.0, %failure, "channel.not_listened_to");
                lease.link(core, &Link::Down(failure.to_string().into())).await?;
                lease.give_up(core, core.clock.now().plus(Duration::from_secs(30))).await
            }
            None => self.pause(lease).await,
        }
    }

    /// Switches the channel off. If its settings are others than those edited last at `seen`, someone listens with them instead.
    async fn over(
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
        lease.link(&self.core, &Link::Down(why.into())).await?;
        lease.give_up(&self.core, self.core.clock.now().plus(Duration::from_secs(30))).await
    }

    /// Lets someone else listen at once.
    async fn pause(&self, lease: &Lease) -> Result<()> {
        lease.link(&self.core, &Link::Down(PAUSED.into())).await?;
        lease.give_up(&self.core, self.core.clock.now()).await
    }

    /// Returns once listening has to end. What is being read at that time is handed over first, and nothing else is begun: the
    /// caller hears no more before it drops what this returns.
    async fn let_end(&self, ear: &Ear<'_>) -> Result<Option<Reading>> {
        let why = tokio::select! {
            kept = self.keep(ear.lease, ear.channel) => kept,
            shown = typing_indicator::show(&self.core, ear.channel, ear.transport) => shown,
            () = self.core.tasks.stopping.cancelled() => Ok(()),
        };
        // Less than what is left of a lease.
        let last = timeout(bounds::ANSWER_WAIT, ear.reading()).await.ok();
        why.map(|()| last)
    }

    /// Returns why hearing ended.
    async fn hear(&self, ear: &Ear<'_>, cursor: Option<Cursor>) -> Result<Failure> {
        let Ear { channel, transport, .. } = *ear;
        let scope = Scope::system(&self.core, ear.lease.org);
        if telegram_webhook::is_wanted(&self.core, channel) {
            return telegram_webhook::keep_registered(&scope, channel, transport, ear).await;
        }
        if let Err(failure) = telegram_webhook::unregister(&scope, channel, transport).await? {
            return Ok(failure);
        }
        Ok(match transport.listen(cursor, ear).await {
            Ok(never) => match never {},
            Err(failure) => failure,
        })
    }

    /// Renews the lease until it is lost, or the channel's settings are others, or its vendor has said who it is.
    async fn keep(&self, lease: &Lease, channel: &Channel) -> Result<()> {
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
    fn enter(&self, key: (OrgId, ChannelId)) -> bool {
        self.0.lock().insert(key)
    }

    fn leave(&self, key: (OrgId, ChannelId)) {
        self.0.lock().remove(&key);
    }
}

/// A channel that this process listens to, until this is dropped: also by a panic.
struct Listens<'a>(&'a Listening, (OrgId, ChannelId));

impl Drop for Listens<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// What a transport reports to.
struct Ear<'a> {
    door: &'a Door,
    channel: &'a Channel,
    transport: &'a dyn Transport,
    lease: &'a Lease,
    links: watch::Sender<Option<Link>>,
    /// Held while something is read that must not be cut off.
    reading: Arc<Turn<()>>,
}

impl Ear<'_> {
    async fn take(&self, events: Vec<Event>, cursor: Option<Cursor>) -> Result<()> {
        let position = cursor.map(|cursor| Position { lease: self.lease.clone(), cursor });
        // As it is now: someone may have changed its lists.
        let channel = self.door.fresh(self.lease.org, self.channel.id).await?;
        self.door.take(&channel, self.transport, events, position).await.map(drop)
    }
}

impl Sink for Ear<'_> {
    fn admit(
        &self,
        events: Vec<Event>,
        cursor: Option<Cursor>,
    ) -> BoxFuture<'_, std::result::Result<(), Stopped>> {
        Box::pin(async move {
            self.take(events, cursor).await.map_err(|problem| {
                tracing::warn!(channel = self.channel.id.0, %problem, "channel.not_admitted");
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
            tracing::warn!(channel = self.channel.id.0, vendor_id, subject, %reason, "channel.event_skipped");
            let scope = Scope::system(&self.door.core, self.lease.org);
            if let Err(problem) = skipped::record(&scope, self.channel.id, skipped).await {
                tracing::warn!(channel = self.channel.id.0, %problem, "channel.skipped_not_recorded");
            }
        })
    }
}
