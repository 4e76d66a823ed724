//! The engine's socket: connecting to it, and identifying the engine. Errors name the socket and give advice.

use std::{error::Error as _, io, ops::Deref, path::PathBuf, sync::atomic::Ordering};

use bollard::{API_DEFAULT_VERSION, Docker, errors::Error, models::SystemVersion};
use muster_protocol::event::EndReason;
use tokio::time::timeout;

use super::{Kind, Settings, docker::Engine};
use crate::bounds::SOON;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine is unreachable.
    #[error("{engine} doesn't answer on {socket}: {why}.")]
    Away {
        engine: &'static str,
        socket: PathBuf,
        /// Cause and advice.
        why: String,
    },
    /// Another engine answers.
    #[error(
        "{found} answers on {socket}, and not {engine}. Choose `--runtime {word}`, or give the socket of {engine} \
         with `--engine`."
    )]
    Other {
        /// The engine that answers.
        found: &'static str,
        /// The option that chooses it.
        word: &'static str,
        /// The chosen engine.
        engine: &'static str,
        socket: PathBuf,
    },
    /// The image is missing.
    #[error("The image {image} can't be used: {reason}.")]
    Image {
        /// The image, with its digest if pinned.
        image: String,
        reason: String,
    },
    /// The engine rejected the request.
    #[error("{what}: {reason}")]
    Refused {
        /// The attempted action.
        what: &'static str,
        reason: String,
    },
    /// The shim has ended, or doesn't answer.
    #[error("The agent's container could not start: {0}")]
    NotUp(String),
    /// The launch was stopped.
    #[error("The launch was stopped before it had a container.")]
    Stopped,
    /// A file of the host failed.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action.
        what: String,
        source: io::Error,
    },
}

impl EngineError {
    /// The reported reason.
    pub fn reason(&self) -> EndReason {
        match self {
            Self::Image { .. } => EndReason::ImageNotFound,
            Self::Stopped => EndReason::Stopped,
            _ => EndReason::SpawnFailed,
        }
    }

    pub(super) fn is_away(&self) -> bool {
        matches!(self, Self::Away { .. })
    }
}

/// The status of an engine's answer.
pub(super) fn status(error: &Error) -> Option<u16> {
    if let Error::DockerResponseServerError { status_code, .. } = error { Some(*status_code) } else { None }
}

/// An engine that has answered.
#[derive(Debug)]
pub(super) struct Connected {
    docker: Docker,
    version: String,
}

/// A reachable engine, and its settings for errors.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    docker: &'a Docker,
    settings: &'a Settings,
}

impl Deref for Client<'_> {
    type Target = Docker;

    fn deref(&self) -> &Docker {
        self.docker
    }
}

impl Client<'_> {
    pub(super) fn error(&self, what: &'static str, error: Error) -> EngineError {
        self.settings.error(what, error)
    }
}

impl Engine {
    /// The engine, with the negotiated API version.
    pub async fn client(&self) -> Result<Client<'_>, EngineError> {
        let settings = &self.settings;
        let connected = self.connected.get_or_try_init(|| connect(settings)).await?;
        Ok(Client { docker: &connected.docker, settings })
    }

    /// The engine's version, if it answers soon.
    pub async fn version(&self) -> Option<String> {
        let asking = self.connected.get_or_try_init(|| connect(&self.settings));
        let connected = timeout(SOON, asking).await.ok()?.ok()?;
        Some(connected.version.clone()).filter(|version| !version.is_empty())
    }

    /// Logs once that the engine is unreachable, and once that it is back.
    pub(super) fn log_availability(&self, error: Option<&EngineError>) {
        let error = error.filter(|error| error.is_away());
        match (self.is_away.swap(error.is_some(), Ordering::Relaxed), error) {
            (false, Some(error)) => tracing::warn!(%error, "agents that are started wait for their engine"),
            (true, None) => tracing::info!(engine = self.settings.kind.name(), "the engine is back"),
            _ => {}
        }
    }
}

async fn connect(settings: &Settings) -> Result<Connected, EngineError> {
    let socket = settings.socket.display().to_string();
    let asked = async {
        // An answer may take 60 seconds.
        let docker = Docker::connect_with_unix(&socket, 60, API_DEFAULT_VERSION)?.negotiate_version().await?;
        let version = docker.version().await?;
        Ok((docker, version))
    };
    let failed = |error| settings.error("The engine can't be asked about itself", error);
    let (docker, version) = asked.await.map_err(failed)?;
    match kind(&version) {
        Some(found) if found != settings.kind => Err(EngineError::Other {
            found: found.name(),
            word: found.word(),
            engine: settings.kind.name(),
            socket: settings.socket.clone(),
        }),
        _ => Ok(Connected { docker, version: version.version.unwrap_or_default() }),
    }
}

/// The engine's kind, if it reveals it.
fn kind(version: &SystemVersion) -> Option<Kind> {
    let names = || version.components.iter().flatten().map(|component| component.name.as_str());
    if names().any(|name| name == "Podman Engine") {
        return Some(Kind::Podman);
    }
    names().any(|name| name == "Engine").then_some(Kind::Docker)
}

impl Settings {
    fn error(&self, what: &'static str, error: Error) -> EngineError {
        match error {
            Error::DockerResponseServerError { message, .. } => {
                EngineError::Refused { what, reason: message }
            }
            Error::DockerStreamError { error } => EngineError::Refused { what, reason: error },
            Error::JsonDataError { .. } | Error::JsonSerdeError { .. } => {
                EngineError::Refused { what, reason: format!("its answer can't be read ({error})") }
            }
            error => {
                let engine = self.kind.name();
                let why = why(&error, self.kind);
                EngineError::Away { engine, socket: self.socket.clone(), why }
            }
        }
    }
}

/// Why an engine doesn't answer, and advice.
fn why(error: &Error, kind: Kind) -> String {
    let unit = match kind {
        Kind::Docker => "docker",
        Kind::Podman => "podman.socket",
    };
    match cause(error) {
        Some(io::ErrorKind::NotFound) => format!(
            "the socket does not exist. Start the engine (`systemctl start {unit}`), or give its socket with `--engine`"
        ),
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("nothing listens there. Start the engine (`systemctl start {unit}`)")
        }
        Some(io::ErrorKind::PermissionDenied) => {
            "this user may not use the socket. Docker Engine's belongs to the group `docker`".to_owned()
        }
        Some(io::ErrorKind::TimedOut) => "it took too long to answer. See the engine's log".to_owned(),
        _ => "it has ended in the middle of an answer. See the engine's log".to_owned(),
    }
}

/// The system's error.
fn cause(error: &Error) -> Option<io::ErrorKind> {
    match error {
        Error::SocketNotFoundError(_) => return Some(io::ErrorKind::NotFound),
        Error::RequestTimeoutError => return Some(io::ErrorKind::TimedOut),
        Error::IOError { err } => return Some(err.kind()),
        _ => {}
    }
    let mut reason = error.source();
    while let Some(error) = reason {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        reason = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use bollard::models::SystemVersionComponents;

    use super::*;

    #[test]
    fn an_engine_says_which_it_is() {
        let of = |name: &str| {
            let component = SystemVersionComponents { name: name.to_owned(), ..Default::default() };
            kind(&SystemVersion { components: Some(vec![component]), ..SystemVersion::default() })
        };
        assert_eq!(of("Engine"), Some(Kind::Docker));
        assert_eq!(of("Podman Engine"), Some(Kind::Podman));
        assert_eq!(of("Another"), None);
    }

    #[tokio::test]
    async fn an_unreachable_engine_error_is_in_our_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let engine = || {
            Engine::new(Settings {
                kind: Kind::Docker,
                socket: socket.clone(),
                host: "h".to_owned(),
                shim: "/shim".into(),
                bounds: super::super::Bounds::default(),
            })
        };
        let says = async || engine().client().await.map(drop).unwrap_err().to_string();
        let begin = format!("Docker Engine doesn't answer on {}: ", socket.display());
        assert!(says().await.starts_with(&format!("{begin}the socket does not exist. Start")));
        // A socket without a listener.
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let said = says().await;
        assert!(said.starts_with(&format!("{begin}nothing listens there. Start")), "{said}");
        assert!(!said.contains("hyper") && !said.contains("doctor"), "{said}");
    }
}
