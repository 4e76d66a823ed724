//! Backups of the agent's home: created, restored and removed one at a time, in parallel to the agent's other work. A
//! command stays in the journal until the step that reports its result, so a killed host starts it again. Homes from
//! before restores are removed once the agent runs with its new home; the record tracks them until then.

use std::{collections::VecDeque, sync::Arc};

use futures::{FutureExt, future::BoxFuture, stream::FuturesUnordered};
use muster_protocol::{Command, HostEvent, command::CommandEnvelope};
use muster_shim::home_archive::Task;
use tokio::sync::oneshot;

use super::{Agent, Phase};
use crate::{
    backup::{self, BackupError, Home},
    folder::Folder,
    journal::Closed,
    shared::Shared,
};

/// A task on the home.
#[derive(Debug)]
pub(super) enum Chore {
    /// A backup command.
    Command(CommandEnvelope),
    /// Removes the homes from before restores.
    Drop,
}

/// Result of a chore.
pub(super) struct ChoreOutcome {
    /// The completed command, if any.
    envelope: Option<CommandEnvelope>,
    /// The event to report.
    event: Option<HostEvent>,
    /// Whether the homes from before restores are removed.
    are_gone: bool,
}

/// Tasks on the home.
#[derive(Default)]
pub(super) struct Chores {
    waiting: VecDeque<Chore>,
    /// The current one.
    pub(super) running: FuturesUnordered<BoxFuture<'static, ChoreOutcome>>,
    is_restoring: bool,
}

impl Agent {
    /// Queues a task. It isn't bound to a launch.
    pub(super) fn queue_chore(&mut self, chore: Chore) {
        self.chores.waiting.push_back(chore);
        self.start_next_chore();
    }

    fn start_next_chore(&mut self) {
        if !self.chores.running.is_empty() {
            return;
        }
        let Some(chore) = self.chores.waiting.pop_front() else { return };
        self.chores.is_restoring = chore.is_restore();
        let shared = Arc::clone(&self.shared);
        self.chores.running.push(match chore {
            Chore::Command(envelope) => {
                carry_out(shared, envelope, self.record.phase != Phase::Ended).boxed()
            }
            Chore::Drop => drop_old(shared, self.id).boxed(),
        });
    }

    /// Handles a result.
    pub(super) async fn finish_chore(&mut self, outcome: ChoreOutcome) -> Result<(), Closed> {
        self.chores.is_restoring = false;
        // A host killed before this commit repeats the removal, without effect.
        self.record.has_old_home &= !outcome.are_gone;
        if let Some(envelope) = outcome.envelope {
            self.changes.done.push(envelope.seq);
            if let Some(event) = outcome.event {
                self.record.has_old_home |= matches!(event, HostEvent::Restored { error: None, .. });
                self.changes.others.push((envelope.generation, event));
            }
        }
        self.start_next_chore();
        if self.record.phase == Phase::Ended
            && !self.waits_for_home()
            && let Some(envelope) = self.commands.next_launch.take()
        {
            return self.begin_launch(&envelope).await;
        }
        Ok(())
    }

    /// Removes homes from before restores, if any: the agent runs with its new home.
    pub(super) fn drop_old_homes(&mut self) {
        if self.record.has_old_home {
            self.queue_chore(Chore::Drop);
        }
    }

    /// Whether a launch must wait for a restore of its home.
    pub(super) fn waits_for_home(&self) -> bool {
        self.chores.is_restoring || self.chores.waiting.iter().any(Chore::is_restore)
    }
}

impl Chore {
    fn is_restore(&self) -> bool {
        matches!(self, Self::Command(CommandEnvelope { command: Command::Restore { .. }, .. }))
    }
}

async fn drop_old(shared: Arc<Shared>, agent_id: i64) -> ChoreOutcome {
    // Never refused: the semaphore is never closed.
    let _permit = shared.backup_slots.acquire().await;
    let dropped = with_home(&shared, agent_id, Task::Drop, |_, home| home.drop_old()).await;
    if let Err(error) = &dropped {
        tracing::warn!(agent = agent_id, %error, "the home from before a restore can't be removed");
    }
    ChoreOutcome { envelope: None, event: None, are_gone: dropped.is_ok() }
}

async fn carry_out(shared: Arc<Shared>, envelope: CommandEnvelope, is_up: bool) -> ChoreOutcome {
    let _permit = shared.backup_slots.acquire().await;
    let agent_id = envelope.agent_id;
    let event = match envelope.command.clone() {
        Command::Backup { backup_id } => {
            let done = back_up(&shared, agent_id, backup_id).await;
            let error = done.as_ref().err().map(|error| log_failure(agent_id, "backed up", error));
            let (bytes, sha256) = done.map(|done| (done.bytes.cast_signed(), done.sha256)).ok().unzip();
            Some(HostEvent::BackedUp { backup_id, bytes, sha256, error })
        }
        Command::Restore { backup_id, .. } if is_up => {
            let error = Some(BackupError::Running.to_string());
            Some(HostEvent::Restored { backup_id, error })
        }
        Command::Restore { backup_id, sha256 } => {
            let done = restore(&shared, agent_id, backup_id, envelope.id, sha256).await;
            let error = done.err().map(|error| log_failure(agent_id, "restored", &error));
            Some(HostEvent::Restored { backup_id, error })
        }
        Command::Forget { backup_id } => {
            if let Err(error) = backup::forget(&shared.folder, agent_id, backup_id) {
                tracing::error!(agent = agent_id, backup_id, %error, "a backup can't be removed");
                // No one else knows about the file. The journal keeps the command for the next host.
                return ChoreOutcome { envelope: None, event: None, are_gone: false };
            }
            None
        }
        _ => None,
    };
    ChoreOutcome { envelope: Some(envelope), event, are_gone: false }
}

/// Logs an error, and returns its text for people.
fn log_failure(agent: i64, what: &str, error: &BackupError) -> String {
    tracing::error!(agent, %error, "a home is not {what}");
    error.to_string()
}

async fn back_up(
    shared: &Shared,
    agent_id: i64,
    backup_id: i64,
) -> Result<backup::CompleteBackup, BackupError> {
    let reserve = shared.options.reserve;
    let work = move |folder: Folder, home| backup::back_up(&folder, home, agent_id, backup_id, reserve);
    with_home(shared, agent_id, Task::Pack, work).await
}

async fn restore(
    shared: &Shared,
    agent_id: i64,
    backup_id: i64,
    command_id: i64,
    sha256: String,
) -> Result<(), BackupError> {
    let reserve = shared.options.reserve;
    let work = move |folder: Folder, home| {
        backup::restore(&folder, home, agent_id, backup_id, command_id, &sha256, reserve)
    };
    with_home(shared, agent_id, Task::Restore { command_id, reserve }, work).await
}

/// Runs a task on an agent's home.
async fn with_home<T: Send + 'static>(
    shared: &Shared,
    agent_id: i64,
    task: Task,
    work: impl FnOnce(Folder, Home) -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let folder = shared.folder.clone();
    let home = shared.runtime.home(&folder, agent_id, task).await?;
    let done = on_thread(move || work(folder, home)).await;
    shared.runtime.release_home(&shared.folder, agent_id, task).await;
    done
}

/// Runs slow work on a thread. The host's end doesn't wait for it: the work can be interrupted anywhere.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let (done, result) = oneshot::channel();
    let thread = std::thread::Builder::new().name("backup".to_owned());
    let begun = thread.spawn(move || _ = done.send(work()));
    begun.map_err(|source| BackupError::Io { what: "A thread can't be started", source })?;
    result.await.unwrap_or(Err(BackupError::Failed))
}
