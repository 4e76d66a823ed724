//! Homes in containers are volumes of the engine. Only the engine's root can read and assign their files, and the host
//! may be any user of the engine. So a shim archives them (`muster_shim::home_archive`): as root of a container with
//! the volume's folder, three capabilities, no network and an empty image. It connects to the host's socket, which no
//! one else can reach.
//!
//! The engine's own archives are unsuitable: Podman's lose file owners and entries named `dev`, `proc` or `sys`; and
//! Docker's end early if a file shrinks meanwhile.

use std::{
    fs, io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use bollard::query_parameters::CreateContainerOptionsBuilder;
use muster_shim::{folder::SOCKET, home_archive::Task};
use tokio::{
    net::UnixListener,
    time::{Instant, timeout},
};

use super::{
    client::{EngineError, status},
    docker::{Engine, ended, is_over},
    reference, spec,
};
use crate::{
    backup::BackupError,
    bounds::{PROCESS_WAIT, SOON},
    folder::{Folder, create_private},
};

/// Silence of a home container: a frozen one would block other homes forever. Removing a large home, or waiting for the
/// disk, takes minutes.
const SILENCE: Duration = Duration::from_hours(1);
/// The error if the shim doesn't connect.
const NOT_UP: &str = "The container that copies the home could not start";

impl Engine {
    /// Starts a shim for a task on an agent's home, and returns the connection to it. [`Self::release_home`] removes
    /// the container.
    pub async fn start_home_shim(
        &self,
        folder: &Folder,
        agent_id: i64,
        task: Task,
    ) -> Result<UnixStream, BackupError> {
        let volume = self.volume(folder, agent_id).await?;
        let dir = folder.home_task_folder(agent_id, task.word());
        let listener = listen(&dir).map_err(|source| BackupError::Io {
            what: "The folder of the container that copies the home can't be made",
            source,
        })?;
        let begun = self.begin(agent_id, task, &dir, &volume, &listener).await;
        if begun.is_err() {
            self.release_home(folder, agent_id, task).await;
        }
        begun.map_err(|error| BackupError::Unreachable(error.to_string()))
    }

    /// Removes the container of [`Self::start_home_shim`].
    pub async fn release_home(&self, folder: &Folder, agent_id: i64, task: Task) {
        if let Err(error) = self.remove_by_name(&spec::keeper_name(&self.settings.host, agent_id, task)).await
        {
            tracing::warn!(agent = agent_id, %error, "a container can't be removed");
        }
        let _ = fs::remove_dir_all(folder.home_task_folder(agent_id, task.word()));
    }

    /// The folder of an agent's volume, on the engine's machine.
    async fn volume(&self, folder: &Folder, agent_id: i64) -> Result<PathBuf, BackupError> {
        let created_at = folder.created_at(agent_id)?.ok_or(BackupError::NoHome)?;
        let client = self.client().await.map_err(|error| BackupError::Unreachable(error.to_string()))?;
        match client.inspect_volume(&spec::volume(&self.settings.host, agent_id, created_at)).await {
            Ok(volume) => Ok(PathBuf::from(volume.mountpoint)),
            Err(error) if status(&error) == Some(404) => Err(BackupError::NoHome),
            Err(error) => {
                let error = client.error("The agent's volume can't be looked at", error);
                Err(BackupError::Unreachable(error.to_string()))
            }
        }
    }

    async fn begin(
        &self,
        agent_id: i64,
        task: Task,
        dir: &Path,
        volume: &Path,
        listener: &UnixListener,
    ) -> Result<UnixStream, EngineError> {
        let name = spec::keeper_name(&self.settings.host, agent_id, task);
        let client = self.client().await?;
        let image = reference::empty(&client).await?;
        // A killed host may have left one.
        self.remove_by_name(&name).await?;
        let container = spec::home_container(&self.settings, agent_id, task, &image, dir, volume);
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let made = client.create_container(Some(options), container).await;
        made.map_err(|error| client.error("The container that copies the home can't be made", error))?;
        let started = client.start_container(&name, None).await;
        started.map_err(|error| client.error(NOT_UP, error))?;
        self.connects(&name, listener).await
    }

    /// Waits until the shim connects or its container ends.
    async fn connects(&self, name: &str, listener: &UnixListener) -> Result<UnixStream, EngineError> {
        let until = Instant::now() + PROCESS_WAIT;
        loop {
            // Checked first: an ended container has connected before, or never will.
            let found = self.inspect_by_name(name).await?;
            if let Ok(accepted) = timeout(SOON, listener.accept()).await {
                let stream = accepted.and_then(|(stream, _)| {
                    let stream = stream.into_std()?;
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(Some(SILENCE))?;
                    stream.set_write_timeout(Some(SILENCE))?;
                    Ok(stream)
                });
                return stream.map_err(|source| EngineError::Io { what: NOT_UP.to_owned(), source });
            }
            let reason = match found {
                Some(found) if is_over(&found) => ended(found),
                Some(_) if Instant::now() < until => continue,
                Some(_) => "its shim does not connect".to_owned(),
                None => "it was removed".to_owned(),
            };
            return Err(EngineError::Refused { what: NOT_UP, reason });
        }
    }
}

/// Listens in a folder of its own.
fn listen(dir: &Path) -> io::Result<UnixListener> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => create_private(dir).map_err(io::Error::other)?,
    }
    UnixListener::bind(dir.join(SOCKET))
}
