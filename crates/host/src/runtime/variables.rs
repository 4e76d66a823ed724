//! The variables with which clients of engines find their engine. The host reads them as those clients do, but only
//! for an engine of this machine: agents' sockets and files are mounted into their containers.

use std::{env, path::PathBuf};

use muster_protocol::frame;

/// The variables' values.
#[derive(Clone, Debug, Default)]
pub struct EngineVariables {
    /// `DOCKER_HOST`, of Docker's clients.
    pub docker: Option<String>,
    /// `CONTAINER_HOST`, of Podman's.
    pub podman: Option<String>,
}

/// A variable names no socket of this machine.
#[derive(Debug, thiserror::Error)]
#[error(
    "{variable} is {value:?}, and agents can only run in an engine of this machine. Give its socket with `--engine` or \
     MUSTER_HOST_ENGINE ({example}), or unset {variable}."
)]
pub struct RemoteEngine {
    variable: &'static str,
    value: String,
    example: &'static str,
}

impl EngineVariables {
    /// Those of this process.
    pub fn read() -> Self {
        let read = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self { docker: read("DOCKER_HOST"), podman: read("CONTAINER_HOST") }
    }

    /// The socket of an engine. `None`: its variable is not set.
    pub fn socket(&self, runtime: frame::Runtime) -> Result<Option<PathBuf>, RemoteEngine> {
        let (variable, value, example) = match runtime {
            frame::Runtime::Process => return Ok(None),
            frame::Runtime::Docker => ("DOCKER_HOST", &self.docker, "/var/run/docker.sock"),
            frame::Runtime::Podman => ("CONTAINER_HOST", &self.podman, "/run/podman/podman.sock"),
        };
        let Some(value) = value.as_deref().filter(|value| !value.is_empty()) else { return Ok(None) };
        let path = PathBuf::from(value.strip_prefix("unix://").unwrap_or(value));
        if path.is_absolute() {
            return Ok(Some(path));
        }
        Err(RemoteEngine { variable, value: value.to_owned(), example })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(runtime: frame::Runtime, value: &str) -> Result<Option<PathBuf>, RemoteEngine> {
        let value = Some(value.to_owned());
        EngineVariables { docker: value.clone(), podman: value }.socket(runtime)
    }

    #[test]
    fn a_socket_is_named_as_a_path_or_a_unix_address() {
        for runtime in [frame::Runtime::Docker, frame::Runtime::Podman] {
            for text in ["unix:///run/e.sock", "/run/e.sock"] {
                assert_eq!(socket(runtime, text).unwrap(), Some("/run/e.sock".into()), "{text}");
            }
            assert_eq!(socket(runtime, "").unwrap(), None);
        }
        assert_eq!(socket(frame::Runtime::Process, "tcp://192.0.2.7:2376").unwrap(), None);
    }

    #[test]
    fn an_engine_of_another_machine_is_refused() {
        for text in
            ["tcp://127.0.0.1:2375", "ssh://me@192.0.2.7", "http://x", "unix://e.sock", "localhost:2375"]
        {
            let refused = socket(frame::Runtime::Docker, text).unwrap_err().to_string();
            assert!(refused.contains("DOCKER_HOST is") && refused.contains("with `--engine`"), "{refused}");
        }
        let refused = socket(frame::Runtime::Podman, "ssh://me@192.0.2.7").unwrap_err().to_string();
        assert!(refused.contains("unset CONTAINER_HOST"), "{refused}");
    }
}
