//! Events: what a host reports, stored in the order of their numbers, each once, together with what it changes.
//!
//! One transaction takes all that is waiting, and messages in a row take a few statements together. It moves `event_seq` on from exactly the event before, in the
//! connection's epoch, so nothing is applied twice or by an old connection. Reports of an older launch change nothing
//! but what is left of that launch, and an event that can't be applied is logged and left out: it must not block its host forever.
//!
//! A host that is not confirmed never has a model's key. So what it reports about calls, leases and limits is foreign, and so is what
//! it reports of launches that it was told nothing about.
//!
//! An agent moves as soon as it has stopped, and its calls of models may be over a while later: what its host then says of the
//! launch is late, not foreign, and what the calls have spent is counted.

use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
};

use futures::FutureExt;
use muster_protocol::{Event, Happening};

use super::{Ended, Link, Refusal, apply, queries};
use crate::{
    base::{
        ids::AgentId,
        problem::{Code, Problem, Result},
    },
    core::store::Tx,
    domain::{commands, servers},
};

/// How many events a transaction takes: a host that returns after an outage brings thousands, and others wait for what they hold.
pub const MOST_EVENTS: usize = 200;

/// Stores events without a gap between them. Returns how many of them are foreign: about agents that are not on the server, in
/// launches that never ran on it.
///
/// # Errors
/// The connection is not the current one; GAP; the database can't be reached, or is full.
pub async fn store(link: &Link, events: &[Event]) -> Result<u32, Ended> {
    match attempt(link, events, false).await {
        Err(Ended::Failed(problem)) if !is_passing(&problem) => {
            tracing::debug!(server = link.server.0, %problem, "hosts.events_one_by_one");
            attempt(link, events, true).await
        }
        done => done,
    }
}

/// Whether the same events may be stored later.
fn is_passing(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unavailable | Code::StorageFull)
}

async fn attempt(link: &Link, events: &[Event], one_by_one: bool) -> Result<u32, Ended> {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(0) };
    let tx = link.scope.begin().await?;
    let launches = launches(&tx, link, events).await?;
    if !queries::move_events(&tx, link, (first.seq - 1, last.seq)).await? {
        tx.rollback().await?;
        link.fence().await?;
        return Err(gap(first.seq - 1).into());
    }
    let foreign = events.iter().filter(|event| launches.is_foreign(event)).count();
    let counts =
        |event: &&Event| launches.is_own(event) || (launches.is_late(event) && apply::counts_late(event));
    let counting: Vec<&Event> = events.iter().filter(counts).collect();
    if one_by_one {
        for event in &counting {
            alone(&tx, link, event).await?;
        }
    } else {
        // What an agent says is most of what comes: messages in a row are stored together.
        for together in counting.chunk_by(|one, next| is_message(one) && is_message(next)) {
            tried(&tx, link, together).await?;
        }
    }
    tx.commit().await?;
    Ok(foreign as u32)
}

fn is_message(event: &Event) -> bool {
    matches!(event.what, Happening::Message(_))
}

/// The event with this number was left out.
pub fn gap(next: i64) -> Refusal {
    let reason = format!("Event {next} was left out. Send again from the last acknowledged one.");
    Refusal::new(muster_protocol::frame::RefusedCode::Gap, reason).retry(1)
}

/// The launches of the agents that a batch names, as far as they are the server's.
struct Launches {
    /// The current one of each agent of the server.
    own: HashMap<i64, i64>,
    /// Those that ran on the server, of agents that have left it.
    left: HashSet<(i64, i64)>,
    /// If the host is not confirmed, those that it was told of: a token can have it join in the place of another one.
    told: Option<HashSet<(i64, i64)>>,
}

impl Launches {
    fn is_own(&self, event: &Event) -> bool {
        let is_of_server = self.own.get(&event.agent_id).is_some_and(|launch| event.generation <= *launch);
        is_of_server && self.may_say(event)
    }

    fn is_late(&self, event: &Event) -> bool {
        self.left.contains(&(event.agent_id, event.generation)) && self.may_say(event)
    }

    fn is_foreign(&self, event: &Event) -> bool {
        !self.is_own(event) && !self.is_late(event)
    }

    fn may_say(&self, event: &Event) -> bool {
        self.told.as_ref().is_none_or(|told| {
            !apply::is_of_spending(event) && told.contains(&(event.agent_id, event.generation))
        })
    }
}

/// Finds the launches, and holds their agents until the transaction ends: all at once, since only then are they held in the order
/// in which everything else holds several.
async fn launches(tx: &Tx, link: &Link, events: &[Event]) -> Result<Launches> {
    let ids = agents_of(events);
    let own: HashSet<i64> = queries::agents_on(tx, link.server, &ids).await?.into_iter().collect();
    let left = left(tx, link, &ids, |id| own.contains(id)).await?;
    let all: Vec<AgentId> = own.into_iter().chain(left.into_iter().map(|(id, _)| id)).map(AgentId).collect();
    apply::hold(tx, &all, events).await?;
    // Some may have been moved before they were held.
    let found = queries::launches_on(tx, link.server, &ids).await?;
    let own: HashMap<i64, i64> = found.iter().map(|row| (row.id, row.launch_generation)).collect();
    let left = self::left(tx, link, &ids, |id| own.contains_key(id)).await?;
    let is_unconfirmed = match found.first() {
        Some(row) => row.host_confirmed_at.is_none(),
        None => !left.is_empty() && servers::is_unconfirmed(tx, link.server).await?,
    };
    let told = if is_unconfirmed { Some(told(tx, link, &ids).await?) } else { None };
    Ok(Launches { own, left, told })
}

/// The launches that a host was told of. One that is not over is where its agent is, however long ago that was.
async fn told(tx: &Tx, link: &Link, ids: &[i64]) -> Result<HashSet<(i64, i64)>> {
    let mut told = commands::launches_sent(tx, link.server, ids).await?;
    let open = queries::open_launches_on(tx, link.server, ids).await?;
    told.extend(open.into_iter().map(|launch| (launch.id, launch.launch_generation)));
    Ok(told)
}

/// The launches that ran on the server, of those agents that are not its own.
async fn left(
    tx: &Tx,
    link: &Link,
    ids: &[i64],
    is_own: impl Fn(&i64) -> bool,
) -> Result<HashSet<(i64, i64)>> {
    let others: Vec<i64> = ids.iter().copied().filter(|id| !is_own(id)).collect();
    if others.is_empty() {
        return Ok(HashSet::new());
    }
    commands::launches_sent(tx, link.server, &others).await
}

fn agents_of(events: &[Event]) -> Vec<i64> {
    let mut ids: Vec<i64> = events.iter().map(|event| event.agent_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Applies one event, or several messages. A panic is a failure like any other.
async fn tried(tx: &Tx, link: &Link, events: &[&Event]) -> Result<()> {
    let applied = AssertUnwindSafe(apply::apply(tx, link.server, events)).catch_unwind().await;
    applied.unwrap_or_else(|_| Err(Problem::internal(anyhow::anyhow!("applying an event panicked"))))
}

/// Applies an event, or leaves it out.
async fn alone(tx: &Tx, link: &Link, event: &Event) -> Result<()> {
    let mut is_again = false;
    loop {
        let marked = tx.mark().await?;
        let done = tried(tx, link, &[event]).await;
        tx.close_mark(marked, done.is_ok()).await?;
        match done {
            Ok(()) => return Ok(()),
            Err(problem) if is_passing(&problem) => return Err(problem),
            // Two transactions may have got in each other's way, which won't happen again.
            Err(problem) if problem.code == Code::Conflict && !is_again => is_again = true,
            Err(problem) => {
                let cause = problem.cause().map(|cause| format!("{cause:#}"));
                let (server, agent, seq) = (link.server.0, event.agent_id, event.seq);
                tracing::error!(server, agent, seq, %problem, cause, "hosts.event_left_out");
                return apply::left_out(tx, link.server, event).await;
            }
        }
    }
}
