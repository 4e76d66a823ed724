//! The one task of a process that writes what came in.
//!
//! It takes what is waiting, at most [`BATCH`] deliveries of vendors or [`HEAVY`] bytes of files and long texts, without waiting
//! for more: while one commit is on its way to the disk, the next batch collects itself. If something in it fails, it is written
//! again with each message behind a savepoint, so that one that fails takes no other with it. Senders are answered after
//! the commit.

use std::{mem, sync::Arc};

use muster_channels::Event;
use tokio::sync::{mpsc, oneshot};

use super::{
    Arrived,
    lease::{Position, advance},
    messages::{Fate, admit},
    side_events::note,
};
use crate::{
    base::{
        bounds::BATCH,
        ids::{AgentId, ChannelId, OrgId},
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        resource_limits::{Held, Holder, Resource, ResourceLimit},
        store::Tx,
    },
    domain::{channels::Channel, conversations},
};

/// How many bytes of files and long texts one commit holds at most, or those of one delivery: a sender of large files must not
/// keep others from writing.
const HEAVY: usize = 16 << 20;
/// What became of a message.
pub(super) type Outcome = Result<Fate>;

/// What a vendor brought at once, for one channel.
pub(super) struct Load {
    /// The channel's organization.
    pub org: OrgId,
    /// The channel's agent.
    pub agent: AgentId,
    /// The channel.
    pub channel: ChannelId,
    /// The messages that are wanted.
    pub messages: Vec<Arrived>,
    /// What else came.
    pub beside: Vec<Event>,
    /// How far the listener has read with them. Kept with them, or neither is.
    pub position: Option<Position>,
    /// The bytes of the messages' files, and of long texts.
    held: Option<Held>,
}

impl Load {
    /// An empty one for a channel.
    pub fn of(channel: &Channel) -> Self {
        Self {
            org: channel.organization_id,
            agent: channel.agent_id,
            channel: channel.id,
            messages: Vec::new(),
            beside: Vec::new(),
            position: None,
            held: None,
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.beside.is_empty() && self.position.is_none()
    }

    /// Whether it should be written before more files are added.
    pub fn has_files(&self) -> bool {
        self.bytes() > 0
    }

    /// Counts bytes, until they are written or given back.
    ///
    /// # Errors
    /// Those of [`ResourceLimit::take`](crate::core::resource_limits::ResourceLimit::take).
    pub fn hold(&mut self, core: &Core, bytes: usize) -> Result<()> {
        match &mut self.held {
            Some(held) => held.grow(bytes),
            None => {
                let holder = Holder::Channel(self.org.0, self.channel.0);
                self.held = Some(core.resource_limits.limit(Resource::Bodies).take(holder, bytes)?);
                Ok(())
            }
        }
    }

    /// No longer counts bytes of a file that is not kept.
    pub fn give_back(&mut self, bytes: usize) {
        if let Some(held) = &mut self.held {
            held.shrink(bytes);
        }
    }

    fn bytes(&self) -> usize {
        self.held.as_ref().map_or(0, Held::amount)
    }

    const fn place(&self) -> (OrgId, AgentId, ChannelId) {
        (self.org, self.agent, self.channel)
    }
}

/// Whether a message could not be stored this time, but may be the next.
pub(super) fn must_come_again(outcome: &Outcome) -> bool {
    let is_passing =
        |problem: &Problem| matches!(problem.code, Code::Unavailable | Code::Conflict | Code::StorageFull);
    outcome.as_ref().is_err_and(is_passing)
}

struct Job {
    load: Load,
    done: oneshot::Sender<Result<Vec<Outcome>>>,
    /// Its place among what waits, of which each organization has a share.
    place: Held,
}

impl Job {
    /// Whether the next one is written with it: it is for the same channel, and nothing came beside this one's messages that
    /// the next one's depend on, such as a chat's new id.
    fn is_with(&self, next: &Self) -> bool {
        self.load.place() == next.load.place() && self.load.beside.is_empty()
    }

    /// Tells who waits, who may use the place and the memory again.
    fn tell(self, outcome: Result<Vec<Outcome>>) {
        drop((self.load, self.place));
        // No one waits for it now: it is stored, and a duplicate when it comes again.
        let _ = self.done.send(outcome);
    }
}

/// The way to the task. It ends when everything else has finished.
pub(super) struct Admitter {
    jobs: mpsc::UnboundedSender<Job>,
    places: Arc<ResourceLimit>,
    core: Arc<Core>,
}

impl Admitter {
    /// Starts the task.
    pub fn start(core: &Arc<Core>) -> Self {
        // The resource limits bounds it.
        let (jobs, waiting) = mpsc::unbounded_channel();
        let task = Arc::clone(core);
        core.tasks.spawn_last(async move { run(&task, waiting).await });
        Self {
            jobs,
            places: Arc::clone(core.resource_limits.limit(Resource::Arrivals)),
            core: Arc::clone(core),
        }
    }

    /// Hands messages over. Returns when they are committed, with what became of each.
    ///
    /// # Errors
    /// `STORAGE_FULL`: the organization has no room. `UNAVAILABLE`: too many wait, or the database can't be reached. `CONFLICT`: the listener's lease is over. Nothing was
    /// taken.
    pub async fn admit(&self, load: Load) -> Result<Vec<Outcome>> {
        let (done, outcome) = oneshot::channel();
        if !load.messages.is_empty() {
            conversations::require_room(&self.core, load.org)?;
        }
        let place = self.places.take(Holder::Organization(load.org.0), 1).map_err(|_| busy())?;
        self.jobs.send(Job { load, done, place }).map_err(|_| busy())?;
        outcome.await.map_err(|_| busy())?
    }
}

fn busy() -> Problem {
    let detail = "Too many messages are coming in at the moment. Send it again in a second.";
    Problem::new(Code::Unavailable, detail).with("retry_after", 1)
}

async fn run(core: &Arc<Core>, mut waiting: mpsc::UnboundedReceiver<Job>) {
    let mut jobs = Vec::with_capacity(BATCH as usize);
    while let Some(1..) =
        core.tasks.ending.run_until_cancelled(waiting.recv_many(&mut jobs, BATCH as usize)).await
    {
        // Two replicas that hold agents in the same order don't wait for each other in a circle.
        jobs.sort_by_key(|job| job.load.place());
        loop {
            // A sender that has stopped waiting knows it as failed, and sends it again.
            jobs.retain(|job| !job.done.is_closed());
            if jobs.is_empty() {
                break;
            }
            let later = jobs.split_off(fitting(jobs.iter().map(|job| job.load.bytes())));
            settle(core, mem::replace(&mut jobs, later)).await;
        }
    }
}

/// How many of the loads with these bytes go into one commit.
fn fitting(loads: impl Iterator<Item = usize>) -> usize {
    let sums = loads.scan(0, |sum, bytes| {
        *sum += bytes;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= HEAVY).count().max(1)
}

/// Writes jobs in one commit, and tells those who wait. Savepoints cost each message four statements, so there are none until
/// something has failed.
async fn settle(core: &Arc<Core>, jobs: Vec<Job>) {
    let mut written = write(core, &jobs, false).await;
    if written.is_err() && jobs.len() > 1 {
        written = write(core, &jobs, true).await;
    }
    match written {
        Ok(outcomes) => {
            for (job, outcome) in jobs.into_iter().zip(outcomes) {
                job.tell(outcome);
            }
        }
        // One by one, so that only those fail that can't be written.
        Err(_) => {
            for job in jobs {
                let alone = write(core, std::slice::from_ref(&job), true).await;
                job.tell(alone.and_then(|mut outcomes| outcomes.pop().unwrap_or_else(|| Err(busy()))));
            }
        }
    }
}

/// Writes everything of all organizations in one commit. If it is `guarded`, a message that fails fails alone.
async fn write(core: &Arc<Core>, jobs: &[Job], guarded: bool) -> Result<Vec<Result<Vec<Outcome>>>> {
    let Some(first) = jobs.first() else { return Ok(Vec::new()) };
    let mut tx = Scope::system(core, first.load.org).begin().await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for of_channel in jobs.chunk_by(Job::is_with) {
        if let Some(first) = of_channel.first()
            && tx.scope.org != first.load.org
        {
            tx.scope = Scope::system(core, first.load.org);
        }
        if guarded {
            for Job { load, .. } in of_channel {
                outcomes.push(together(&tx, load).await?);
            }
        } else {
            outcomes.extend(at_once(&tx, of_channel).await?);
        }
    }
    tx.commit().await?;
    Ok(outcomes)
}

/// Writes what came for one channel: all of it, or nothing.
async fn at_once(tx: &Tx, jobs: &[Job]) -> Result<Vec<Result<Vec<Outcome>>>> {
    let messages: Vec<_> = jobs.iter().flat_map(|job| &job.load.messages).collect();
    let mut fates = admit(tx, &messages).await?.into_iter().map(Ok);
    let mut outcomes = Vec::with_capacity(jobs.len());
    for Job { load, .. } in jobs {
        finish(tx, load).await?;
        outcomes.push(Ok(fates.by_ref().take(load.messages.len()).collect()));
    }
    Ok(outcomes)
}

/// Writes what came together, each message behind a savepoint. The outer error is the connection's.
async fn together(tx: &Tx, load: &Load) -> Result<Result<Vec<Outcome>>> {
    let mark = tx.mark().await?;
    let mut outcomes = Vec::with_capacity(load.messages.len());
    for message in &load.messages {
        outcomes.push(one(tx, message).await?);
    }
    // The place behind what must come again is not kept either.
    if load.position.is_some()
        && let Some(at) = outcomes.iter().position(must_come_again)
        && let Err(problem) = outcomes.swap_remove(at)
    {
        tx.close_mark(mark, false).await?;
        return Ok(Err(problem));
    }
    let kept = finish(tx, load).await;
    tx.close_mark(mark, kept.is_ok()).await?;
    Ok(kept.map(|()| outcomes))
}

async fn finish(tx: &Tx, load: &Load) -> Result<()> {
    for event in &load.beside {
        note(tx, load.channel, event).await?;
    }
    match &load.position {
        Some(position) => advance(tx, position).await,
        None => Ok(()),
    }
}

/// Writes one message, twice if need be: another replica may have just written the same contact or message.
async fn one(tx: &Tx, arrived: &Arrived) -> Result<Outcome> {
    let mut is_first = true;
    loop {
        let mark = tx.mark().await?;
        let fates = admit(tx, &[arrived]).await;
        tx.close_mark(mark, fates.is_ok()).await?;
        match fates {
            Err(problem) if is_first && problem.code == Code::Conflict => is_first = false,
            Err(problem) => {
                tracing::warn!(channel = arrived.channel.0, %problem, "channel.message_not_stored");
                return Ok(Err(problem));
            }
            Ok(mut fates) => return Ok(fates.pop().ok_or_else(busy)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::core::{config::Config, resource_limits::ResourceLimits};

    #[test]
    fn one_commit_holds_few_bytes_and_at_least_one_delivery() {
        assert_eq!(fitting([0; 64].into_iter()), 64);
        assert_eq!(fitting([HEAVY / 2, HEAVY / 2, 1].into_iter()), 2);
        assert_eq!(fitting([2 * HEAVY, 1].into_iter()), 1);
    }

    #[test]
    fn what_came_beside_messages_is_written_before_the_next_delivery() {
        let resource_limits = ResourceLimits::new(&Config::read(None, BTreeMap::new()).unwrap());
        let places = resource_limits.limit(Resource::Arrivals);
        let job = |channel: i64, beside: Vec<Event>| {
            let (org, agent, channel) = (OrgId(1), AgentId(1), ChannelId(channel));
            let load = Load { org, agent, channel, messages: Vec::new(), beside, position: None, held: None };
            Job {
                load,
                done: oneshot::channel().0,
                place: places.take(Holder::Organization(org.0), 1).unwrap(),
            }
        };
        let moved = vec![Event::Moved { from: "-100".to_owned(), to: "-1009".to_owned() }];
        let jobs = [job(1, vec![]), job(1, moved), job(1, vec![]), job(1, vec![]), job(2, vec![])];
        let together: Vec<usize> = jobs.chunk_by(Job::is_with).map(<[Job]>::len).collect();
        assert_eq!(together, [2, 2, 1]);
    }
}
