//! `rejoin`: the host begins again in its folder after a restore of the control plane's or the folder's backup. One
//! side has forgotten what the other knows, and their numbers no longer match.
//!
//! The owner's and the agents' data stay: the identity, `host.toml`, homes and backups. The host's agents are ended,
//! and data known only to a launch or the journal is set aside or removed. Homes of agents unknown to the control plane
//! are set aside too: their numbers belong, or will belong, to other agents.
//!
//! **The control plane is asked first**, and the journal changes last. After a kill in between, the host is refused as
//! before, and the command can be repeated.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use muster_certificates::FileError;
use muster_protocol::{
    Secret,
    join::{FolderState, Join, KnownAgent, KnownState, PATH},
};

use crate::{
    address::{self, AddressError},
    agent::Record,
    clock,
    folder::{Folder, FolderError, JoinedState, create_private},
    join::{JoinError, require_well_formed, send},
    journal::{Contents, Journal, StoreError},
    machine,
    run::AddressArgs,
    runtime::{Bounds, Choice, Runtime},
    stop::{StopError, StoppedAgent, end_all},
    trust::Trust,
};

#[derive(Debug, thiserror::Error)]
pub enum RejoinError {
    #[error("{0} has not joined a control plane. `muster host join` does that.")]
    NotJoined(PathBuf),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The file of `--ca-file`, or its copy in the folder.
    #[error(transparent)]
    Certificates(#[from] FileError),
    /// The control plane lacks this function.
    #[error("The control plane is too old for this. Upgrade it.")]
    Unknown,
    #[error(transparent)]
    Stop(#[from] StopError),
    /// An agent doesn't end.
    #[error("Agent {0} still exists. Run the command again.")]
    StillThere(i64),
    #[error(transparent)]
    Journal(#[from] StoreError),
}

/// Result of a rejoin.
#[derive(Debug)]
pub struct Rejoined {
    /// The control plane that the host serves.
    pub joined: JoinedState,
    /// Ended agents.
    pub stopped: Vec<StoppedAgent>,
    pub lost: LostState,
}

/// Knowledge of one side that the other lacks.
#[derive(Debug, Default)]
pub struct LostState {
    /// Reports that the control plane has forgotten.
    reports: i64,
    /// Commands that it has forgotten.
    commands: i64,
    /// Reports that never reached it.
    unsent: i64,
    /// Forgotten starts by agent.
    starts: Vec<(String, i64)>,
    /// Agents unknown to it, with the volumes of their homes, if any.
    agents: Vec<(i64, Option<String>)>,
    /// Where the journal and these agents' data are now.
    aside: PathBuf,
}

impl fmt::Display for LostState {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reports, commands, unsent, starts, agents, aside } = self;
        if *reports > 0 || *commands > 0 {
            writeln!(
                to,
                "The control plane has forgotten {} and {} of this host.",
                count(*reports, "report"),
                count(*commands, "command")
            )?;
        }
        for (agent, times) in starts {
            writeln!(to, "It has forgotten {} of agent {agent}.", count(*times, "start"))?;
        }
        if *unsent > 0 {
            writeln!(to, "It never had {} of this host.", count(*unsent, "report"))?;
        }
        for (agent, volume) in agents {
            write!(to, "It does not know the agent {agent} of this host; another one may have the number.")?;
            if let Some(volume) = volume {
                write!(to, " The home is still the volume {volume}.")?;
            }
            writeln!(to)?;
        }
        write!(to, "The journal, and what unknown agents had, are in {}.", aside.display())
    }
}

fn count(number: i64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Rejoins the control plane. `token` is a new provisioning token; without one, the host presents its own token.
pub async fn rejoin(
    folder: &Folder,
    token: Option<&Secret>,
    place: &AddressArgs,
    runtime: Choice,
    grace: Duration,
) -> Result<Rejoined, RejoinError> {
    folder.require_own()?;
    let (Some(joined), Some(identity)) = (folder.joined()?, folder.identity()?) else {
        return Err(RejoinError::NotJoined(folder.root().to_owned()));
    };
    let _lock = folder.lock().map_err(StopError::of_lock)?;
    let runtime = runtime.in_folder(folder, joined.runtime.as_ref()).map_err(StopError::from)?;
    let runtime = runtime.build(&identity.machine_id, Bounds::default()).map_err(StopError::from)?;
    let insecure_http = joined.insecure_http || place.insecure_http;
    let base = address::read(place.url.as_ref().unwrap_or(&joined.url), insecure_http)?;
    if let Some(token) = token {
        require_well_formed(token)?;
    }
    let contents = journal_contents(folder);
    let again = FolderState {
        agents: folder.agents(),
        commands: contents.commands,
        acknowledged: contents.acknowledged,
    };
    let request = Join {
        host_token: identity.token.clone(),
        machine: machine::describe(&identity.machine_id, folder.root()),
        again: Some(again),
    };
    let (url, token) = (address::below(&base, PATH), token.unwrap_or(&identity.token));
    let trust = Trust::read(folder, place.ca_file.as_deref())?;
    let answer = send(url.as_str(), token, &request, &trust.tls).await?;
    trust.keep(folder)?;
    let known = answer.known.ok_or(RejoinError::Unknown)?;
    let stopped = end_all(folder, &runtime, grace).await?;
    if let Some(agent) = stopped.iter().find(|agent| !agent.is_gone) {
        return Err(RejoinError::StillThere(agent.agent_id));
    }
    let joined = JoinedState {
        url: base.to_string(),
        insecure_http,
        organization_id: answer.organization_id,
        server_id: answer.server_id,
        server_name: answer.server_name,
        ..joined
    };
    folder.keep_joined(&joined)?;
    let lost = put_aside(folder, &runtime, &contents, &known)?;
    Ok(Rejoined { joined, stopped, lost })
}

/// The journal's contents. An unreadable journal is set aside like any other.
fn journal_contents(folder: &Folder) -> Contents {
    Journal::contents(&folder.journal()).unwrap_or_else(|error| {
        tracing::warn!(%error, "the journal can't be read: its losses are unknown");
        Contents::default()
    })
}

/// The agents that the control plane knows and that have their homes here. Numbers don't suffice: one may belong to
/// another agent by now.
fn known_agents_here<'a>(folder: &Folder, known: &'a KnownState) -> BTreeMap<i64, &'a KnownAgent> {
    let is_same = |agent: &&KnownAgent| {
        let here = folder.created_at(agent.agent_id);
        here.is_ok_and(|created_at| created_at == Some(agent.created_at))
    };
    known.agents.iter().filter(is_same).map(|agent| (agent.agent_id, agent)).collect()
}

/// Sets old data aside, the journal last.
fn put_aside(
    folder: &Folder,
    runtime: &Runtime,
    contents: &Contents,
    known: &KnownState,
) -> Result<LostState, RejoinError> {
    let same = known_agents_here(folder, known);
    let mut lost = LostState {
        reports: (contents.acknowledged - known.events).max(0),
        commands: (contents.commands - known.commands).max(0),
        unsent: contents.events - contents.acknowledged,
        aside: folder.aside_folder(clock::now()),
        ..LostState::default()
    };
    let mut records = Vec::new();
    for (agent_id, bytes) in &contents.agents {
        if let (Ok(record), Some(agent)) = (Record::read(bytes), same.get(agent_id)) {
            if record.generation > agent.generation {
                let name = agent.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
                lost.starts.push((format!("{agent_id}{name}"), record.generation - agent.generation));
            }
            records.push((*agent_id, record.begun_again().to_bytes()));
        }
    }
    create_private(&lost.aside)?;
    for agent_id in folder.agents() {
        if same.contains_key(&agent_id) {
            for generation in folder.launches(agent_id) {
                remove(&folder.launch(agent_id, generation), |path| fs::remove_dir_all(path))?;
                remove(&folder.shim_lock(agent_id, generation), |path| fs::remove_file(path))?;
            }
        } else {
            let created_at = folder.created_at(agent_id).ok().flatten();
            lost.agents.push((agent_id, created_at.and_then(|at| runtime.volume(agent_id, at))));
            move_folder(&folder.backups(agent_id), &lost.aside.join("backups").join(agent_id.to_string()))?;
            move_folder(&folder.agent(agent_id), &lost.aside.join("agents").join(agent_id.to_string()))?;
        }
    }
    Journal::begin_again(&folder.journal(), &lost.aside.join("journal.redb"), records)?;
    Ok(lost)
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> FolderError {
    move |source| FolderError::Io { path: path.to_owned(), source }
}

fn remove(path: &Path, remove: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), FolderError> {
    match remove(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// Moves a folder, if it exists.
fn move_folder(from: &Path, to: &Path) -> Result<(), FolderError> {
    if !from.exists() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        create_private(parent)?;
    }
    fs::rename(from, to).map_err(at(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Phase;

    #[test]
    fn known_agents_stay_and_the_rest_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        for path in
            [folder.home(7), folder.launch(7, 3), folder.backups(7), folder.home(8), folder.backups(8)]
        {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(folder.shim_lock(7, 3), "").unwrap();
        folder.keep_created_at(7, 70).unwrap();
        folder.keep_created_at(8, 80).unwrap();
        let running =
            |id| Record { generation: 3, phase: Phase::Running, has_old_home: true, ..Record::new(id) };
        let records = [7, 8].map(|id| (id, running(id).to_bytes())).to_vec();
        Journal::begin_again(&folder.journal(), &dir.path().join("none"), records).unwrap();
        let contents = Contents {
            commands: 5,
            events: 9,
            acknowledged: 8,
            ..Journal::contents(&folder.journal()).unwrap()
        };
        let now = |agent_id, created_at, name: &str| KnownAgent {
            agent_id,
            created_at,
            name: Some(name.to_owned()),
            generation: 1,
        };
        // Number 8 belongs to another agent by now.
        let known =
            KnownState { agents: vec![now(7, 70, "Ada"), now(8, 81, "Grace")], commands: 2, events: 7 };
        let lost = put_aside(&folder, &Runtime::Process, &contents, &known).unwrap();
        let said = lost.to_string();
        let expected = "The control plane has forgotten 1 report and 3 commands of this host.\n\
                        It has forgotten 2 starts of agent 7 (Ada).\nIt never had 1 report of this host.\n\
                        It does not know the agent 8 of this host; another one may have the number.\nThe journal, and what unknown agents had, are in ";
        assert!(said.starts_with(expected), "{said}");
        assert!(folder.home(7).is_dir() && folder.backups(7).is_dir());
        assert!(!folder.launch(7, 3).exists() && !folder.shim_lock(7, 3).exists());
        assert!(!folder.agent(8).exists() && !folder.backups(8).exists());
        for kept in ["agents/8/home", "backups/8", "journal.redb"] {
            assert!(lost.aside.join(kept).exists(), "{kept}");
        }
        let now = Journal::contents(&folder.journal()).unwrap();
        assert_eq!((now.commands, now.events, now.acknowledged), (0, 0, 0));
        let [(7, bytes)] = &now.agents[..] else { panic!("{:?}", now.agents) };
        let record = Record::read(bytes).unwrap();
        assert_eq!((record.generation, record.phase, record.has_old_home), (0, Phase::Ended, true));
    }
}
