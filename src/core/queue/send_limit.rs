//! Limits how often a channel sends, by its vendor's [limits](muster_channels::Limit). Messages are counted before they
//! are sent, so that the vendor rarely has to refuse one.
//!
//! This is best effort: each process counts only its own messages, and forgets them when it ends. If a vendor refuses a
//! message nevertheless, the channel waits (`Failure::RateLimited`).
//!
//! The windows slide: no second and no minute exceeds its limit. The token buckets of governor (`core/rate_limits.rs`) don't
//! fit: a bucket for a minute's messages lets nearly twice as many through in its first minute, and a bucket for a
//! single message can't let through an answer of three parts at once.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use muster_channels::{Limit, Scope, Transport};
use parking_lot::{Mutex, MutexGuard};

use crate::base::{
    ids::{ChannelId, OrgId},
    time::Clock,
};

/// The limits of all channels, with the recently sent messages. Cheap to clone.
#[derive(Clone, Default)]
pub struct SendLimits(Arc<Mutex<HashMap<Key, Window>>>);

/// The scope in which a limit is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    channel: (OrgId, ChannelId),
    limit: Limit,
    /// The chat. Empty: the whole channel.
    chat: String,
}

/// The messages that still count.
#[derive(Debug, Default)]
struct Window {
    /// How many are being sent.
    in_flight: usize,
    /// For each finished send, the latest time at which the vendor can have received the message; oldest first.
    finished: VecDeque<Duration>,
}

/// Permits one message. The message counts as sent now for as long as this lives, and for the limit's period after it
/// is dropped: the vendor received it somewhere in between.
pub struct SendPermit {
    send_limits: SendLimits,
    clock: Clock,
    keys: Vec<Key>,
}

/// The limit allows no further message yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached {
    /// Whether the whole channel has to wait, or only this chat.
    pub is_for_all: bool,
    /// How long until a message may be allowed, in whole milliseconds.
    pub wait: Duration,
}

impl SendLimits {
    /// Takes a permit for a message to a target.
    ///
    /// # Errors
    /// The limit is reached; nothing was counted.
    pub fn take(
        &self,
        clock: &Clock,
        channel: (OrgId, ChannelId),
        transport: &dyn Transport,
        target: &str,
    ) -> Result<SendPermit, LimitReached> {
        let keys = keys(channel, transport, target);
        let (now, mut all) = (clock.elapsed(), self.all());
        let waits = keys.iter().filter_map(|key| {
            let wait = all.get_mut(key)?.wait(key.limit, now)?;
            Some(LimitReached { is_for_all: key.limit.scope == Scope::Channel, wait })
        });
        if let Some(reached) = waits.max_by_key(|reached| reached.wait) {
            return Err(reached);
        }
        for key in &keys {
            all.entry(key.clone()).or_default().in_flight += 1;
        }
        drop(all);
        Ok(SendPermit { send_limits: self.clone(), clock: clock.clone(), keys })
    }

    /// Forgets messages that no longer count. Returns how many windows are left.
    pub fn sweep(&self, clock: &Clock) -> usize {
        let (now, mut all) = (clock.elapsed(), self.all());
        all.retain(|key, window| {
            window.forget(key.limit, now);
            window.in_flight > 0 || !window.finished.is_empty()
        });
        all.shrink_to_fit();
        all.len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Window>> {
        self.0.lock()
    }
}

/// The scopes in which a message to this target counts.
fn keys(channel: (OrgId, ChannelId), transport: &dyn Transport, target: &str) -> Vec<Key> {
    let applies = |limit: &&Limit| limit.scope != Scope::Group || transport.is_group(target);
    let key = |limit: &Limit| {
        let chat = if limit.scope == Scope::Channel { "" } else { transport.chat(target) };
        Key { channel, limit: *limit, chat: chat.to_owned() }
    };
    transport.traits().limits.iter().filter(applies).map(key).collect()
}

impl Window {
    fn forget(&mut self, limit: Limit, now: Duration) {
        while self.finished.front().is_some_and(|at| *at + limit.per <= now) {
            self.finished.pop_front();
        }
    }

    /// How long until a message is allowed. `None` if one is allowed now.
    fn wait(&mut self, limit: Limit, now: Duration) -> Option<Duration> {
        self.forget(limit, now);
        let most = usize::try_from(limit.count).unwrap_or(usize::MAX);
        let over = (self.in_flight + self.finished.len() + 1).saturating_sub(most);
        let last = over.checked_sub(1)?;
        // Messages being sent count from their arrival, which is later than now.
        let wait = self.finished.get(last).map_or(limit.per, |at| (*at + limit.per).saturating_sub(now));
        Some(Duration::from_millis(u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)))
    }
}

impl Drop for SendPermit {
    fn drop(&mut self) {
        let (now, mut all) = (self.clock.elapsed(), self.send_limits.all());
        for key in &self.keys {
            if let Some(window) = all.get_mut(key) {
                window.in_flight -= 1;
                window.finished.push_back(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use muster_channels::{Config, TelegramConfig};

    use super::*;
    use crate::{base::time::Timestamp, core::outbound};

    /// The transport with the narrowest limits.
    fn telegram() -> Arc<dyn Transport> {
        let settings = crate::core::config::Config::read(None, BTreeMap::new()).unwrap();
        let config =
            TelegramConfig { token: "1:secret".into(), webhook_secret: "secret".into(), username: None };
        muster_channels::open(Config::Telegram(config), &outbound::network(&settings).unwrap())
    }

    const CHANNEL: (OrgId, ChannelId) = (OrgId(1), ChannelId(1));

    fn clock() -> Clock {
        Clock::fixed(Timestamp(1_000_000))
    }

    fn full(is_for_all: bool, millis: u64) -> LimitReached {
        LimitReached { is_for_all, wait: Duration::from_millis(millis) }
    }

    #[test]
    fn a_chat_has_one_a_second_and_others_have_theirs() {
        let (send_limits, clock, telegram) = (SendLimits::default(), clock(), telegram());
        let take = |target| send_limits.take(&clock, CHANNEL, &*telegram, target);
        drop(take("5"));
        assert_eq!(take("5").err(), Some(full(false, 1_000)));
        assert!(take("6").is_ok());
        assert!(send_limits.take(&clock, (OrgId(1), ChannelId(2)), &*telegram, "5").is_ok());
        clock.advance(Duration::from_millis(999));
        assert_eq!(take("5").err(), Some(full(false, 1)));
        clock.advance(Duration::from_millis(1));
        // A message being sent counts from its arrival.
        let permit = take("5").unwrap();
        clock.advance(Duration::from_secs(5));
        assert_eq!(take("5").err(), Some(full(false, 1_000)));
        drop(permit);
        clock.advance(Duration::from_millis(400));
        assert_eq!(take("5").err(), Some(full(false, 600)));
    }

    #[test]
    fn a_group_s_minute_slides_and_its_topics_count_together() {
        let (send_limits, clock, telegram) = (SendLimits::default(), clock(), telegram());
        let mut sent = Vec::new();
        for second in 0..200 {
            let target = if second % 2 == 0 { "-1/7" } else { "-1" };
            if send_limits.take(&clock, CHANNEL, &*telegram, target).is_ok() {
                sent.push(second);
            }
            clock.advance(Duration::from_secs(1));
        }
        for second in 0..140 {
            let minute = sent.iter().filter(|at| (second..second + 60).contains(*at)).count();
            assert_eq!(minute, 20, "from {second}");
        }
    }

    #[test]
    fn a_channel_has_thirty_a_second_and_nothing_is_kept_longer() {
        let (send_limits, clock, telegram) = (SendLimits::default(), clock(), telegram());
        let take = |chat: u32| send_limits.take(&clock, CHANNEL, &*telegram, &chat.to_string());
        assert_eq!((0..40).filter(|chat| take(*chat).is_ok()).count(), 30);
        assert_eq!(take(99).err(), Some(full(true, 1_000)));
        assert_eq!(send_limits.sweep(&clock), 31);
        clock.advance(Duration::from_secs(1));
        assert_eq!(send_limits.sweep(&clock), 0);
    }
}
