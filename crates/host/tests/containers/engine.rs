//! The tests' engine, and a host that runs agents in it.

use std::{
    ops::{Deref, DerefMut},
    process::Output,
};

use muster_protocol::plan::LaunchPlan;

pub use crate::client::{Own, PROBE, docker, kind, says};
use crate::{
    client::{self, variable},
    support::{Host, Plane},
};

/// A host that runs agents in containers. Its resources in the engine are removed on drop.
pub struct Contained {
    host: Host,
    pub socket: String,
}

impl Deref for Contained {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl DerefMut for Contained {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

impl Contained {
    /// With the script's engine.
    pub fn start(plane: &Plane, options: &[&str]) -> Self {
        Self::with(plane, &variable("MUSTER_TEST_SOCKET"), options)
    }

    pub fn with(plane: &Plane, socket: &str, options: &[&str]) -> Self {
        let kind = kind();
        let own = ["--runtime", &kind, "--engine", socket];
        let all: Vec<&str> = own.into_iter().chain(options.iter().copied()).collect();
        Self { host: Host::start(plane, &all), socket: socket.to_owned() }
    }

    /// The container of a launch.
    pub fn name(&self, agent_id: i64, generation: i64) -> String {
        format!("muster-{}-{agent_id}-g{generation}", &self.id()[..12])
    }

    pub fn id(&self) -> String {
        let identity = std::fs::read_to_string(self.path().join("identity.json")).unwrap();
        let identity: serde_json::Value = serde_json::from_str(&identity).unwrap();
        identity["machine_id"].as_str().unwrap().to_owned()
    }

    pub fn says(&self, args: &[&str]) -> String {
        says(&self.socket, args)
    }

    /// The containers of this host, running or not.
    pub fn containers(&self) -> Vec<String> {
        client::containers(&self.socket, &self.id())
    }

    /// Runs a command in the container as its agent.
    pub fn as_agent(&self, agent_id: i64, generation: i64, words: &[&str]) -> Output {
        client::as_agent(&self.socket, &self.name(agent_id, generation), agent_id, words)
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        self.host.kill();
        client::clean(&self.socket, &self.id());
    }
}

/// The plan of an agent.
pub fn plan(plane: &Plane, agent_id: i64, change: impl FnOnce(&mut LaunchPlan)) {
    plane.set(|state| change(state.plans.entry(agent_id).or_default()));
}

/// A list of programs with one entry, for [`PROBE`].
pub fn list(command: &str, args: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("programs.toml");
    let args = serde_json::to_string(args).unwrap();
    std::fs::write(&path, format!("[{PROBE:?}]\ncommand = {command:?}\nargs = {args}\n")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}
