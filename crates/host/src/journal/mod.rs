//! The journal: what the host may not forget.
//!
//! It holds the commands that were received and not yet carried out, the events that are not yet acknowledged, and one
//! record per agent: how far its lines have been read, what its sessions and turns are in the middle of, and the lines
//! that are to be written to it. **Exactly once rests on one rule: a step's events, the agent's record after it, and the
//! commands that it carried out are committed together, before anything of it becomes visible** (before an event is sent,
//! a line is written to the agent, or a command's receipt is confirmed).
//!
//! So a host that is killed loses at most steps that nobody has seen. After a restart the agent's record says which line
//! comes next; the shim still has it, and sends it again. A half-assembled message is part of the record, so there is no
//! need for points at which none is. Lines to the agent carry numbers, and the shim takes each number once: a line that
//! was committed, but perhaps not written, is simply written again. Lines that hold secrets (the opening of a session,
//! with the MCP servers' headers) are kept as what they are for, and made again from the plan, which is asked for again.
//!
//! One thread writes. It takes whatever waits, commits it in one transaction with one fsync, and answers all who waited.
//! If the disk is full it tries again each second, and everybody waits: agents then block on their own output, and
//! nothing is lost.
//!
//! Events wait for their acknowledgement up to a bound of bytes ([`Journal::room`]); beyond it no agent is read. Agents
//! take turns there, so that one that floods can't keep others away.

mod store;
#[cfg(test)]
mod tests;
mod writer;

use std::{path::Path, sync::Arc};

use muster_protocol::{Event, Happening, command::Order};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

pub use self::store::{Contents, StoreError};
use self::{store::Store, writer::Task};

use crate::bounds::BATCH;

/// What one step changes.
#[derive(Debug, Default)]
pub struct Change {
    /// An agent's record after the step, as bytes.
    pub record: Option<(i64, Vec<u8>)>,
    /// What happened, in order.
    pub events: Vec<Draft>,
    /// The numbers of the commands that are carried out.
    pub done: Vec<i64>,
}

/// An event that has no number yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The agent.
    pub agent_id: i64,
    /// Its launch.
    pub generation: i64,
    /// When, by the host's clock.
    pub at: i64,
    /// What happened.
    pub what: Happening,
}

/// Where the journal stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The last command.
    pub commands: i64,
    /// The last event.
    pub events: i64,
    /// The last event that was acknowledged.
    pub acknowledged: i64,
    /// The bytes of events that wait for their acknowledgement.
    pub waiting: u64,
    /// How many may wait.
    pub window: u64,
    /// How many commands wait to be carried out.
    pub orders: usize,
}

/// The journal is closed: the host is stopping, or the file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The journal is closed.")]
pub struct Closed;

/// The journal. Copies share it.
#[derive(Clone, Debug)]
pub struct Journal {
    tasks: mpsc::Sender<Task>,
    standing: watch::Receiver<Standing>,
    store: Arc<Store>,
    turn: Arc<Mutex<()>>,
}

impl Journal {
    /// Opens or makes the journal, and says what is in it.
    pub fn open(path: &Path) -> Result<(Self, Contents), StoreError> {
        let (store, contents) = Store::open(path)?;
        let store = Arc::new(store);
        let (tasks, waiting) = mpsc::channel(BATCH);
        // Bytes of events that may wait until the control plane has said how many it takes.
        let (standing, watched) = watch::channel(contents.standing(1024 * 1024));
        writer::start(Arc::clone(&store), waiting, standing)?;
        Ok((Self { tasks, standing: watched, store, turn: Arc::default() }, contents))
    }

    /// What a journal has that no host uses.
    pub fn contents(path: &Path) -> Result<Contents, StoreError> {
        Store::open(path).map(|(_, contents)| contents)
    }

    /// Puts a journal aside that no host uses, and begins one with nothing but these records.
    pub fn begin_again(path: &Path, aside: &Path, records: Vec<(i64, Vec<u8>)>) -> Result<(), StoreError> {
        store::begin_again(path, aside, records)
    }

    /// Commits a step. When it answers, the step is on the disk.
    pub async fn commit(&self, change: Change) -> Result<(), Closed> {
        self.ask(|done| Task::Commit(change, done)).await
    }

    /// Keeps commands that have arrived, and answers those that are new.
    pub async fn receive(&self, orders: Vec<Order>) -> Result<Vec<Order>, Closed> {
        self.ask(|done| Task::Receive(orders, done)).await
    }

    /// Drops the events up to this number, and learns how many bytes may wait.
    pub async fn acknowledge(&self, through: i64, window: Option<u64>) -> Result<(), Closed> {
        self.tasks.send(Task::Acknowledge { through, window }).await.map_err(|_| Closed)
    }

    /// The events after this number, oldest first: as many as fit, at least one.
    pub fn events_after(&self, seq: i64, most_bytes: usize) -> Result<Vec<Event>, StoreError> {
        self.store.events_after(seq, most_bytes)
    }

    /// Where the journal stands; it can be waited for.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Waits until events may be added. Whoever waits longest is first.
    pub async fn room(&self) -> Result<(), Closed> {
        let _turn = self.turn.lock().await;
        let mut standing = self.standing.clone();
        standing.wait_for(|standing| standing.waiting < standing.window).await.map_err(|_| Closed)?;
        Ok(())
    }

    async fn ask<T>(&self, task: impl FnOnce(oneshot::Sender<T>) -> Task) -> Result<T, Closed> {
        let (done, answer) = oneshot::channel();
        self.tasks.send(task(done)).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }
}
