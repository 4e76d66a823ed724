//! The single task of a process that writes inbound messages.
//!
//! It takes the loads that are waiting (at most [`BATCH`] of them, with at most [`HEAVY`] bytes of files and long
//! texts) without waiting for more: the next batch accumulates while one is being committed. If a batch fails, it is
//! written again with a savepoint for each message, so that a message that fails does not affect the others. Notices
//! in other conversations come last. Senders get their response after the commit.

use std::{collections::BTreeMap, mem, sync::Arc};

use muster_channels::Event;
use tokio::sync::{mpsc, oneshot};

use super::{
    Arrived,
    lease::{Position, advance},
    messages::{Fate, admit},
    side_events::record_side_event,
};
use crate::{
    base::{
        bounds::BATCH,
        ids::{AgentId, ChannelId, ConversationId, OrgId},
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

/// The maximum number of bytes of files and long texts in one commit, unless a single load has more: a sender of large
/// files must not delay others.
const HEAVY: usize = 16 << 20;
/// The outcome of a message.
pub(super) type Outcome = Result<Fate>;

/// The messages and events of one channel that a vendor delivered at once.
pub(super) struct Load {
    pub org: OrgId,
    pub agent: AgentId,
    pub channel: ChannelId,
    /// The conversation to notify of its messages, and the channel's name.
    pub notified: Option<(ConversationId, String)>,
    /// The accepted messages.
    pub messages: Vec<Arrived>,
    /// Events other than messages.
    pub beside: Vec<Event>,
    /// The listener's position after these messages, stored in the same transaction.
    pub position: Option<Position>,
    /// The memory of the messages' files, long texts and sources.
    held: Option<Held>,
}

impl Load {
    /// An empty load.
    pub fn for_channel(channel: &Channel) -> Self {
        Self {
            org: channel.organization_id,
            agent: channel.agent_id,
            channel: channel.id,
            notified: channel.notify_conversation_id.map(|id| (id, channel.name.clone())),
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

    /// Whether the load has files or long texts, and should be written before more files are added.
    pub fn has_files(&self) -> bool {
        self.bytes() > 0
    }

    /// Reserves memory, until the load is written or the bytes are given back.
    ///
    /// # Errors
    /// Those of [`ResourceLimit::take`](crate::core::resource_limits::ResourceLimit::take).
    pub fn reserve(&mut self, core: &Core, bytes: usize) -> Result<()> {
        match &mut self.held {
            Some(held) => held.grow(bytes),
            None => {
                let holder = Holder::Channel(self.org.0, self.channel.0);
                self.held = Some(core.resource_limits.limit(Resource::Bodies).take(holder, bytes)?);
                Ok(())
            }
        }
    }

    /// Releases the memory of a file that is not stored.
    pub fn give_back(&mut self, bytes: usize) {
        if let Some(held) = &mut self.held {
            held.shrink(bytes);
        }
    }

    fn bytes(&self) -> usize {
        self.held.as_ref().map_or(0, Held::amount)
    }

    const fn key(&self) -> (OrgId, AgentId, ChannelId) {
        (self.org, self.agent, self.channel)
    }
}

/// Whether a message could not be stored because of a passing failure, so that the vendor must send it again.
pub(super) fn must_come_again(outcome: &Outcome) -> bool {
    let is_passing =
        |problem: &Problem| matches!(problem.code, Code::Unavailable | Code::Conflict | Code::StorageFull);
    outcome.as_ref().is_err_and(is_passing)
}

struct Job {
    load: Load,
    done: oneshot::Sender<Result<Vec<Outcome>>>,
    /// Its slot in the organization's share of waiting loads.
    place: Held,
}

impl Job {
    /// Whether the next job can be written together with this one: it is for the same channel, and does not depend on
    /// events of this one, such as a chat's new id.
    fn is_with(&self, next: &Self) -> bool {
        self.load.key() == next.load.key() && self.load.beside.is_empty()
    }

    /// Frees the slot and the memory, then passes the outcome to the caller of [`Writer::admit`].
    fn finish(self, outcome: Result<Vec<Outcome>>) {
        drop((self.load, self.place));
        // If the caller has stopped waiting, the message is still stored, and a duplicate when it is sent again.
        let _ = self.done.send(outcome);
    }
}

/// Passes loads to the task, which ends after all other tasks.
pub(super) struct Writer {
    jobs: mpsc::UnboundedSender<Job>,
    places: Arc<ResourceLimit>,
    core: Arc<Core>,
}

impl Writer {
    /// Starts the task.
    pub fn start(core: &Arc<Core>) -> Self {
        // Unbounded: the resource limits bound the number of waiting loads.
        let (jobs, waiting) = mpsc::unbounded_channel();
        let task = Arc::clone(core);
        core.tasks.spawn_last(async move { run(&task, waiting).await });
        Self {
            jobs,
            places: Arc::clone(core.resource_limits.limit(Resource::Arrivals)),
            core: Arc::clone(core),
        }
    }

    /// Writes a load. Returns the outcome of each message once they are committed.
    ///
    /// # Errors
    /// `STORAGE_FULL`: the organization has no room. `UNAVAILABLE`: too many loads are waiting, or the database is
    /// unreachable. `CONFLICT`: the listener's lease is over. Nothing was stored.
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
        // Replicas that lock agents in the same order can't deadlock.
        jobs.sort_by_key(|job| job.load.key());
        loop {
            // A sender that has stopped waiting counts its request as failed, and will send it again.
            jobs.retain(|job| !job.done.is_closed());
            if jobs.is_empty() {
                break;
            }
            let later = jobs.split_off(count_fitting(jobs.iter().map(|job| job.load.bytes())));
            write_jobs(core, mem::replace(&mut jobs, later)).await;
        }
    }
}

/// How many of the loads with these bytes go into one commit.
fn count_fitting(loads: impl Iterator<Item = usize>) -> usize {
    let sums = loads.scan(0, |sum, bytes| {
        *sum += bytes;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= HEAVY).count().max(1)
}

/// Writes jobs in one commit and finishes them. Savepoints cost four statements for each message, so the first attempt
/// has none.
async fn write_jobs(core: &Arc<Core>, jobs: Vec<Job>) {
    let mut written = write(core, &jobs, false).await;
    if written.is_err() && jobs.len() > 1 {
        written = write(core, &jobs, true).await;
    }
    match written {
        Ok(outcomes) => {
            for (job, outcome) in jobs.into_iter().zip(outcomes) {
                job.finish(outcome);
            }
        }
        // One by one, so that only the jobs that can't be written fail.
        Err(_) => {
            for job in jobs {
                let alone = write(core, std::slice::from_ref(&job), true).await;
                job.finish(alone.and_then(|mut outcomes| outcomes.pop().unwrap_or_else(|| Err(busy()))));
            }
        }
    }
}

/// Writes jobs of all organizations in one commit. If `guarded`, each message has a savepoint, so that a failure
/// affects no other message.
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
                outcomes.push(write_guarded(&tx, load).await?);
            }
        } else {
            outcomes.extend(write_unguarded(&tx, of_channel).await?);
        }
    }
    write_notices(&mut tx, collect_notices(jobs, &outcomes), guarded).await?;
    tx.commit().await?;
    Ok(outcomes)
}

/// The conversations to notify, and those in which messages were stored.
type Notices = BTreeMap<(OrgId, ConversationId), conversations::Sources>;

fn collect_notices(jobs: &[Job], outcomes: &[Result<Vec<Outcome>>]) -> Notices {
    let mut notices = Notices::new();
    for (Job { load, .. }, outcomes) in jobs.iter().zip(outcomes) {
        let (Some((target, channel)), Ok(outcomes)) = (&load.notified, outcomes) else { continue };
        for stored in outcomes.iter().flatten().flatten() {
            let sources = notices.entry((load.org, *target)).or_default();
            sources.insert(stored.conversation_id, channel.clone());
        }
    }
    notices
}

/// Writes notices. If `guarded`, a failure affects no message. Their conversations belong to any agents, so they are
/// locked after all agents, in the same order in each replica.
async fn write_notices(tx: &mut Tx, notices: Notices, guarded: bool) -> Result<()> {
    if !guarded || notices.is_empty() {
        return append_notices(tx, notices).await;
    }
    let savepoint = tx.savepoint().await?;
    let written = append_notices(tx, notices).await;
    tx.close_savepoint(savepoint, written.is_ok()).await?;
    if let Err(problem) = written {
        tracing::warn!(%problem, "channel.notices_not_written");
    }
    Ok(())
}

async fn append_notices(tx: &mut Tx, notices: Notices) -> Result<()> {
    for ((org, target), sources) in notices {
        if tx.scope.org != org {
            tx.scope = Scope::system(&tx.scope.core, org);
        }
        conversations::append_notices(tx, target, sources).await?;
    }
    Ok(())
}

/// Writes the loads of one channel: all of them, or none.
async fn write_unguarded(tx: &Tx, jobs: &[Job]) -> Result<Vec<Result<Vec<Outcome>>>> {
    let messages: Vec<_> = jobs.iter().flat_map(|job| &job.load.messages).collect();
    let mut fates = admit(tx, &messages).await?.into_iter().map(Ok);
    let mut outcomes = Vec::with_capacity(jobs.len());
    for Job { load, .. } in jobs {
        write_rest(tx, load).await?;
        outcomes.push(Ok(fates.by_ref().take(load.messages.len()).collect()));
    }
    Ok(outcomes)
}

/// Writes a load with a savepoint for each message. The outer error means that the connection failed.
async fn write_guarded(tx: &Tx, load: &Load) -> Result<Result<Vec<Outcome>>> {
    let savepoint = tx.savepoint().await?;
    let mut outcomes = Vec::with_capacity(load.messages.len());
    for message in &load.messages {
        outcomes.push(write_message(tx, message).await?);
    }
    // If a message must be sent again, the position after it must not be stored.
    if load.position.is_some()
        && let Some(at) = outcomes.iter().position(must_come_again)
        && let Err(problem) = outcomes.swap_remove(at)
    {
        tx.close_savepoint(savepoint, false).await?;
        return Ok(Err(problem));
    }
    let written = write_rest(tx, load).await;
    tx.close_savepoint(savepoint, written.is_ok()).await?;
    Ok(written.map(|()| outcomes))
}

/// Writes a load's other events and its position.
async fn write_rest(tx: &Tx, load: &Load) -> Result<()> {
    for event in &load.beside {
        record_side_event(tx, load.channel, event).await?;
    }
    match &load.position {
        Some(position) => advance(tx, position).await,
        None => Ok(()),
    }
}

/// Writes one message. Tries again once after a conflict: another replica may have written the same contact or message.
async fn write_message(tx: &Tx, arrived: &Arrived) -> Result<Outcome> {
    let mut is_first = true;
    loop {
        let savepoint = tx.savepoint().await?;
        let fates = admit(tx, &[arrived]).await;
        tx.close_savepoint(savepoint, fates.is_ok()).await?;
        match fates {
            Err(problem) if is_first && problem.code == Code::Conflict => is_first = false,
            Err(problem) => {
                let (org, channel) = (tx.scope.org.0, arrived.channel.0);
                tracing::warn!(org, channel, %problem, "channel.message_not_stored");
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
        assert_eq!(count_fitting([0; 64].into_iter()), 64);
        assert_eq!(count_fitting([HEAVY / 2, HEAVY / 2, 1].into_iter()), 2);
        assert_eq!(count_fitting([2 * HEAVY, 1].into_iter()), 1);
    }

    #[test]
    fn events_beside_messages_are_written_before_the_next_load() {
        let resource_limits = ResourceLimits::new(&Config::read(None, BTreeMap::new()).unwrap());
        let places = resource_limits.limit(Resource::Arrivals);
        let job = |channel: i64, beside: Vec<Event>| {
            let (org, agent, channel) = (OrgId(1), AgentId(1), ChannelId(channel));
            let (notified, messages) = (None, Vec::new());
            let load = Load { org, agent, channel, notified, messages, beside, position: None, held: None };
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
