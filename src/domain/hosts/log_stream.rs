//! Lines of agents' logs, for live viewers. A host keeps the logs, and sends lines only while they are watched.

use std::{collections::BTreeSet, ops::RangeInclusive, time::Duration};

use muster_protocol::{ToHost, frame::LogBatch};
use parking_lot::Mutex;

use super::{Ended, Link, Refusal, queries};
use crate::{
    base::{ids::AgentId, problem::Result},
    core::events::LogLines,
};

/// How long a host sends lines after a WATCH_LOG. It is sent again three times within this time.
pub const LOG_LEASE: Duration = Duration::from_secs(30);
/// The longest batch, in bytes of its text, because a host must not fill the queues of viewers.
const LONGEST: usize = 16 << 10;
/// The times that can be written in four digits of a year.
const TIMES: RangeInclusive<i64> = 0..=253_402_300_799_999;

/// The agents of a connection whose logs are watched.
#[derive(Default)]
pub struct WatchedLogs(Mutex<BTreeSet<AgentId>>);

impl WatchedLogs {
    /// The frames that make the host send what is watched now. It sends the end of a log first if no one watched it
    /// before, or for a new viewer.
    pub async fn renew(&self, link: &Link, new: &[Option<AgentId>]) -> Result<Vec<ToHost>> {
        let core = &link.scope.core;
        let watched = core.events.logs.watched_in(link.scope.org);
        let own: BTreeSet<AgentId> = if watched.is_empty() {
            BTreeSet::new()
        } else {
            queries::agents_of(link, &watched).await?.into_iter().collect()
        };
        let until = core.clock.now().0.saturating_add(LOG_LEASE.as_millis() as i64);
        let mut known = self.0.lock();
        let frames = own.iter().map(|agent| {
            let tail = new.contains(&Some(*agent)) || !known.contains(agent);
            ToHost::WatchLog { agent_id: agent.0, until, tail }
        });
        let frames = frames.collect();
        *known = own;
        Ok(frames)
    }

    /// Makes the next renewal ask for the end of every log: viewers were missed.
    pub fn forget(&self) {
        self.0.lock().clear();
    }

    /// Publishes lines to viewers. Those of an agent that is not watched, or not the host's, are dropped.
    ///
    /// # Errors
    /// The batch is invalid.
    pub fn show(&self, link: &Link, batch: LogBatch) -> Result<(), Ended> {
        let LogBatch { agent_id, begun_at, position, lines } = batch;
        let bytes: usize = lines.iter().map(|line| line.text.len() + 8).sum();
        let has_times =
            lines.iter().map(|line| line.time).chain([begun_at]).all(|time| TIMES.contains(&time));
        if bytes > LONGEST || position < 1 || !has_times {
            return Err(Refusal::malformed(
                "A LOG has at most 16 KiB of text, a position of at least 1, and times from 1970 to 9999.",
            )
            .into());
        }
        let agent = AgentId(agent_id);
        if self.0.lock().contains(&agent) {
            let org = link.scope.org;
            link.scope.core.events.logs.publish(LogLines { org, agent, begun_at, position, lines });
        }
        Ok(())
    }
}
