//! Backups of the agent's home: made, restored and removed one after the other, beside everything else that the agent does.
//! A command stays in the journal until its end is reported in the same step, so a host that is killed begins it again. The
//! homes from before restores are removed in their turn, when the agent begins with its new one; the record knows of them
//! until they are gone.

use std::{collections::VecDeque, sync::Arc};

use futures::{FutureExt, future::BoxFuture, stream::FuturesUnordered};
use muster_protocol::{Command, Happening, command::Order};
use muster_shim::keep::Task;
use tokio::sync::oneshot;

use super::{Agent, Phase};
use crate::{
    backup::{self, BackupError, Home},
    folder::Folder,
    journal::Closed,
    shared::Shared,
};

/// Something to do with the home.
#[derive(Debug)]
pub(super) enum Chore {
    /// A command about backups.
    Order(Order),
    /// The homes from before restores are removed.
    Drop,
}

/// What was done.
pub(super) struct Kept {
    /// The command, if it was one, and is carried out.
    order: Option<Order>,
    /// What is reported.
    happening: Option<Happening>,
    /// Whether the homes from before restores are gone.
    are_gone: bool,
}

/// What is done with the home.
#[derive(Default)]
pub(super) struct Chores {
    waiting: VecDeque<Chore>,
    /// The one that is carried out.
    pub(super) running: FuturesUnordered<BoxFuture<'static, Kept>>,
    is_restoring: bool,
}

impl Agent {
    /// Takes something to do with the home. It isn't about a launch.
    pub(super) fn keep(&mut self, chore: Chore) {
        self.chores.waiting.push_back(chore);
        self.keep_next();
    }

    fn keep_next(&mut self) {
        if !self.chores.running.is_empty() {
            return;
        }
        let Some(chore) = self.chores.waiting.pop_front() else { return };
        self.chores.is_restoring = chore.is_restore();
        let shared = Arc::clone(&self.shared);
        self.chores.running.push(match chore {
            Chore::Order(order) => carry_out(shared, order, self.record.phase != Phase::Ended).boxed(),
            Chore::Drop => drop_old(shared, self.id).boxed(),
        });
    }

    /// Something is done.
    pub(super) async fn kept(&mut self, kept: Kept) -> Result<(), Closed> {
        self.chores.is_restoring = false;
        // Whoever is killed before this is in the journal removes once more what is not there.
        self.record.has_old_home &= !kept.are_gone;
        if let Some(order) = kept.order {
            self.changes.done.push(order.seq);
            if let Some(happening) = kept.happening {
                self.record.has_old_home |= matches!(happening, Happening::Restored { error: None, .. });
                self.changes.others.push((order.generation, happening));
            }
        }
        self.keep_next();
        if self.record.phase == Phase::Ended
            && !self.waits_for_home()
            && let Some(order) = self.orders.next_launch.take()
        {
            return self.launch(&order).await;
        }
        Ok(())
    }

    /// Removes the homes from before restores, if there are any: the agent begins with its new one.
    pub(super) fn drop_old_homes(&mut self) {
        if self.record.has_old_home {
            self.keep(Chore::Drop);
        }
    }

    /// Whether a launch has to wait: what the agent finds would be changed.
    pub(super) fn waits_for_home(&self) -> bool {
        self.chores.is_restoring || self.chores.waiting.iter().any(Chore::is_restore)
    }
}

impl Chore {
    fn is_restore(&self) -> bool {
        matches!(self, Self::Order(Order { command: Command::Restore { .. }, .. }))
    }
}

async fn drop_old(shared: Arc<Shared>, agent_id: i64) -> Kept {
    // The permit is never refused: nobody closes the semaphore.
    let _permit = shared.keepers.acquire().await;
    let dropped = with_home(&shared, agent_id, Task::Drop, |_, home| home.drop_old()).await;
    if let Err(error) = &dropped {
        tracing::warn!(agent = agent_id, %error, "the home from before a restore can't be removed");
    }
    Kept { order: None, happening: None, are_gone: dropped.is_ok() }
}

async fn carry_out(shared: Arc<Shared>, order: Order, is_up: bool) -> Kept {
    let _permit = shared.keepers.acquire().await;
    let agent_id = order.agent_id;
    let happening = match order.command.clone() {
        Command::Backup { backup_id } => {
            let done = back_up(&shared, agent_id, backup_id).await;
            let error = done.as_ref().err().map(|error| told(agent_id, "backed up", error));
            let (bytes, sha256) = done.map(|done| (done.bytes.cast_signed(), done.sha256)).ok().unzip();
            Some(Happening::BackedUp { backup_id, bytes, sha256, error })
        }
        Command::Restore { backup_id, .. } if is_up => {
            let error = Some(BackupError::Running.to_string());
            Some(Happening::Restored { backup_id, error })
        }
        Command::Restore { backup_id, sha256 } => {
            let done = restore(&shared, agent_id, backup_id, order.id, sha256).await;
            let error = done.err().map(|error| told(agent_id, "restored", &error));
            Some(Happening::Restored { backup_id, error })
        }
        Command::Forget { backup_id } => {
            if let Err(error) = backup::forget(&shared.folder, agent_id, backup_id) {
                tracing::error!(agent = agent_id, backup_id, %error, "a backup can't be removed");
                // Nobody else knows of the file any more. The journal keeps the command for the host that is started next.
                return Kept { order: None, happening: None, are_gone: false };
            }
            None
        }
        _ => None,
    };
    Kept { order: Some(order), happening, are_gone: false }
}

/// What people read, which is logged too.
fn told(agent: i64, what: &str, error: &BackupError) -> String {
    tracing::error!(agent, %error, "a home is not {what}");
    error.to_string()
}

async fn back_up(shared: &Shared, agent_id: i64, backup_id: i64) -> Result<backup::Written, BackupError> {
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

/// Does something with an agent's home.
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

/// Does something that takes long. Nobody waits for such a thread when the host ends: what it does can be cut off anywhere.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let (done, result) = oneshot::channel();
    let thread = std::thread::Builder::new().name("backup".to_owned());
    let begun = thread.spawn(move || _ = done.send(work()));
    begun.map_err(|source| BackupError::Io { what: "A thread can't be started", source })?;
    result.await.unwrap_or(Err(BackupError::Failed))
}
