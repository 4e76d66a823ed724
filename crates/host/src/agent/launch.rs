//! Starts an agent: its folder, environment, limits and shim. Containers are created in `runtime/`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use muster_protocol::{
    event::EndReason,
    plan::{LaunchPlan, McpTransport},
};
use muster_shim::{
    args::Launch,
    isolate::Sandbox,
    record::{Exit, Record},
};
use tokio::time::{sleep, timeout};

use super::{home, shim_io::kill_unresponsive_shim};
use crate::{
    bounds::{LOOK, PROCESS_WAIT},
    environment::{inherited_variables, may_be_set},
    folder::{Folder, FolderError, create_private},
    gate_address::GateAddress,
    profile::{self, ProfileError, Wiring},
    programs::{Program, ProgramError, SYSTEM_PATH, absolute},
    runtime::{Engine, EngineError, EngineWait, PreparedLaunch, Runtime, show},
    shared::Shared,
};

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("{what}: {source}")]
    Io {
        /// The failed action.
        what: String,
        source: io::Error,
    },
    #[error("{0}")]
    Shim(String),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The home belongs to an earlier agent with the same number.
    #[error(
        "The data of agent {0} on this host belong to an earlier agent with this number. Stop the host, put them \
         aside with `muster host rejoin`, and start it again."
    )]
    NotItsHome(i64),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl LaunchError {
    /// The reported reason.
    pub fn reason(&self) -> EndReason {
        match self {
            Self::Program(_) => EndReason::ImageNotFound,
            Self::Engine(error) => error.reason(),
            Self::Io { source, .. } | Self::Folder(FolderError::Io { source, .. })
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                EndReason::DiskFull
            }
            Self::Profile(_) | Self::Io { .. } | Self::Shim(_) | Self::NotItsHome(_) | Self::Folder(_) => {
                EndReason::SpawnFailed
            }
        }
    }
}

/// The start of a launch. Its folder has no live shim, except one in a container that waits for its environment.
pub struct Start<'a> {
    pub shared: &'a Shared,
    pub id: i64,
    pub generation: i64,
    pub plan: &'a LaunchPlan,
    /// Reports a wait for the engine, and signals a stop.
    pub waiting: &'a EngineWait,
}

impl Start<'_> {
    /// Creates the folders, writes skills and files, and starts the shim with the agent. Returns the used image, if
    /// any.
    pub async fn run(&self) -> Result<Option<String>, LaunchError> {
        require_own(&self.shared.folder, self.id, self.plan.created_at)?;
        match &self.shared.runtime {
            Runtime::Process => {
                let started = self.process().await;
                if started.is_err() {
                    end_late(&self.shared.folder, self.id, self.generation).await;
                }
                started.map(|()| None)
            }
            Runtime::Engine(engine) => self.contained(engine).await.map(Some),
        }
    }

    fn dir(&self) -> PathBuf {
        self.shared.folder.launch(self.id, self.generation)
    }

    async fn process(&self) -> Result<(), LaunchError> {
        let Self { shared, id, generation, plan, .. } = *self;
        let mut program = shared.programs.of_image(&plan.image)?;
        let home = shared.folder.home(id);
        make(&home)?;
        end_older(&shared.folder, id, generation, PROCESS_WAIT).await?;
        let lock = lock(&shared.folder.shim_lock(id, generation));
        let lock = lock.map_err(|source| at("Another shim of this launch is still there", source))?;
        self.prepare(&home)?;
        let address = gate_address(&self.dir(), !shared.options.sandbox || plan.network.privileged)?;
        let wiring = self.wiring(&program, &home, &address)?;
        if let Some(wiring) = &wiring {
            profile::complete(&mut program, wiring, absolute);
        }
        home::write_files(&home, &files(plan, wiring.as_ref())).map_err(|source| at(NOT_WRITTEN, source))?;
        let environment = environment(&program, wiring.as_ref(), &home, plan, &address);
        self.start(&program, &home, lock, &address, environment).await
    }

    async fn contained(&self, engine: &Engine) -> Result<String, LaunchError> {
        let Self { shared, id, generation, plan, waiting } = *self;
        let mut program = shared.programs.instead_of(&plan.image)?.unwrap_or_default();
        let given = shared.runtime.host_files(&shared.folder, id);
        let dir = self.dir();
        let is_there = shared.folder.has_shim(id, generation)
            || tokio::select! {
                has = engine.has_container(id, generation) => has,
                () = waiting.stopped() => return Err(EngineError::Stopped.into()),
            };
        let address = if is_there {
            GateAddress::new(&dir)
        } else {
            self.prepare(&given)?;
            let shown = [given.join("skills"), given.join("inbox"), dir.join("mcp")];
            shown.iter().try_for_each(|path| show(path)).map_err(|source| at(NOT_MADE, source))?;
            gate_address(&dir, plan.network.privileged && engine.shares_network())?
        };
        let places = shared.agent_paths(id, generation);
        let wiring = self.wiring(&program, &places.home, &address)?;
        if let Some(wiring) = &wiring {
            profile::complete(&mut program, wiring, |command| places.program(command));
        }
        let files = files(plan, wiring.as_ref());
        home::check_files(&files).map_err(|source| at(NOT_WRITTEN, source))?;
        let limit = plan.limits.start_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let prepared = PreparedLaunch {
            agent_id: id,
            generation,
            dir,
            given,
            environment: given_environment(&program, wiring.as_ref(), &places.home, plan, &address),
            program: Some(program).filter(|program| !program.command.as_os_str().is_empty()),
            gate: address.gate_in(&places.sockets),
            files,
            plan,
            bounds: (shared.options.spool_bytes, shared.options.line_bytes),
            patience: limit.map_or(shared.options.start, Duration::from_secs),
        };
        let started = engine.start(&prepared, waiting).await;
        // A stopped launch does not wait for an unreachable engine. Its end cleans up as far as possible, and the next
        // launch does the rest.
        if !matches!(started, Ok(_) | Err(EngineError::Stopped)) {
            shared.runtime.clean(&shared.folder, id, generation).await;
        }
        Ok(started?)
    }

    /// Creates the launch's folder, and writes the skills. No part of the agent runs yet.
    fn prepare(&self, given: &Path) -> Result<(), LaunchError> {
        make(given)?;
        clear(&self.shared.folder.agent(self.id), self.generation)
            .map_err(|source| at("The agent's folder can't be cleared", source))?;
        make(&self.dir())?;
        // The shim recreates a missing folder; sockets of MCP servers have a separate folder, which a sandbox can show.
        make(&self.dir().join("mcp"))?;
        home::write_skills(given, &self.plan.skills)
            .map_err(|source| at("The skills can't be written", source))
    }

    /// The program's wiring by its profile, if any. `home` is the path as the agent sees it.
    fn wiring(
        &self,
        program: &Program,
        home: &Path,
        address: &GateAddress,
    ) -> Result<Option<Wiring>, LaunchError> {
        let plan = self.plan;
        let profile = self.shared.programs.profile_of(program, &plan.image, plan.profile.as_ref())?;
        Ok(profile
            .map(|profile| profile::render(profile, &profile::placeholder_values(plan, home, address)))
            .transpose()?)
    }

    async fn start(
        &self,
        program: &Program,
        home: &Path,
        lock: File,
        address: &GateAddress,
        environment: BTreeMap<OsString, OsString>,
    ) -> Result<(), LaunchError> {
        let Self { shared, plan, .. } = *self;
        let (dir, options) = (self.dir(), &shared.options);
        let mut launch = Launch::new(&dir, self.generation.unsigned_abs(), program.command.clone());
        launch.spool_bytes = options.spool_bytes;
        launch.line_bytes = options.line_bytes;
        launch.cwd = Some(home.to_owned());
        launch.spec.args = program.args.iter().map(OsString::from).collect();
        launch.spec.limits = shared.limits();
        let shim = shared.programs.shim();
        if options.sandbox {
            let mut readable = vec![dir.join("mcp")];
            readable.extend(program.readable.iter().cloned());
            readable.extend(readable_by_mcp(shared, plan)?);
            let commands = [&program.command, &shim.command].into_iter();
            readable.extend(commands.filter(|path| path.is_absolute()).cloned());
            let no_network = !plan.network.privileged;
            launch.spec.sandbox = Some(Sandbox { writable: vec![home.to_owned()], readable, no_network });
        }
        launch.spec.gate = Some(address.gate());
        let mut command = tokio::process::Command::new(&shim.command);
        command.args(&shim.args).arg("run").args(launch.to_args());
        command.env_clear().envs(environment).current_dir("/");
        command.stdin(lock).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = timeout(PROCESS_WAIT, command.output()).await;
        let output = output.map_err(|_| LaunchError::Shim("The shim did not start in time.".to_owned()))?;
        let output = output.map_err(|source| at("The shim can't be started", source))?;
        if output.status.success() {
            return Ok(());
        }
        let says = String::from_utf8_lossy(&output.stderr);
        Err(LaunchError::Shim(crate::acp::short(says.trim(), 2000)))
    }
}

/// Refuses the home of another agent with the same number, as after a restore of the control plane, and records the
/// owner.
fn require_own(folder: &Folder, id: i64, created_at: i64) -> Result<(), LaunchError> {
    match folder.created_at(id)? {
        Some(other) if other != created_at => Err(LaunchError::NotItsHome(id)),
        Some(_) => Ok(()),
        None => Ok(folder.keep_created_at(id, created_at)?),
    }
}

/// Ends the shim of a failed launch, even one that a slow disk has delayed. Otherwise its agent would keep running
/// without a host, in the home of the next launch.
async fn end_late(folder: &Folder, id: i64, generation: i64) {
    while folder.has_shim(id, generation) {
        kill_unresponsive_shim(id, &folder.launch(id, generation)).await;
        sleep(LOOK).await;
    }
}

/// Ends the shims of earlier launches, whose host may have been killed too early. A shim whose agent has exited ends by
/// itself.
async fn end_older(folder: &Folder, id: i64, generation: i64, patience: Duration) -> Result<(), LaunchError> {
    for older in folder.launches(id).into_iter().filter(|older| *older < generation) {
        if Exit::read(&folder.launch(id, older)).is_err() {
            let ended = timeout(patience, end_late(folder, id, older)).await;
            ended.map_err(|_| LaunchError::Shim(format!("The shim of launch {older} is still there.")))?;
        }
    }
    Ok(())
}

const NOT_MADE: &str = "The agent's folder can't be made";
const NOT_WRITTEN: &str = "The agent's files can't be written";

fn make(path: &Path) -> Result<(), LaunchError> {
    create_private(path).map_err(|error| at(NOT_MADE, io::Error::other(error)))
}

/// The gate's address for a new launch.
fn gate_address(dir: &Path, shares_network: bool) -> Result<GateAddress, LaunchError> {
    let address = if shares_network { GateAddress::on_free_port(dir) } else { Ok(GateAddress::new(dir)) };
    address.map_err(|source| at("No free port for the agent's gate", source))
}

/// Files for the agent's home: the profile's, and readable secrets.
fn files(plan: &LaunchPlan, wiring: Option<&Wiring>) -> BTreeMap<String, String> {
    let mut all = wiring.map(|wiring| wiring.files.clone()).unwrap_or_default();
    all.extend(plan.files.iter().map(|file| (file.path.clone(), file.content.expose().to_owned())));
    all
}

/// The lock that the shim holds for its lifetime.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Paths readable by MCP servers in an agent's sandbox, and so by the agent. Missing ones are skipped: then the server
/// fails to start, but the agent starts.
pub fn readable_by_mcp(shared: &Shared, plan: &LaunchPlan) -> Result<Vec<PathBuf>, ProgramError> {
    let mut all = Vec::new();
    if !shared.options.sandbox || !matches!(shared.runtime, Runtime::Process) {
        return Ok(all);
    }
    for server in plan.mcp_servers.iter().filter(|server| server.runs_in_sandbox()) {
        if let McpTransport::Stdio { command, .. } = &server.transport {
            all.extend(shared.programs.readable_by_mcp(&absolute(command))?);
        }
    }
    all.retain(|path| path.exists());
    Ok(all)
}

/// The environment of an agent on this machine: only variables from profile, owner, plan and host.
fn environment(
    program: &Program,
    wiring: Option<&Wiring>,
    home: &Path,
    plan: &LaunchPlan,
    address: &GateAddress,
) -> BTreeMap<OsString, OsString> {
    let mut all = inherited_variables(&program.pass);
    all.extend(given_environment(program, wiring, home, plan, address));
    all.insert("PATH".into(), std::env::var_os("PATH").unwrap_or_else(|| SYSTEM_PATH.into()));
    all
}

/// An agent's variables in any runtime. A container adds its image's.
fn given_environment(
    program: &Program,
    wiring: Option<&Wiring>,
    home: &Path,
    plan: &LaunchPlan,
    address: &GateAddress,
) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
    match wiring {
        Some(wiring) => {
            let wired = wiring.environment.iter().filter(|(name, _)| may_be_set(name));
            all.extend(wired.map(|(name, value)| (name.into(), value.into())));
        }
        None => all.extend(plan.model.iter().map(|model| ("MUSTER_AGENT_MODEL".into(), model.into()))),
    }
    all.extend(program.set.iter().map(|(name, value)| (name.into(), value.into())));
    for variable in &plan.environment {
        if may_be_set(&variable.name) {
            all.insert(variable.name.clone().into(), variable.value.expose().into());
        } else {
            tracing::warn!(name = variable.name, "a credential may not set this variable");
        }
    }
    // After the credentials, so that none can bypass the gate.
    all.extend(address.environment(plan).into_iter().map(|(name, value)| (name.into(), value.into())));
    all.insert("HOME".into(), home.into());
    all
}

/// Removes folders of earlier launches and of this one, which doesn't run yet. The previous launch's folder stays: its
/// stderr may explain a failure.
fn clear(agent: &Path, generation: i64) -> io::Result<()> {
    let entries = match fs::read_dir(agent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let launches = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i64>().ok());
    let mut launches: Vec<i64> = launches.filter(|found| *found <= generation).collect();
    launches.sort_unstable();
    let before = launches.iter().rev().find(|found| **found < generation).copied();
    for old in launches.into_iter().filter(|found| Some(*found) != before) {
        let dir = agent.join(old.to_string());
        if let Ok(record) = Record::read(&dir) {
            record.sweep();
        }
        fs::remove_dir_all(dir)?;
        if old < generation {
            let _ = fs::remove_file(agent.join(format!("{old}.lock")));
        }
    }
    Ok(())
}

fn at(what: &str, source: io::Error) -> LaunchError {
    LaunchError::Io { what: what.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use muster_protocol::plan::{ModelAccess, Variable};

    use super::*;

    #[test]
    fn an_agent_gets_a_clean_environment_and_what_it_was_given() {
        let variable = |name: &str| Variable { name: name.to_owned(), value: "v".to_owned().into() };
        let plan = LaunchPlan {
            model: Some("large".to_owned()),
            model_access: Some(ModelAccess {
                credential_id: None,
                provider: "anthropic".to_owned(),
                base_url: Some("http://localhost".to_owned()),
                key: "k".to_owned().into(),
            }),
            environment: ["TOKEN", "LD_PRELOAD", "PATH", "A=B", "1X", ""].map(variable).to_vec(),
            ..LaunchPlan::default()
        };
        let set = [("MODE".to_owned(), "on".to_owned())].into();
        let program = Program { set, ..Program::default() };
        let address = GateAddress { socket: "/s".into(), port: 81 };
        let environment = environment(&program, None, Path::new("/home"), &plan, &address);
        let names: Vec<&str> = environment.keys().filter_map(|name| name.to_str()).collect();
        let expected = [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "HOME",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "MODE",
            "MUSTER_AGENT_MODEL",
            "MUSTER_AGENT_PROVIDER",
            "NODE_USE_ENV_PROXY",
            "NO_PROXY",
            "PATH",
            "TOKEN",
            "http_proxy",
            "https_proxy",
            "no_proxy",
        ];
        let names: Vec<&str> =
            names.into_iter().filter(|name| !crate::environment::PASSED.contains(name)).collect();
        assert_eq!(names, expected);
        assert_eq!(
            environment["ANTHROPIC_API_KEY".as_ref() as &std::ffi::OsStr],
            crate::gate_address::PLACEHOLDER
        );
        assert_eq!(environment["HOME".as_ref() as &std::ffi::OsStr], "/home");
    }

    #[test]
    fn no_agent_gets_the_home_of_another_that_had_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        for _ in 0..2 {
            require_own(&folder, 7, 1_000).unwrap();
        }
        require_own(&folder, 8, 2_000).unwrap();
        let refused = require_own(&folder, 7, 2_000).unwrap_err();
        assert!(matches!(refused, LaunchError::NotItsHome(7)), "{refused}");
        assert_eq!(folder.created_at(7).unwrap(), Some(1_000));
    }

    #[tokio::test]
    async fn a_launch_does_not_begin_beside_the_shim_of_an_older_one() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        create_private(&folder.launch(7, 1)).unwrap();
        let held = lock(&folder.shim_lock(7, 1)).unwrap();
        let begins = |generation| end_older(&folder, 7, generation, Duration::ZERO);
        begins(1).await.unwrap();
        let refused = begins(2).await.unwrap_err().to_string();
        assert_eq!(refused, "The shim of launch 1 is still there.");
        let exit = folder.launch(7, 1).join(muster_shim::folder::EXIT);
        let text = "generation=1\ncode=0\nsignal=-\nat=1\nreason=EXITED\nlines=0\ndetail=\n";
        fs::write(&exit, text).unwrap();
        begins(2).await.unwrap();
        fs::remove_file(&exit).unwrap();
        drop(held);
        begins(2).await.unwrap();
    }
}
