//! `stop`: ends all agents of a folder without a control plane, for example before a machine is given away. The agents'
//! output stays in the folder, and the next host there reports it.

use std::{fs, path::Path, time::Duration};

use muster_shim::{
    record::{Exit, Record},
    wire::FromClient,
};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::{
    agent::Connection,
    bounds::{LOOK, PROCESS_WAIT},
    folder::{Folder, FolderError},
    programs::ProgramError,
    runtime::{Bounds, Choice, ChoiceError, EngineError, Runtime},
};

#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(
        "A host runs in this folder (process {0}). Stop it first: its agents stay up, and this command ends them."
    )]
    Running(String),
    #[error("{0} is not the folder of a host.")]
    NotAHost(String),
    #[error(transparent)]
    Runtime(#[from] ChoiceError),
    #[error("Nothing was stopped. {0}")]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Programs(#[from] ProgramError),
}

impl StopError {
    /// Explains why the folder can't be claimed.
    pub fn of_lock(error: FolderError) -> Self {
        match error {
            FolderError::InUse { pid, .. } => Self::Running(pid),
            error => Self::Folder(error),
        }
    }
}

/// An agent of the folder.
#[derive(Debug)]
pub struct StoppedAgent {
    pub agent_id: i64,
    pub generation: i64,
    /// Whether its shim is gone.
    pub is_gone: bool,
}

/// Ends all agents of the folder, with `grace` as the limit of each stage. Containers need their engine.
pub async fn stop(folder: &Folder, runtime: Choice, grace: Duration) -> Result<Vec<StoppedAgent>, StopError> {
    if !folder.root().join("agents").is_dir() {
        return Err(StopError::NotAHost(folder.root().display().to_string()));
    }
    let _lock = folder.lock().map_err(StopError::of_lock)?;
    let identity = folder.identity().map_err(StopError::Folder)?;
    let joined = folder.joined().map_err(StopError::Folder)?;
    let runtime = runtime.in_folder(folder, joined.and_then(|joined| joined.runtime).as_ref())?;
    let host = identity.map(|identity| identity.machine_id).unwrap_or_default();
    let runtime = runtime.build(&host, Bounds::default())?;
    end_all(folder, &runtime, grace).await
}

/// Ends all agents of a folder claimed by the caller.
pub async fn end_all(
    folder: &Folder,
    runtime: &Runtime,
    grace: Duration,
) -> Result<Vec<StoppedAgent>, StopError> {
    let launches = folder.agents().into_iter().flat_map(|agent_id| {
        folder.launches(agent_id).into_iter().map(move |generation| (agent_id, generation))
    });
    let up: Vec<_> =
        launches.filter(|(agent_id, generation)| folder.has_shim(*agent_id, *generation)).collect();
    if let Runtime::Engine(engine) = runtime
        && !up.is_empty()
    {
        engine.client().await?;
    }
    let mut stopped = Vec::new();
    for (agent_id, generation) in up {
        let mark = folder.stop_mark(agent_id, generation);
        let dir = folder.launch(agent_id, generation);
        if Exit::read(&dir).is_err() {
            // The next host reports who ended the agent.
            fs::write(&mark, "").map_err(|source| FolderError::Io { path: mark.clone(), source })?;
        }
        end(&dir, grace).await;
        runtime.clean(folder, agent_id, generation).await;
        let is_gone = wait_until_gone(folder, agent_id, generation, grace).await;
        if !is_gone {
            let _ = fs::remove_file(&mark);
        }
        stopped.push(StoppedAgent { agent_id, generation, is_gone });
    }
    Ok(stopped)
}

/// Waits until a launch's shim is gone, and returns whether it is. The lock is decisive: a process counts as ended once
/// its first thread has ended, while another thread may still hold the shim's files open.
async fn wait_until_gone(folder: &Folder, agent_id: i64, generation: i64, grace: Duration) -> bool {
    let until = Instant::now() + PROCESS_WAIT;
    while folder.has_shim(agent_id, generation) {
        if Instant::now() >= until {
            return false;
        }
        sleep(LOOK).await;
        end(&folder.launch(agent_id, generation), grace).await;
    }
    true
}

/// Ends one launch: closes the agent's stdin, asks it to exit, kills it; and then ends its shim.
async fn end(dir: &Path, grace: Duration) {
    if let Ok(mut shim) = Connection::open(dir, 1, muster_shim::args::LINE_BYTES).await {
        for step in [
            FromClient::Close,
            FromClient::Signal(Signal::TERM.as_raw()),
            FromClient::Signal(Signal::KILL.as_raw()),
        ] {
            shim.send_header(step);
            let until = Instant::now() + grace;
            while Exit::read(dir).is_err() && Instant::now() < until {
                // Its lines are in the spool; reading them keeps the connection from blocking.
                while shim.ready().is_some() {}
                sleep(LOOK).await;
            }
            if Exit::read(dir).is_ok() {
                break;
            }
        }
    }
    // The kernel kills an agent without its shim.
    let Ok(record) = Record::read(dir) else { return };
    record.end_shim();
    let until = Instant::now() + grace;
    while record.is_alive() && Instant::now() < until {
        sleep(LOOK).await;
    }
    record.sweep();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shim_is_gone_when_its_lock_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        fs::create_dir_all(folder.launch(7, 1)).unwrap();
        let lock = fs::File::create(folder.shim_lock(7, 1)).unwrap();
        lock.try_lock().unwrap();
        // No process of the launch counts as running, but one still holds files.
        let (stopped, ()) = tokio::join! {
            biased;
            stop(&folder, Choice::default(), Duration::ZERO),
            async { drop(lock) },
        };
        let stopped = stopped.unwrap();
        assert!(
            matches!(stopped[..], [StoppedAgent { agent_id: 7, generation: 1, is_gone: true }]),
            "{stopped:?}"
        );
        assert!(folder.stop_mark(7, 1).exists(), "the next host reports who has ended it");
    }
}
