//! `stop`: ends every agent of a folder without a control plane, as before a machine is given away. What the agents have said
//! stays in the folder, and a host that runs there again reports it.

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
    runtime::{Bounds, Choice, EngineError, OtherRuntime, Runtime},
};

/// Why nothing was stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A host runs there.
    #[error(
        "A host runs in this folder (process {0}). Stop it first: its agents stay up, and this command ends them."
    )]
    Running(String),
    /// The folder isn't a host's.
    #[error("{0} is not the folder of a host.")]
    NotAHost(String),
    /// The folder has another runtime.
    #[error(transparent)]
    Runtime(#[from] OtherRuntime),
    /// The engine doesn't answer.
    #[error("Nothing was stopped. {0}")]
    Engine(#[from] EngineError),
    /// A program is missing.
    #[error(transparent)]
    Programs(#[from] ProgramError),
}

impl StopError {
    /// Why the folder can't be had.
    pub fn of_lock(error: FolderError) -> Self {
        match error {
            FolderError::InUse { pid, .. } => Self::Running(pid),
            error => Self::Folder(error),
        }
    }
}

/// An agent that ran in the folder.
#[derive(Debug)]
pub struct Stopped {
    /// The agent.
    pub agent_id: i64,
    /// Its launch.
    pub generation: i64,
    /// Whether it is gone.
    pub is_gone: bool,
}

/// Ends whatever runs in the folder. Each step takes as long as `grace` at most. Containers need their engine for it.
pub async fn stop(folder: &Folder, runtime: Choice, grace: Duration) -> Result<Vec<Stopped>, StopError> {
    if !folder.root().join("agents").is_dir() {
        return Err(StopError::NotAHost(folder.root().display().to_string()));
    }
    let _lock = folder.lock().map_err(StopError::of_lock)?;
    let identity = folder.identity().map_err(StopError::Folder)?;
    let joined = folder.joined().map_err(StopError::Folder)?;
    let runtime = runtime.in_folder(folder, joined.and_then(|joined| joined.runtime).as_ref())?;
    let host = identity.map(|identity| identity.machine_id).unwrap_or_default();
    let runtime = runtime.made(&host, Bounds::default())?;
    end_all(folder, &runtime, grace).await
}

/// The same, of a folder that the caller has claimed.
pub async fn end_all(folder: &Folder, runtime: &Runtime, grace: Duration) -> Result<Vec<Stopped>, StopError> {
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
            // The next host reports who has ended it.
            fs::write(&mark, "").map_err(|source| FolderError::Io { path: mark.clone(), source })?;
        }
        end(&dir, grace).await;
        runtime.clean(folder, agent_id, generation).await;
        let is_gone = gone(folder, agent_id, generation, grace).await;
        if !is_gone {
            let _ = fs::remove_file(&mark);
        }
        stopped.push(Stopped { agent_id, generation, is_gone });
    }
    Ok(stopped)
}

/// Waits until a launch's shim is gone, and says whether it is. Its lock tells: a process counts as ended when its first thread
/// has, while another one may still hold what the shim has open.
async fn gone(folder: &Folder, agent_id: i64, generation: i64, grace: Duration) -> bool {
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

/// Ends one launch: closes the agent's stdin, then asks it to end, then kills it; and then its shim, which nobody needs.
async fn end(dir: &Path, grace: Duration) {
    if let Ok(mut shim) = Connection::open(dir, 1, muster_shim::args::LINE_BYTES).await {
        for step in [
            FromClient::Close,
            FromClient::Signal(Signal::TERM.as_raw()),
            FromClient::Signal(Signal::KILL.as_raw()),
        ] {
            shim.say(step);
            let until = Instant::now() + grace;
            while Exit::read(dir).is_err() && Instant::now() < until {
                // Its lines are in the spool; here they are only kept from filling the connection.
                while shim.ready().is_some() {}
                sleep(LOOK).await;
            }
            if Exit::read(dir).is_ok() {
                break;
            }
        }
    }
    // Without its shim an agent is killed by the kernel.
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
    async fn a_shim_is_gone_when_nothing_holds_its_lock_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path()).unwrap();
        fs::create_dir_all(folder.launch(7, 1)).unwrap();
        let lock = fs::File::create(folder.shim_lock(7, 1)).unwrap();
        lock.try_lock().unwrap();
        // As when no process of the launch counts as running, and one has not let go of everything.
        let (stopped, ()) = tokio::join! {
            biased;
            stop(&folder, Choice::default(), Duration::ZERO),
            async { drop(lock) },
        };
        let stopped = stopped.unwrap();
        assert!(
            matches!(stopped[..], [Stopped { agent_id: 7, generation: 1, is_gone: true }]),
            "{stopped:?}"
        );
        assert!(folder.stop_mark(7, 1).exists(), "the next host reports who has ended it");
    }
}
