//! A systemd unit for a host. Agents outlive the host, so systemd must end only the host's own process, and delegates
//! the control groups below it. Hardening is limited to what agents tolerate: they build and run programs, and a
//! sandbox needs a plain /proc, which rules out ProtectKernelTunables and ProtectKernelLogs.

use std::{fs, net::SocketAddr, os::unix::fs::MetadataExt, path::Path};

use crate::runtime::{Kind, SavedRuntime};

/// Advice about a host that runs as root.
pub const ROOT_REMEDY: &str = "A host needs no privileges, and an agent that leaves its sandbox has all of root's: run it as a \
                               user of its own. `muster host unit` prints a systemd unit with one, and how to make it";

/// The default user, if none is given and the folder has no suitable owner.
const USER: &str = "muster-host";

/// Content of the unit.
pub struct UnitOptions<'a> {
    pub program: &'a Path,
    /// The words after the program.
    pub prefix: &'a [&'a str],
    pub dir: &'a Path,
    /// The list of programs.
    pub list: Option<&'a Path>,
    /// The profiles whose programs need no list.
    pub allowed: &'a [String],
    pub runtime: &'a SavedRuntime,
    /// Where the host shows its metrics.
    pub metrics: Option<SocketAddr>,
}

impl UnitOptions<'_> {
    fn line(&self) -> String {
        let words: String = self.prefix.iter().map(|word| format!(" {word}")).collect();
        let mut line = format!("{}{words} run --dir {}", systemd_path(self.program), systemd_path(self.dir));
        line.extend(self.list.map(|path| format!(" --programs {}", systemd_path(path))));
        line.extend(self.allowed.iter().map(|name| format!(" --allow {}", systemd_path(Path::new(name)))));
        line.extend(self.runtime.kind().map(|kind| format!(" --runtime {}", kind.word())));
        line.extend(
            self.runtime.engine.as_deref().map(|socket| format!(" --engine {}", systemd_path(socket))),
        );
        line.extend(self.metrics.map(|address| format!(" --metrics {address}")));
        line
    }

    /// The group for Docker Engine's usual socket. Another socket's owner is unknown here.
    fn groups(&self) -> &'static str {
        match (self.runtime.kind(), &self.runtime.engine) {
            (Some(Kind::Docker), None) => "SupplementaryGroups=docker\n",
            _ => "",
        }
    }
}

/// The unit. A host needs no privileges, so without a `user` it runs as the folder's owner, or as a user to be created
/// if the owner is root or the folder is missing.
pub fn unit(what: &UnitOptions<'_>, user: Option<&str>) -> String {
    let dir = what.dir;
    let owner = fs::metadata(dir).ok().map(|found| found.uid()).filter(|owner| *owner != 0);
    let user = match (user, owner) {
        (Some(user), _) => format!("User={user}\n"),
        (None, Some(owner)) => format!("# The owner of the folder.\nUser={}\n", user_name(owner)),
        (None, None) => format!(
            "# Make this user, and give it the folder: useradd --system --create-home {USER}; \
             mkdir -p {dir}; chown -R {USER} {dir}\n\
             User={USER}\n",
            dir = dir.display()
        ),
    };
    let (line, groups, dir) = (what.line(), what.groups(), systemd_path(dir));
    format!(
        "\
[Unit]
Description=Muster host
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart={line}
{user}{groups}Restart=always
RestartSec=2
# Agents outlive the host: only its own process is ended, and it takes them up again.
KillMode=process
Delegate=yes
TimeoutStopSec=15
LimitNOFILE=65536
TasksMax=infinity
UMask=0077
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=read-only
ReadWritePaths={dir}
ProtectKernelModules=yes
RestrictRealtime=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
"
    )
}

/// The name of this user in /etc/passwd, or the number itself.
fn user_name(id: u32) -> String {
    let (users, id) = (fs::read_to_string("/etc/passwd").unwrap_or_default(), id.to_string());
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = lines.find(|fields| fields.get(2) == Some(&id.as_str()));
    found.map_or(id, |fields| fields[0].to_owned())
}

/// A path in systemd's syntax: quoted, with specifiers and variables escaped.
pub fn systemd_path(path: &Path) -> String {
    let path = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", path.replace('%', "%%").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use muster_protocol::frame::Runtime;

    use super::*;

    fn words<'a>(dir: &'a Path, runtime: &'a SavedRuntime) -> UnitOptions<'a> {
        UnitOptions {
            program: Path::new("/muster"),
            prefix: &["host"],
            dir,
            list: None,
            allowed: &[],
            runtime,
            metrics: None,
        }
    }

    #[test]
    fn the_unit_has_the_options_of_the_host() {
        let runtime = SavedRuntime { runtime: Runtime::Process, engine: None };
        let allowed = ["opencode".to_owned()];
        let mut options = words(Path::new("/h"), &runtime);
        assert!(!unit(&options, None).contains("--metrics"));
        options.metrics = Some(SocketAddr::from(([127, 0, 0, 1], 9465)));
        options.allowed = &allowed;
        let shown = unit(&options, None);
        let expected = "run --dir \"/h\" --allow \"opencode\" --metrics 127.0.0.1:9465\n";
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn a_host_runs_as_root_only_on_request() {
        let runtime = SavedRuntime { runtime: Runtime::Process, engine: None };
        let of = |user, dir: &Path| unit(&words(dir, &runtime), user);
        let new = of(None, Path::new("/does/not/exist"));
        assert!(new.contains("\nUser=muster-host\n") && new.contains("useradd"), "{new}");
        let dir = tempfile::tempdir().unwrap();
        let owned = of(None, dir.path());
        let owner = fs::metadata(dir.path()).unwrap().uid();
        let expected =
            if owner == 0 { "User=muster-host\n".to_owned() } else { format!("User={}\n", user_name(owner)) };
        assert!(owned.contains(&expected), "{owned}");
        assert!(of(Some("root"), dir.path()).contains("\nUser=root\n"));
    }

    #[test]
    fn a_user_is_named_if_it_has_a_name() {
        assert_eq!((user_name(0), user_name(4_294_000_000)), ("root".to_owned(), "4294000000".to_owned()));
    }

    #[test]
    fn the_unit_says_how_agents_are_run_and_who_may_use_the_engine() {
        let of = |runtime, engine: Option<&str>| {
            let runtime = SavedRuntime { runtime, engine: engine.map(Into::into) };
            unit(&words(Path::new("/h"), &runtime), None)
        };
        let docker = of(Runtime::Docker, None);
        assert!(docker.contains("--dir \"/h\" --runtime docker\n"), "{docker}");
        assert!(docker.contains("\nSupplementaryGroups=docker\n"), "{docker}");
        let podman = of(Runtime::Podman, Some("/p"));
        assert!(
            podman.contains("--runtime podman --engine \"/p\"\n") && !podman.contains("Groups"),
            "{podman}"
        );
        let process = of(Runtime::Process, None);
        assert!(process.contains("--dir \"/h\"\n"), "{process}");
    }

    #[test]
    fn a_path_is_written_as_systemd_reads_it() {
        assert_eq!(systemd_path(Path::new("/a b/50%/$x\"y")), r#""/a b/50%%/$$x\"y""#);
    }
}
