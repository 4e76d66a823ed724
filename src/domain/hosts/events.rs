//! Events: reports of a host, applied in the order of their numbers, each once.
//!
//! One transaction applies all waiting events; consecutive messages share a few statements. It advances `event_seq`
//! from exactly the previous event, in the connection's epoch, so nothing is applied twice or by an old connection.
//! Reports of an older launch only settle that launch. An event that can't be applied is logged and skipped: it must
//! not block its host forever.
//!
//! A host that is not confirmed never has a model's key. So its reports about calls, leases and limits are foreign, and
//! so are those about launches for which it received no command.
//!
//! An agent may move as soon as it has stopped, while its calls of models end later: reports of its old host about that
//! launch are late, not foreign, and the costs of the calls are counted.

use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
};

use futures::FutureExt;
use muster_protocol::{Event, HostEvent};

use super::{Ended, Link, Refusal, apply, queries};
use crate::{
    base::{
        ids::AgentId,
        problem::{Code, Problem, Result},
    },
    core::store::Tx,
    domain::{commands, servers},
};

/// How many events one transaction applies: a host that returns after an outage brings thousands, and others wait for
/// their locks.
pub const MAX_EVENTS: usize = 200;

/// Stores consecutive events. Returns how many of them are foreign: about launches that never ran on this server.
///
/// # Errors
/// The connection is not the current one; GAP; the database is full.
pub async fn store_events(link: &Link, events: &[Event]) -> Result<u32, Ended> {
    match try_store(link, events, false).await {
        Err(Ended::Failed(problem)) if !is_temporary(&problem) => {
            tracing::debug!(server = link.server.0, %problem, "hosts.events_one_by_one");
            try_store(link, events, true).await
        }
        done => done,
    }
}

/// Whether storing the same events may succeed later.
fn is_temporary(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unavailable | Code::StorageFull)
}

async fn try_store(link: &Link, events: &[Event], one_by_one: bool) -> Result<u32, Ended> {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(0) };
    let tx = link.scope.begin().await?;
    let launches = load_launches(&tx, link, events).await?;
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
            apply_or_skip(&tx, link, event).await?;
        }
    } else {
        // Most events are messages, so consecutive ones are stored together.
        for together in counting.chunk_by(|one, next| is_message(one) && is_message(next)) {
            apply_catching_panics(&tx, link, together).await?;
        }
    }
    tx.commit().await?;
    Ok(foreign as u32)
}

fn is_message(event: &Event) -> bool {
    matches!(event.what, HostEvent::Message(_))
}

/// The refusal of a host that skipped the event with this number.
pub fn gap(next: i64) -> Refusal {
    let reason = format!("Event {next} was left out. Send again from the last acknowledged one.");
    Refusal::new(muster_protocol::frame::RefusedCode::Gap, reason).retry(1)
}

/// The launches of a batch's agents that belong to the server.
struct Launches {
    /// The current launch of each agent on the server.
    own: HashMap<i64, i64>,
    /// The launches that ran on the server, of agents that have left it.
    left: HashSet<(i64, i64)>,
    /// If the host is not confirmed, the launches for which it received commands: with a token, it may have joined in
    /// the place of another host.
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
            !apply::concerns_spending(event) && told.contains(&(event.agent_id, event.generation))
        })
    }
}

/// Finds the launches, and locks their agents until the transaction ends: all at once, to keep the locking order.
async fn load_launches(tx: &Tx, link: &Link, events: &[Event]) -> Result<Launches> {
    let ids = agent_ids(events);
    let own: HashSet<i64> = queries::agents_on(tx, link.server, &ids).await?.into_iter().collect();
    let left = launches_of_departed(tx, link, &ids, |id| own.contains(id)).await?;
    let all: Vec<AgentId> = own.into_iter().chain(left.into_iter().map(|(id, _)| id)).map(AgentId).collect();
    apply::lock_batch(tx, &all, events).await?;
    // Some may have moved before they were locked.
    let found = queries::launches_on(tx, link.server, &ids).await?;
    let own: HashMap<i64, i64> = found.iter().map(|row| (row.id, row.launch_generation)).collect();
    let left = launches_of_departed(tx, link, &ids, |id| own.contains_key(id)).await?;
    let is_unconfirmed = match found.first() {
        Some(row) => row.host_confirmed_at.is_none(),
        None => !left.is_empty() && servers::is_unconfirmed(tx, link.server).await?,
    };
    let told = if is_unconfirmed { Some(launches_told(tx, link, &ids).await?) } else { None };
    Ok(Launches { own, left, told })
}

/// The launches for which a host received commands. An open launch counts regardless of its age.
async fn launches_told(tx: &Tx, link: &Link, ids: &[i64]) -> Result<HashSet<(i64, i64)>> {
    let mut told = commands::launches_sent(tx, link.server, ids).await?;
    let open = queries::open_launches_on(tx, link.server, ids).await?;
    told.extend(open.into_iter().map(|launch| (launch.id, launch.launch_generation)));
    Ok(told)
}

/// The launches that ran on the server, of agents that are no longer on it.
async fn launches_of_departed(
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

fn agent_ids(events: &[Event]) -> Vec<i64> {
    let mut ids: Vec<i64> = events.iter().map(|event| event.agent_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Applies one event, or several messages. A panic is an error like any other.
async fn apply_catching_panics(tx: &Tx, link: &Link, events: &[&Event]) -> Result<()> {
    let applied = AssertUnwindSafe(apply::apply(tx, link.server, events)).catch_unwind().await;
    applied.unwrap_or_else(|_| Err(Problem::internal(anyhow::anyhow!("applying an event panicked"))))
}

/// Applies an event, or skips it.
async fn apply_or_skip(tx: &Tx, link: &Link, event: &Event) -> Result<()> {
    let mut is_again = false;
    loop {
        let savepoint = tx.savepoint().await?;
        let done = apply_catching_panics(tx, link, &[event]).await;
        tx.close_savepoint(savepoint, done.is_ok()).await?;
        match done {
            Ok(()) => return Ok(()),
            Err(problem) if is_temporary(&problem) => return Err(problem),
            // A conflict with another transaction; a second attempt should succeed.
            Err(problem) if problem.code == Code::Conflict && !is_again => is_again = true,
            Err(problem) => {
                let cause = problem.cause().map(|cause| format!("{cause:#}"));
                let (org, server, agent, seq) = (link.scope.org.0, link.server.0, event.agent_id, event.seq);
                tracing::error!(org, server, agent, seq, %problem, cause, "hosts.event_left_out");
                return apply::refuse_skipped(tx, link.server, event).await;
            }
        }
    }
}
