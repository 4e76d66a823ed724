//! The writer thread: takes all pending tasks, commits them together, and answers.

use std::sync::Arc;

use muster_protocol::command::CommandEnvelope;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Change, JournalPosition, StoreError, store::Store};
use crate::bounds::{BATCH, RETRY};

/// A write task.
pub enum Task {
    /// Commits a step.
    Commit(Change, oneshot::Sender<()>),
    /// Stores received commands.
    Receive(Vec<CommandEnvelope>, oneshot::Sender<Vec<CommandEnvelope>>),
    /// The control plane has stored events.
    Acknowledge {
        /// The last of them.
        through: i64,
        /// The new limit of unacknowledged bytes.
        window: Option<u64>,
    },
}

/// Starts the thread. It ends when all senders are gone.
pub fn start(
    store: Arc<Store>,
    tasks: mpsc::Receiver<Task>,
    position: watch::Sender<JournalPosition>,
) -> Result<(), StoreError> {
    let named = std::thread::Builder::new().name("journal".to_owned());
    named.spawn(move || run(&store, tasks, &position)).map_err(StoreError::Thread)?;
    Ok(())
}

fn run(store: &Store, mut tasks: mpsc::Receiver<Task>, position: &watch::Sender<JournalPosition>) {
    let mut batch = Vec::new();
    while tasks.blocking_recv_many(&mut batch, BATCH) > 0 {
        let mut before = *position.borrow();
        let (now, answers) = loop {
            match write(store, &batch, before) {
                Ok(written) => break written,
                Err(error) => {
                    tracing::error!(%error, "the journal can't be written; trying again");
                    std::thread::sleep(RETRY);
                    // The failed write may still be there: its numbers stay, and its bytes are counted again.
                    match store.reopen().and_then(|()| store.waiting()) {
                        Ok(waiting) => before.waiting = waiting,
                        Err(error) => tracing::error!(%error, "the journal can't be opened again"),
                    }
                }
            }
        };
        position.send_replace(now);
        answer(&mut batch, answers);
    }
}

/// Writes the batch in one transaction. Returns the new position, and the new commands of each task.
pub(super) fn write(
    store: &Store,
    batch: &[Task],
    mut now: JournalPosition,
) -> redb::Result<(JournalPosition, Vec<Vec<CommandEnvelope>>), redb::Error> {
    let writing = store.write()?;
    let (mut fresh, mut is_lasting) = (Vec::new(), false);
    for task in batch {
        match task {
            Task::Commit(change, _) => {
                now.waiting += writing.change(change, &mut now.events)?;
                is_lasting = true;
            }
            Task::Receive(envelopes, _) => {
                fresh.push(writing.receive(envelopes, &mut now.commands)?);
                is_lasting = true;
            }
            Task::Acknowledge { through, window } => {
                let freed = writing.acknowledge(*through, &mut now.acknowledged)?;
                now.waiting = now.waiting.saturating_sub(freed);
                now.window = window.unwrap_or(now.window);
            }
        }
    }
    now.pending_commands = writing.pending_commands()?;
    writing.commit(is_lasting)?;
    Ok((now, fresh))
}

fn answer(batch: &mut Vec<Task>, fresh: Vec<Vec<CommandEnvelope>>) {
    let mut fresh = fresh.into_iter();
    for task in batch.drain(..) {
        // A caller that no longer waits reads the journal when it comes back.
        match task {
            Task::Commit(_, done) => _ = done.send(()),
            Task::Receive(_, done) => _ = done.send(fresh.next().unwrap_or_default()),
            Task::Acknowledge { .. } => {}
        }
    }
}
