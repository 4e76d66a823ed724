//! The journal: the host's durable state.
//!
//! It contains received commands that are not yet carried out, unacknowledged events, and one record per agent: the
//! last line read, the open work of its sessions and turns, and the lines to write to it. **Exactly once rests on one
//! rule: a step's events, the agent's record after it, and the commands that it carried out are committed together,
//! before any effect becomes visible** (before an event is sent, a line is written to the agent, or a command is
//! confirmed).
//!
//! So a killed host loses at most invisible steps. After a restart the agent's record contains the number of the next
//! line; the shim still has this line, and sends it again. A partial message is part of the record, so the protocol
//! needs no points without one. Lines to the agent are numbered, and the shim takes each number once: a line that was
//! committed, but perhaps not written, is simply written again. Lines with secrets (the opening of a session, with the
//! MCP servers' headers) are stored as their purpose only, and rendered again from the plan, which is requested again.
//!
//! A single thread writes. It takes all pending tasks, commits them in one transaction with one fsync, and answers
//! their callers. On a full disk it retries every second, and all callers wait: agents then block on their own output,
//! and nothing is lost.
//!
//! Unacknowledged events are limited in bytes ([`Journal::wait_for_room`]); beyond the limit no agent is read. Agents
//! take turns there, so a flooding agent can't block others.

mod store;
#[cfg(test)]
mod tests;
mod writer;

use std::{path::Path, sync::Arc};

use muster_protocol::{Event, HostEvent, command::CommandEnvelope};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

pub use self::store::{Contents, StoreError};
use self::{store::Store, writer::Task};

use crate::bounds::BATCH;

/// Changes of one step.
#[derive(Debug, Default)]
pub struct Change {
    /// An agent's serialized record after the step.
    pub record: Option<(i64, Vec<u8>)>,
    /// Events in order.
    pub events: Vec<Draft>,
    /// Numbers of completed commands.
    pub done: Vec<i64>,
}

/// An event without a number.
#[derive(Clone, Debug)]
pub struct Draft {
    pub agent_id: i64,
    pub generation: i64,
    /// Time by the host's clock.
    pub at: i64,
    pub what: HostEvent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalPosition {
    /// The last command.
    pub commands: i64,
    /// The last event.
    pub events: i64,
    /// The last acknowledged event.
    pub acknowledged: i64,
    /// Bytes of unacknowledged events.
    pub waiting: u64,
    /// Limit of these bytes.
    pub window: u64,
    /// Number of pending commands.
    pub pending_commands: usize,
}

/// The journal is closed: the host is stopping, or the file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The journal is closed.")]
pub struct Closed;

/// The journal. Clones share it.
#[derive(Clone, Debug)]
pub struct Journal {
    tasks: mpsc::Sender<Task>,
    position: watch::Receiver<JournalPosition>,
    store: Arc<Store>,
    turn: Arc<Mutex<()>>,
}

impl Journal {
    /// Opens or creates the journal, and returns its contents.
    pub fn open(path: &Path) -> Result<(Self, Contents), StoreError> {
        let (store, contents) = Store::open(path)?;
        let store = Arc::new(store);
        let (tasks, waiting) = mpsc::channel(BATCH);
        // Limit of unacknowledged bytes until the control plane sets one.
        let (position, watched) = watch::channel(contents.position(1024 * 1024));
        writer::start(Arc::clone(&store), waiting, position)?;
        Ok((Self { tasks, position: watched, store, turn: Arc::default() }, contents))
    }

    /// The contents of a journal that no host uses.
    pub fn contents(path: &Path) -> Result<Contents, StoreError> {
        Store::open(path).map(|(_, contents)| contents)
    }

    /// Puts an unused journal aside, and starts one with only these records.
    pub fn begin_again(path: &Path, aside: &Path, records: Vec<(i64, Vec<u8>)>) -> Result<(), StoreError> {
        store::begin_again(path, aside, records)
    }

    /// Commits a step. On return it is on the disk.
    pub async fn commit(&self, change: Change) -> Result<(), Closed> {
        self.ask(|done| Task::Commit(change, done)).await
    }

    /// Stores received commands, and returns the new ones.
    pub async fn receive(&self, envelopes: Vec<CommandEnvelope>) -> Result<Vec<CommandEnvelope>, Closed> {
        self.ask(|done| Task::Receive(envelopes, done)).await
    }

    /// Drops events up to this number, and learns the limit of unacknowledged bytes.
    pub async fn acknowledge(&self, through: i64, window: Option<u64>) -> Result<(), Closed> {
        self.tasks.send(Task::Acknowledge { through, window }).await.map_err(|_| Closed)
    }

    /// Events after this number, oldest first: as many as fit, at least one.
    pub fn events_after(&self, seq: i64, most_bytes: usize) -> Result<Vec<Event>, StoreError> {
        self.store.events_after(seq, most_bytes)
    }

    /// The journal's position, which can be watched.
    pub fn position(&self) -> watch::Receiver<JournalPosition> {
        self.position.clone()
    }

    /// Waits until events may be added. The longest waiting caller is first.
    pub async fn wait_for_room(&self) -> Result<(), Closed> {
        let _turn = self.turn.lock().await;
        let mut position = self.position.clone();
        position.wait_for(|position| position.waiting < position.window).await.map_err(|_| Closed)?;
        Ok(())
    }

    async fn ask<T>(&self, task: impl FnOnce(oneshot::Sender<T>) -> Task) -> Result<T, Closed> {
        let (done, answer) = oneshot::channel();
        self.tasks.send(task(done)).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }
}
