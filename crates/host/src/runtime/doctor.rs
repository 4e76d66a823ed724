//! Checks of an engine for `doctor`.

use bollard::models::SystemInfo;

use super::{Engine, EngineError, Kind, args::usual_memory};
use crate::doctor::{Finding, bad, fine, note};

impl Engine {
    /// Runs all checks.
    pub async fn examine(&self) -> Vec<Finding> {
        let info = match self.info().await {
            Ok(info) => info,
            Err(error) => return vec![bad(error.to_string())],
        };
        let (engine, version) = (self.settings.kind.name(), info.server_version.clone().unwrap_or_default());
        let socket = self.settings.socket.display();
        let mut found = vec![fine(format!("{engine} {version} answers on {socket}"))];
        found.push(self.restart_effect(&info));
        found.extend(bounds(&info));
        found.extend(isolation(&info));
        if !rustix::process::geteuid().is_root() {
            found.push(note(
                "access to the engine's socket allows everything that the engine can do on this machine: give it \
                 to this user only",
            ));
        }
        found
    }

    async fn info(&self) -> Result<SystemInfo, EngineError> {
        let client = self.client().await?;
        let info = client.info().await;
        info.map_err(|error| client.error("The engine can't be asked about itself", error))
    }

    /// Effect of an engine's restart on agents.
    fn restart_effect(&self, info: &SystemInfo) -> Finding {
        match self.settings.kind {
            Kind::Podman => fine("agents keep running when Podman's service stops"),
            Kind::Docker if info.live_restore_enabled == Some(true) => {
                fine("live-restore is on: agents keep running when Docker Engine is restarted or killed")
            }
            Kind::Docker => note(
                "live-restore is off: every agent ends when Docker Engine is restarted. Set \"live-restore\": true in \
                 /etc/docker/daemon.json, and reload it",
            ),
        }
    }
}

fn bounds(info: &SystemInfo) -> Vec<Finding> {
    let driver = info.cgroup_driver.map(|driver| driver.to_string()).unwrap_or_default();
    let version = info.cgroup_version.map(|version| version.to_string()).unwrap_or_default();
    let mut found = vec![fine(format!("control groups: version {version}, by {driver}"))];
    // Podman omits the usual ones.
    let all =
        [(info.memory_limit, "memory"), (info.pids_limit, "processes"), (info.cpu_cfs_quota, "processors")];
    for (is_bounded, what) in all {
        if is_bounded == Some(false) {
            found.push(bad(format!(
                "the engine can't limit {what}: the kernel or the user has no control group for it"
            )));
        }
    }
    let memory = match usual_memory() {
        Some(most) => format!("{most} MiB of memory, half of this machine's,"),
        None => "all memory".to_owned(),
    };
    found.push(fine(format!(
        "unless `run` or the control plane says, an agent may take {memory} and all processors"
    )));
    if info.swap_limit == Some(false) {
        found.push(note("swap isn't bounded: an agent may use as much of it as it has memory"));
    }
    found
}

fn isolation(info: &SystemInfo) -> Vec<Finding> {
    let options = info.security_options.clone().unwrap_or_default();
    let has = |word: &str| options.iter().any(|option| option.contains(word));
    let mut found = Vec::new();
    if has("userns") {
        found.push(bad(
            "the engine maps users (userns-remap), so its containers can't use the host's folder. Run a rootless \
             engine as this host's user instead",
        ));
    }
    found.push(if has("rootless") {
        fine("the engine is rootless: root in a container is this host's user")
    } else {
        fine("root in a container is root here: agents are never root, and have no capability")
    });
    found.push(if has("seccomp") {
        fine("system calls are filtered (seccomp)")
    } else {
        note("system calls aren't filtered: the engine was built or started without seccomp")
    });
    found
}
