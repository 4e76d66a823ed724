//! Starts an agent: its folder, its environment, its limits, its shim.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io,
    path::Path,
    process::Stdio,
    time::Duration,
};

use muster_protocol::{event::EndReason, plan::LaunchPlan};
use muster_shim::{
    args::{Launch, Limits},
    isolate::Sandbox,
    record::Record,
};

use super::home;
use crate::{
    folder::create_private,
    programs::{Program, ProgramError, SYSTEM_PATH},
    shared::Shared,
};

/// How long a shim may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many open files an agent may have.
const NOFILE: u64 = 8192;
/// Variables of the host's environment that every agent gets.
const PASSED: &[&str] = &["LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Variables that a credential may not set: they would change the shim or the loader, outside of any sandbox.
const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "IFS",
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "TMPDIR",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
];

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its program is unknown.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A file or the shim's program fails.
    #[error("{what}: {source}")]
    Io {
        /// What was done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The shim says why.
    #[error("{0}")]
    Shim(String),
}

impl LaunchError {
    /// What is reported.
    pub fn reason(&self) -> EndReason {
        match self {
            Self::Program(_) => EndReason::ImageNotFound,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => EndReason::DiskFull,
            Self::Io { .. } | Self::Shim(_) => EndReason::SpawnFailed,
        }
    }
}

/// Makes the folders, writes the skills, and starts the shim with the agent. The launch's folder has no live shim.
pub async fn launch(shared: &Shared, id: i64, generation: i64, plan: &LaunchPlan) -> Result<(), LaunchError> {
    let program = shared.programs.of_image(&plan.image)?;
    let (dir, home_dir) = (shared.folder.launch(id, generation), shared.folder.home(id));
    let make = |path: &Path| {
        create_private(path).map_err(|error| at("The agent's folder can't be made", io::Error::other(error)))
    };
    make(&home_dir)?;
    let lock = lock(&shared.folder.shim_lock(id, generation))
        .map_err(|source| at("Another shim of this launch is still there", source))?;
    clear(&shared.folder.agent(id), generation)
        .map_err(|source| at("The agent's folder can't be cleared", source))?;
    make(&dir)?;
    // The shim makes the folder again if it is gone; sockets of MCP have one of their own, which a sandbox can show.
    make(&dir.join("mcp"))?;
    home::write_skills(&home_dir, &plan.skills)
        .map_err(|source| at("The skills can't be written", source))?;
    start(shared, &program, (&dir, &home_dir, lock), generation, plan).await
}

/// What the shim holds for as long as it lives.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    file.try_lock()?;
    Ok(file)
}

async fn start(
    shared: &Shared,
    program: &Program,
    (dir, home, lock): (&Path, &Path, File),
    generation: i64,
    plan: &LaunchPlan,
) -> Result<(), LaunchError> {
    let options = &shared.options;
    let mut launch = Launch::new(dir, generation.unsigned_abs(), program.command.clone());
    launch.spool_bytes = options.spool_bytes;
    launch.line_bytes = options.line_bytes;
    launch.cwd = Some(home.to_owned());
    launch.step.args = program.args.iter().map(OsString::from).collect();
    launch.step.limits = Limits { nofile: Some(NOFILE), nproc: options.nproc, ..Limits::default() };
    let shim = shared.programs.shim();
    if options.sandbox {
        let mut readable = vec![dir.join("mcp")];
        readable.extend(program.readable.iter().cloned());
        readable
            .extend([&program.command, &shim.command].into_iter().filter(|path| path.is_absolute()).cloned());
        launch.step.sandbox = Some(Sandbox { writable: vec![home.to_owned()], readable });
    }
    let mut command = tokio::process::Command::new(&shim.command);
    command.args(&shim.args).arg("run").args(launch.to_args());
    command.env_clear().envs(environment(program, home, plan)).current_dir("/");
    command.stdin(lock).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output());
    let output = output.await.map_err(|_| LaunchError::Shim("The shim did not start in time.".to_owned()))?;
    let output = output.map_err(|source| at("The shim can't be started", source))?;
    if output.status.success() {
        return Ok(());
    }
    let says = String::from_utf8_lossy(&output.stderr);
    Err(LaunchError::Shim(crate::acp::short(says.trim(), 2000)))
}

/// The agent's environment: clean, and then what the operator, the plan and the host give it.
fn environment(program: &Program, home: &Path, plan: &LaunchPlan) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
    let passed = PASSED.iter().copied().chain(program.pass.iter().map(String::as_str));
    for name in passed {
        all.extend(std::env::var_os(name).map(|value| (name.into(), value)));
    }
    all.extend(program.set.iter().map(|(name, value)| (name.into(), value.into())));
    if let Some(model) = &plan.model {
        all.insert("MUSTER_AGENT_MODEL".into(), model.into());
    }
    if let Some(access) = &plan.model_access {
        all.insert("MUSTER_AGENT_PROVIDER".into(), access.provider.clone().into());
        let prefix: String =
            access.provider.to_uppercase().chars().filter(char::is_ascii_alphanumeric).collect();
        all.insert(format!("{prefix}_API_KEY").into(), access.key.expose().into());
        all.extend(access.base_url.as_ref().map(|url| (format!("{prefix}_BASE_URL").into(), url.into())));
    }
    for variable in &plan.environment {
        if may_be_set(&variable.name) {
            all.insert(variable.name.clone().into(), variable.value.expose().into());
        } else {
            tracing::warn!(name = variable.name, "a credential may not set this variable");
        }
    }
    all.insert("PATH".into(), std::env::var_os("PATH").unwrap_or_else(|| SYSTEM_PATH.into()));
    all.insert("HOME".into(), home.into());
    all
}

fn may_be_set(name: &str) -> bool {
    let is_name = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        && name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    is_name && !RESERVED.contains(&name) && !name.starts_with("LD_") && !name.starts_with("DYLD_")
}

/// Removes what earlier launches left, and the folder of this one, in which nothing runs. The launch before is kept: its
/// stderr may explain something.
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
                provider: "anthropic".to_owned(),
                base_url: Some("http://localhost".to_owned()),
                key: "k".to_owned().into(),
            }),
            environment: ["TOKEN", "LD_PRELOAD", "PATH", "A=B", "1X", ""].map(variable).to_vec(),
            ..LaunchPlan::default()
        };
        let set = [("MODE".to_owned(), "on".to_owned())].into();
        let program = Program { set, ..Program::default() };
        let environment = environment(&program, Path::new("/home"), &plan);
        let names: Vec<&str> = environment.keys().filter_map(|name| name.to_str()).collect();
        let expected = [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "HOME",
            "MODE",
            "MUSTER_AGENT_MODEL",
            "MUSTER_AGENT_PROVIDER",
            "PATH",
            "TOKEN",
        ];
        let names: Vec<&str> = names.into_iter().filter(|name| !PASSED.contains(name)).collect();
        assert_eq!(names, expected);
        assert_eq!(environment["HOME".as_ref() as &std::ffi::OsStr], "/home");
    }
}
