//! Definition of an agent's container: its mounts, its rights and its name.
//!
//! | In the container | Content |
//! |---|---|
//! | `/` | the image, read-only |
//! | `/home/agent` | the agent's volume, kept across launches |
//! | `/home/agent/skills`, `/home/agent/inbox` | the host's files for the agent, read-only |
//! | `/tmp` | in memory |
//! | `/.muster/shim` | the shim, read-only |
//! | `/.muster/sockets` | the sockets that lead out |
//! | `/.muster/launch` | the shim's own folder, closed to the agent |

use std::{collections::HashMap, ffi::OsString, path::Path, sync::LazyLock};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType, MountVolumeOptions,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use muster_shim::{
    args::{Contained, Launch, Limits},
    folder::SOCKET,
    home_archive::Task,
};
use rustix::process::{Resource, getrlimit};

use super::{AgentPaths, PreparedLaunch, docker::Settings};
use crate::{bounds::OPEN_FILES, clock, programs::Program};

pub(super) const HOME: &str = "/home/agent";
pub(super) const SHIM: &str = "/.muster/shim";
const SOCKETS: &str = "/.muster/sockets";
const LAUNCH: &str = "/.muster/launch";
/// The socket folder of a home container, and its folder with the volume, in which the home has its name.
const KEEPER: &str = "/.muster/keeper";
const VOLUME: &str = "/.muster/volume";

/// Label: the host's id.
pub(super) const HOST: &str = "muster.host";
pub(super) const AGENT: &str = "muster.agent";
pub(super) const GENERATION: &str = "muster.generation";
/// Label: the host's process that uses a home container. Without this process the container is a leftover.
pub(super) const KEEPER_OF: &str = "muster.keeper-of";
/// This process. Its id alone may be reused.
pub(super) static PROCESS: LazyLock<String> =
    LazyLock::new(|| format!("{}-{}", std::process::id(), clock::now()));

/// Capabilities of the shim until it has become its own user. The agent has none of them.
const CAPABILITIES: [&str; 5] = ["CHOWN", "KILL", "SETGID", "SETPCAP", "SETUID"];
/// Capabilities to archive a home with files of several users.
const KEEPER_CAPABILITIES: [&str; 3] = ["CHOWN", "DAC_OVERRIDE", "FOWNER"];
/// Default options of `/tmp`.
const TMP: &str = "rw,nosuid,nodev,exec,mode=1777,size=512m";

/// Locations, the same in every container.
pub(super) fn container_paths() -> AgentPaths {
    let shim = Program { command: SHIM.into(), ..Program::default() };
    AgentPaths { home: HOME.into(), sockets: SOCKETS.into(), shim, is_here: false }
}

/// Unique name of a launch's container.
pub(super) fn name(host: &str, agent_id: i64, generation: i64) -> String {
    format!("muster-{}-{agent_id}-g{generation}", short(host))
}

/// Name of the container for a task on an agent's home.
pub(super) fn keeper_name(host: &str, agent_id: i64, task: Task) -> String {
    format!("muster-{}-{agent_id}-{}", short(host), task.word())
}

/// Name of the agent's volume, distinct from that of an earlier agent with the same number.
pub(super) fn volume(host: &str, agent_id: i64, created_at: i64) -> String {
    format!("muster-{}-{agent_id}-{created_at}", short(host))
}

fn short(host: &str) -> &str {
    host.get(..12).unwrap_or(host)
}

/// The agent's own user, so that per-user limits and /proc separate agents.
pub(super) fn user(agent_id: i64) -> u32 {
    // A rootless engine has 65,536 users.
    20_000 + u32::try_from(agent_id.rem_euclid(40_000)).unwrap_or_default()
}

/// Labels of all resources that this host creates for an agent.
pub(super) fn labels(host: &str, agent_id: i64, generation: Option<i64>) -> HashMap<String, String> {
    let own = [(HOST.to_owned(), host.to_owned()), (AGENT.to_owned(), agent_id.to_string())];
    own.into_iter().chain(generation.map(|number| (GENERATION.to_owned(), number.to_string()))).collect()
}

/// A launch's container. `own` is the image's program with its arguments.
pub(super) fn container(
    settings: &Settings,
    prepared: &PreparedLaunch<'_>,
    (uid, gid): (u32, u32),
    image: &str,
    own: Vec<String>,
) -> ContainerCreateBody {
    let words = match &prepared.program {
        Some(program) => {
            let command = program.command.display().to_string();
            std::iter::once(command).chain(program.args.iter().cloned()).collect()
        }
        None => own,
    };
    let users = Contained { uid, gid, agent: user(prepared.agent_id) };
    ContainerCreateBody {
        image: Some(image.to_owned()),
        user: Some("0:0".to_owned()),
        entrypoint: Some(vec![SHIM.to_owned()]),
        cmd: Some(arguments(prepared, users, words)),
        working_dir: Some("/".to_owned()),
        labels: Some(labels(&settings.host, prepared.agent_id, Some(prepared.generation))),
        healthcheck: Some(no_check()),
        stop_signal: Some("SIGKILL".to_owned()),
        host_config: Some(limits(settings, prepared)),
        ..ContainerCreateBody::default()
    }
}

/// The container for a task on an agent's home. It mounts the home's parent folder, since a restore renames there.
pub(super) fn home_container(
    settings: &Settings,
    agent_id: i64,
    task: Task,
    image: &str,
    dir: &Path,
    volume: &Path,
) -> ContainerCreateBody {
    let home = format!("{VOLUME}/{}", volume.file_name().unwrap_or_default().display());
    let above = volume.parent().unwrap_or(volume).to_owned();
    let words = task.to_args(&format!("{KEEPER}/{SOCKET}"), &home);
    let mut own = labels(&settings.host, agent_id, None);
    own.insert(KEEPER_OF.to_owned(), PROCESS.clone());
    ContainerCreateBody {
        image: Some(image.to_owned()),
        user: Some("0:0".to_owned()),
        entrypoint: Some(vec![SHIM.to_owned()]),
        cmd: Some(std::iter::once("keep".to_owned()).chain(words).collect()),
        working_dir: Some("/".to_owned()),
        labels: Some(own),
        healthcheck: Some(no_check()),
        host_config: Some(HostConfig {
            mounts: Some(vec![
                bind(&above, VOLUME.to_owned(), task == Task::Pack),
                bind(&settings.shim, SHIM.to_owned(), true),
                bind(dir, KEEPER.to_owned(), true),
            ]),
            cap_add: Some(KEEPER_CAPABILITIES.map(str::to_owned).to_vec()),
            network_mode: Some("none".to_owned()),
            ..closed()
        }),
        ..ContainerCreateBody::default()
    }
}

/// The shim's arguments.
fn arguments(prepared: &PreparedLaunch<'_>, users: Contained, words: Vec<String>) -> Vec<String> {
    let mut words = words.into_iter();
    let mut launch =
        Launch::new(LAUNCH, prepared.generation.unsigned_abs(), words.next().unwrap_or_default());
    (launch.spool_bytes, launch.line_bytes) = prepared.bounds;
    launch.cwd = Some(HOME.into());
    launch.contained = Some(users);
    launch.spec.args = words.map(OsString::from).collect();
    launch.spec.gate = Some(prepared.gate.clone());
    launch.spec.limits = Limits { nofile: Some(OPEN_FILES), ..Limits::default() };
    let args = launch.to_args().into_iter().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once("contain".to_owned()).chain(args).collect()
}

fn limits(settings: &Settings, prepared: &PreparedLaunch<'_>) -> HostConfig {
    let plan = &prepared.plan.limits;
    let memory = plan.memory_mb.or(settings.bounds.memory_mb).map(|mib| mib << 20);
    let cpus = plan.cpus.or(settings.bounds.cpus).map(|cpus| (cpus * 1e9) as i64);
    let network = if prepared.plan.network.privileged { settings.bounds.network.as_str() } else { "none" };
    HostConfig {
        tmpfs: Some([("/tmp".to_owned(), TMP.to_owned())].into()),
        mounts: Some(mounts(settings, prepared)),
        cap_add: Some(CAPABILITIES.map(str::to_owned).to_vec()),
        network_mode: Some(network.to_owned()),
        memory,
        // No swap, so that the limit is strict.
        memory_swap: memory,
        nano_cpus: cpus,
        pids_limit: Some(settings.bounds.pids),
        ulimits: Some(vec![
            ulimit("nofile", Resource::Nofile, OPEN_FILES),
            // Engines may not exceed their own limit.
            ulimit("nproc", Resource::Nproc, 16384),
        ]),
        ..closed()
    }
}

/// Disables the image's health check: it would run as root, with the shim's rights, repeatedly. Even the image named
/// empty may be another one that this machine was tricked into pulling.
fn no_check() -> HealthConfig {
    HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }
}

/// Restrictions of every container: a read-only root, no capabilities by default, no privilege escalation, no restart.
fn closed() -> HostConfig {
    HostConfig {
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            ..RestartPolicy::default()
        }),
        // The agent's output goes to the spool only.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ipc_mode: Some("private".to_owned()),
        ..HostConfig::default()
    }
}

/// A limit, capped at this process's own, which the engine can hardly exceed.
fn ulimit(name: &str, resource: Resource, most: u64) -> ResourcesUlimits {
    let most = getrlimit(resource).maximum.unwrap_or(most).min(most).cast_signed();
    ResourcesUlimits { name: Some(name.to_owned()), soft: Some(most), hard: Some(most) }
}

fn bind(source: &Path, target: String, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target),
        read_only: Some(read_only),
        ..Mount::default()
    }
}

fn mounts(settings: &Settings, prepared: &PreparedLaunch<'_>) -> Vec<Mount> {
    let labels = labels(&settings.host, prepared.agent_id, None);
    let home = Mount {
        typ: Some(MountType::VOLUME),
        source: Some(volume(&settings.host, prepared.agent_id, prepared.plan.created_at)),
        target: Some(HOME.to_owned()),
        volume_options: Some(MountVolumeOptions { labels: Some(labels), ..MountVolumeOptions::default() }),
        ..Mount::default()
    };
    vec![
        home,
        bind(&prepared.given.join("skills"), format!("{HOME}/skills"), true),
        bind(&prepared.given.join("inbox"), format!("{HOME}/inbox"), true),
        bind(&settings.shim, SHIM.to_owned(), true),
        bind(&prepared.dir.join("mcp"), SOCKETS.to_owned(), true),
        bind(&prepared.dir, LAUNCH.to_owned(), false),
    ]
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Bounds, Kind},
        *,
    };

    #[test]
    fn every_agent_has_a_user_of_its_own_that_a_rootless_engine_has() {
        assert_ne!(user(1), user(2));
        for agent_id in [0, 1, 39_999, 40_000, i64::MAX] {
            assert!((20_000..60_000).contains(&user(agent_id)));
        }
    }

    #[test]
    fn a_launch_has_one_name() {
        assert_eq!(name("0123456789abcdef", 7, 3), "muster-0123456789ab-7-g3");
        assert_eq!(volume("0123456789abcdef", 7, 1_000), "muster-0123456789ab-7-1000");
        assert_eq!(keeper_name("0123456789abcdef", 7, Task::Pack), "muster-0123456789ab-7-pack");
    }

    #[test]
    fn nothing_of_an_image_runs_beside_a_home_that_is_copied() {
        let settings = Settings {
            kind: Kind::Docker,
            socket: "/s".into(),
            host: "h".to_owned(),
            shim: "/shim".into(),
            bounds: Bounds::default(),
        };
        let (dir, volume) = (Path::new("/h/pack"), Path::new("/volumes/v/_data"));
        let keeper = home_container(&settings, 7, Task::Pack, "muster/empty", dir, volume);
        assert_eq!(keeper.entrypoint, Some(vec![SHIM.to_owned()]));
        assert_eq!(keeper.labels.unwrap()[KEEPER_OF], *PROCESS, "it is swept when this process is gone");
        assert_eq!(keeper.healthcheck.and_then(|check| check.test), Some(vec!["NONE".to_owned()]));
    }
}
