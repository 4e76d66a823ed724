//! Containers through the Docker API, which Docker Engine and Podman serve on a socket of this machine.
//!
//! A launch has one container, identified by its name: creating it again after a crash finds the existing one. A
//! running agent doesn't depend on the engine: its shim has its own socket, and holds a lock while it lives. So an
//! engine may be restarted or killed, if it leaves its containers running.

use std::{
    mem,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use bollard::{
    container::LogOutput,
    errors::Error,
    exec::{CreateExecOptions, StartExecResults},
    models::{ContainerInspectResponse, ContainerStateStatusEnum as Status, ContainerSummary},
    query_parameters::{
        CreateContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    },
};
use futures::{Stream, StreamExt};
use muster_shim::{
    contain::{NOT_A_FILE, TOO_LARGE, given_to_bytes},
    folder::{self, ENVIRONMENT, RECORD, SOCKET},
};
use rustix::process::{getegid, geteuid};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep, timeout},
};

use super::{
    Bounds, EngineWait, Kind, PreparedLaunch, ShimLoss, ShimState,
    client::{Client, Connected, EngineError, status},
    image, pipe, spec,
};
use crate::{
    agent::home::{LARGEST_FILE, SendError},
    bounds::{LOOK, PROCESS_WAIT, RETRY, SOON, TEXT},
    folder::Folder,
};

/// Network modes that are not networks with a name in the engine.
const MODES: [&str; 7] = ["bridge", "default", "host", "none", "pasta", "private", "slirp4netns"];

/// The owner's choices.
#[derive(Clone, Debug)]
pub struct Settings {
    pub kind: Kind,
    pub socket: PathBuf,
    /// The host's id.
    pub host: String,
    /// The static shim.
    pub shim: PathBuf,
    /// Limits of agents.
    pub bounds: Bounds,
}

#[derive(Debug)]
pub struct Engine {
    pub(super) settings: Settings,
    pub(super) connected: OnceCell<Connected>,
    pub(super) is_away: AtomicBool,
    rootless: OnceCell<bool>,
}

impl Engine {
    /// An engine, not contacted yet.
    pub fn new(settings: Settings) -> Self {
        let (connected, is_away, rootless) = Default::default();
        Self { settings, connected, is_away, rootless }
    }

    pub fn kind(&self) -> Kind {
        self.settings.kind
    }

    /// Whether agents with network access share the machine's network, ports included.
    pub fn shares_network(&self) -> bool {
        self.settings.bounds.network == "host"
    }

    /// The configured network, if the engine answers and lacks it.
    pub async fn missing_network(&self) -> Option<&str> {
        let name = self.settings.bounds.network.as_str();
        if MODES.contains(&name) {
            return None;
        }
        let looked = timeout(SOON, async {
            let client = self.client().await.ok()?;
            client.inspect_network(name, None).await.err().as_ref().and_then(status)
        });
        (looked.await.ok()? == Some(404)).then_some(name)
    }

    /// Whether a launch already has a container.
    pub async fn has_container(&self, agent_id: i64, generation: i64) -> bool {
        matches!(self.inspect(agent_id, generation).await, Ok(Some(found)) if !is_over(&found))
    }

    /// Starts a launch, unless already started, and waits for its shim. Returns the used image. A stopped launch ends
    /// here as long as it has no more than its image.
    pub async fn start(
        &self,
        prepared: &PreparedLaunch<'_>,
        waiting: &EngineWait,
    ) -> Result<String, EngineError> {
        let until = Instant::now() + prepared.patience;
        let mut is_told = false;
        loop {
            let found = tokio::select! {
                biased;
                () = waiting.stopped() => return Err(EngineError::Stopped),
                found = self.image(prepared) => found,
            };
            let tried = match found {
                Ok(image) => self.try_start(prepared, image).await,
                Err(error) => Err(error),
            };
            self.log_availability(tried.as_ref().err());
            match tried {
                Err(error) if error.is_away() && Instant::now() + RETRY < until => {
                    if !mem::replace(&mut is_told, true) {
                        let _ = waiting.away.send(error.to_string());
                    }
                    let _ = timeout(RETRY, waiting.stopped()).await;
                }
                started => return started,
            }
        }
    }

    /// The launch's image, pulled if missing.
    async fn image(&self, prepared: &PreparedLaunch<'_>) -> Result<image::Image, EngineError> {
        let client = self.client().await?;
        let plan = prepared.plan;
        let image = image::find(&client, &plan.image, plan.digest.as_deref()).await?;
        if image.own.is_empty() && prepared.program.is_none() {
            let reason = "it names no program to run".to_owned();
            return Err(EngineError::Image { image: plan.image.clone(), reason });
        }
        Ok(image)
    }

    async fn try_start(
        &self,
        prepared: &PreparedLaunch<'_>,
        image: image::Image,
    ) -> Result<String, EngineError> {
        let client = self.client().await?;
        self.remove_others(prepared.agent_id, prepared.generation).await?;
        let pipe = prepared.dir.join(ENVIRONMENT);
        pipe::make(&pipe).map_err(|source| EngineError::Io {
            what: "The agent's pipe can't be made".to_owned(),
            source,
        })?;
        let name = self.name(prepared.agent_id, prepared.generation);
        match self.inspect(prepared.agent_id, prepared.generation).await? {
            // Its agent never ran: the host or the engine was killed before.
            Some(found) if is_over(&found) && !prepared.dir.join(RECORD).exists() => {
                self.remove(prepared.agent_id, prepared.generation).await?;
                Box::pin(self.create(&client, prepared, &name, &image)).await?;
            }
            Some(_) => {}
            None => Box::pin(self.create(&client, prepared, &name, &image)).await?,
        }
        match client.start_container(&name, None).await {
            Ok(()) => {}
            Err(error) if status(&error) == Some(304) => {}
            Err(error) => {
                let error = client.error("The agent's container can't be started", error);
                if !error.is_away() {
                    let _ = self.remove(prepared.agent_id, prepared.generation).await;
                }
                return Err(error);
            }
        }
        self.send_environment(prepared, &pipe).await?;
        Ok(image.used)
    }

    async fn create(
        &self,
        client: &Client<'_>,
        prepared: &PreparedLaunch<'_>,
        name: &str,
        image: &image::Image,
    ) -> Result<(), EngineError> {
        let users = if self.is_rootless().await? {
            // Its root is the host's own user.
            (0, 0)
        } else {
            (geteuid().as_raw(), getegid().as_raw())
        };
        let container = spec::container(&self.settings, prepared, users, &image.id, image.own.clone());
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let until = Instant::now() + PROCESS_WAIT;
        loop {
            match client.create_container(Some(options.clone()), container.clone()).await {
                Ok(_) => return Ok(()),
                // Requested by this host before it was killed. The engine reserves the name before the container
                // exists.
                Err(error) if status(&error) == Some(409) && Instant::now() < until => {
                    if self.inspect_by_name(name).await?.is_some() {
                        return Ok(());
                    }
                    sleep(RETRY / 4).await;
                }
                Err(error) => return Err(client.error("The agent's container can't be made", error)),
            }
        }
    }

    /// Sends environment and files to the shim, and waits for its answer. A shim that has them already answers.
    async fn send_environment(&self, prepared: &PreparedLaunch<'_>, pipe: &Path) -> Result<(), EngineError> {
        let io = |source| EngineError::Io { what: "The agent's pipe fails".to_owned(), source };
        let variables =
            prepared.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let files = prepared.files.iter().map(|(path, text)| (path.as_ref(), text.as_ref()));
        let mut bytes = Some(given_to_bytes(variables, files));
        let until = Instant::now() + PROCESS_WAIT;
        while !prepared.dir.join(SOCKET).exists() || !prepared.dir.join(RECORD).exists() {
            if bytes.is_some()
                && let Some(open) = pipe::open(pipe).map_err(io)?
                && let Some(bytes) = bytes.take()
            {
                // Its end may come in between, and is reported below.
                let _ = timeout(PROCESS_WAIT, pipe::write(open, bytes)).await;
            }
            self.check_shim(prepared, until).await?;
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Fails with the reason if a shim can't answer.
    async fn check_shim(&self, prepared: &PreparedLaunch<'_>, until: Instant) -> Result<(), EngineError> {
        if let Ok(Some(reason)) = folder::failed(&prepared.dir) {
            return Err(EngineError::NotUp(crate::acp::short(reason.trim(), 2000)));
        }
        let Some(found) = self.inspect(prepared.agent_id, prepared.generation).await? else {
            return Err(EngineError::NotUp("it was removed".to_owned()));
        };
        // An agent that exited at once has left its record.
        if is_over(&found) && !prepared.dir.join(RECORD).exists() {
            return Err(EngineError::NotUp(ended(found)));
        }
        if Instant::now() > until {
            return Err(EngineError::NotUp("its shim does not answer".to_owned()));
        }
        Ok(())
    }

    /// State of a launch's shim. The lock works without the engine.
    pub async fn find(&self, folder: &Folder, agent_id: i64, generation: i64) -> ShimState {
        if folder.has_shim(agent_id, generation) {
            return ShimState::Alive;
        }
        match self.inspect(agent_id, generation).await {
            Ok(Some(found)) if !is_over(&found) => ShimState::Alive,
            Ok(Some(found)) => {
                let out_of_memory = found.state.and_then(|state| state.oom_killed).unwrap_or_default();
                ShimState::Gone(if out_of_memory { ShimLoss::OutOfMemory } else { ShimLoss::Killed })
            }
            Ok(None) => ShimState::Gone(ShimLoss::Removed),
            Err(_) => ShimState::Gone(ShimLoss::Unknown),
        }
    }

    /// The id of the launch's container, for people.
    pub async fn id(&self, agent_id: i64, generation: i64) -> String {
        let found = timeout(SOON, self.inspect(agent_id, generation)).await.ok().and_then(Result::ok);
        let found = found.flatten().and_then(|found| found.id);
        let id = found.unwrap_or_else(|| self.name(agent_id, generation));
        format!("{}:{}", self.settings.kind.word(), id.get(..12).unwrap_or(&id))
    }

    /// Removes a launch's container, running or not.
    pub async fn remove(&self, agent_id: i64, generation: i64) -> Result<(), EngineError> {
        self.remove_by_name(&self.name(agent_id, generation)).await
    }

    /// Removes containers of launches that don't run, and home containers of previous hosts. Returns their number.
    pub async fn sweep(&self, keeps: impl Fn(i64, i64) -> bool) -> Result<usize, EngineError> {
        let mut count = self.remove_unless(keeps).await?;
        for container in self.containers().await? {
            let keeper_of = container.labels.and_then(|mut labels| labels.remove(spec::KEEPER_OF));
            // By id: this host may create one with the same name meanwhile.
            if let (Some(id), Some(process)) = (container.id, keeper_of)
                && process != *spec::PROCESS
            {
                self.remove_by_name(&id).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Reads a file with the agent's rights: links lead only to files that the agent can read.
    pub async fn read(&self, agent_id: i64, generation: i64, path: &Path) -> Result<Vec<u8>, SendError> {
        let reading = timeout(PROCESS_WAIT, self.read_slowly(agent_id, generation, path)).await;
        reading.unwrap_or_else(|_| Err(SendError::Io(std::io::ErrorKind::TimedOut.into())))
    }

    async fn read_slowly(&self, agent_id: i64, generation: i64, path: &Path) -> Result<Vec<u8>, SendError> {
        let other = |error: Error| SendError::Io(std::io::Error::other(error));
        let client = self.client().await.map_err(|error| SendError::Io(std::io::Error::other(error)))?;
        let user = spec::user(agent_id);
        let words = [spec::SHIM, "read", &path.display().to_string(), &LARGEST_FILE.to_string()];
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(words.map(str::to_owned).to_vec()),
            user: Some(format!("{user}:{user}")),
            working_dir: Some(spec::HOME.to_owned()),
            ..CreateExecOptions::default()
        };
        let made = client.create_exec(&self.name(agent_id, generation), options).await.map_err(other)?;
        let (bytes, says) = match client.start_exec(&made.id, None).await.map_err(other)? {
            StartExecResults::Attached { output, .. } => collected(output).await?,
            StartExecResults::Detached => (Vec::new(), Vec::new()),
        };
        let says = String::from_utf8_lossy(&says);
        match client.inspect_exec(&made.id).await.map_err(other)?.exit_code {
            Some(0) => Ok(bytes),
            _ if says.contains(NOT_A_FILE) => Err(SendError::NotAFile),
            _ if says.contains(TOO_LARGE) => Err(SendError::TooLarge),
            _ => Err(SendError::Io(std::io::Error::other(crate::acp::short(says.trim(), 200)))),
        }
    }

    /// Only one launch may use the volume of an agent's home.
    async fn remove_others(&self, agent_id: i64, generation: i64) -> Result<(), EngineError> {
        let keeps = |agent: i64, launch: i64| agent != agent_id || launch == generation;
        self.remove_unless(keeps).await.map(|_| ())
    }

    /// The containers of this host, running or not.
    async fn containers(&self) -> Result<Vec<ContainerSummary>, EngineError> {
        let label = format!("{}={}", spec::HOST, self.settings.host);
        let filters = std::collections::HashMap::from([("label".to_owned(), vec![label])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let client = self.client().await?;
        let found = retry_while_ending(|| client.list_containers(Some(options.clone()))).await;
        found.map_err(|error| client.error("The containers can't be listed", error))
    }

    async fn remove_unless(&self, keeps: impl Fn(i64, i64) -> bool) -> Result<usize, EngineError> {
        let mut count = 0;
        for container in self.containers().await? {
            let labels = container.labels.unwrap_or_default();
            let number = |label: &str| labels.get(label).and_then(|value| value.parse::<i64>().ok());
            let (Some(agent_id), Some(generation)) = (number(spec::AGENT), number(spec::GENERATION)) else {
                continue;
            };
            if !keeps(agent_id, generation) {
                self.remove(agent_id, generation).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    pub(super) async fn remove_by_name(&self, name: &str) -> Result<(), EngineError> {
        // With anonymous volumes of its image. The agent's own volume has a name, and stays.
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let client = self.client().await?;
        match retry_while_ending(|| client.remove_container(name, Some(options.clone()))).await {
            Ok(()) => Ok(()),
            // Gone, or being removed.
            Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(client.error("A container can't be removed", error)),
        }
    }

    async fn inspect(
        &self,
        agent_id: i64,
        generation: i64,
    ) -> Result<Option<ContainerInspectResponse>, EngineError> {
        self.inspect_by_name(&self.name(agent_id, generation)).await
    }

    pub(super) async fn inspect_by_name(
        &self,
        name: &str,
    ) -> Result<Option<ContainerInspectResponse>, EngineError> {
        let client = self.client().await?;
        match retry_while_ending(|| client.inspect_container(name, None)).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(client.error("The agent's container can't be looked at", error)),
        }
    }

    /// Whether root in a container is the engine's own user instead of the machine's root.
    async fn is_rootless(&self) -> Result<bool, EngineError> {
        let asked = self.rootless.get_or_try_init(async || {
            let client = self.client().await?;
            let info = client.info().await;
            let info = info.map_err(|error| client.error("The engine can't be asked about itself", error))?;
            let options = info.security_options.unwrap_or_default();
            Ok(options.iter().any(|option| option.contains("rootless")))
        });
        asked.await.copied()
    }

    fn name(&self, agent_id: i64, generation: i64) -> String {
        spec::name(&self.settings.host, agent_id, generation)
    }
}

/// Retries while a container is ending: Podman then refuses to remove it, and returns errors or a state of its own.
async fn retry_while_ending<T, F: Future<Output = Result<T, Error>>>(
    ask: impl Fn() -> F,
) -> Result<T, Error> {
    for _ in 1..20 {
        match Box::pin(ask()).await {
            Err(error) if status(&error) == Some(500) || matches!(error, Error::JsonDataError { .. }) => {
                tokio::time::sleep(RETRY / 4).await;
            }
            answer => return answer,
        }
    }
    Box::pin(ask()).await
}

/// Why a container has ended.
pub(super) fn ended(found: ContainerInspectResponse) -> String {
    let state = found.state.unwrap_or_default();
    let code = state.exit_code.unwrap_or_default();
    let error = state.error.filter(|error| !error.is_empty());
    error.unwrap_or_else(|| format!("it ended with code {code}"))
}

pub(super) fn is_over(found: &ContainerInspectResponse) -> bool {
    let status = found.state.as_ref().and_then(|state| state.status);
    matches!(status, Some(Status::EXITED | Status::DEAD | Status::REMOVING))
}

/// Output and errors of a program in a container. The agent can interfere with programs of its user, so limits apply
/// here too.
async fn collected(
    mut output: impl Stream<Item = Result<LogOutput, Error>> + Unpin,
) -> Result<(Vec<u8>, Vec<u8>), SendError> {
    let (mut bytes, mut says) = (Vec::new(), Vec::new());
    while let Some(piece) = output.next().await {
        match piece.map_err(|error| SendError::Io(std::io::Error::other(error)))? {
            LogOutput::StdErr { message } => {
                let room = TEXT.saturating_sub(says.len());
                says.extend_from_slice(&message[..message.len().min(room)]);
            }
            piece => bytes.extend_from_slice(&piece.into_bytes()),
        }
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(SendError::TooLarge);
        }
    }
    Ok((bytes, says))
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn endless_container_output_is_too_large() {
        let piece = |is_error| {
            let message = vec![b'x'; 64 << 10].into();
            Ok(if is_error { LogOutput::StdErr { message } } else { LogOutput::StdOut { message } })
        };
        let endless = collected(stream::repeat_with(|| piece(false)));
        assert!(matches!(endless.await, Err(SendError::TooLarge)));
        let (bytes, says) = collected(stream::iter([piece(false), piece(true), piece(true)])).await.unwrap();
        assert_eq!((bytes.len(), says.len()), (64 << 10, TEXT));
    }
}
