//! Isolation of agents that run as plain processes: bubblewrap's arguments, and the protection in force here, for
//! `doctor`.

use std::{
    ffi::{OsStr, OsString},
    fmt::{self, Display, Formatter},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::seccomp::filter;

/// Paths visible to a sandboxed agent, in addition to the read-only system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Writable paths: the agent's home.
    pub writable: Vec<PathBuf>,
    /// Readable paths: its program, if not part of the system, and its sockets.
    pub readable: Vec<PathBuf>,
    /// Whether loopback is its only network.
    pub no_network: bool,
}

/// System folders without files private to root. Missing ones are skipped, here and below.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"];

/// Targets of `/etc/resolv.conf`: their folder, since the files in it are replaced while the agent runs.
const RESOLVERS: &[&str] = &["/run/systemd/resolve"];

/// The same without a network. The folder contains a socket that resolves names for every client, without any network,
/// so only the files are shown.
const RESOLVERS_ALONE: &[&str] =
    &["/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"];

/// Further paths for users other than root, who can't read the keys and passwords in them.
const MIXED: &[&str] = &["/etc", "/opt"];

/// Paths for root's sandbox instead. Its user id is root's, so every visible key and password would be readable. A list
/// of hidden files would fail: a rewritten file becomes visible again.
const PUBLIC: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/static",
    "/etc/terminfo",
    "/etc/timezone",
];

/// System paths visible in a sandbox.
fn visible_paths(is_root: bool, no_network: bool) -> impl Iterator<Item = &'static str> {
    let resolvers = if no_network { RESOLVERS_ALONE } else { RESOLVERS };
    SYSTEM.iter().chain(resolvers).chain(if is_root { PUBLIC } else { MIXED }).copied()
}

/// Whether every sandbox without a network shows this path.
pub fn shows(path: &Path) -> bool {
    visible_paths(rustix::process::geteuid().is_root(), true).any(|folder| path.starts_with(folder))
}

impl Sandbox {
    /// The arguments of bubblewrap for a program in this sandbox: own processes, /tmp, /dev and IPC, no capabilities.
    /// The sandbox dies with its parent, and shares the machine's network unless it has none.
    pub fn arguments(&self, cwd: &Path, program: &OsStr, args: &[OsString]) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let mut add = |words: &[&OsStr]| all.extend(words.iter().map(OsString::from));
        for word in ["user", "pid", "ipc", "uts", "cgroup-try"] {
            add(&[format!("--unshare-{word}").as_ref()]);
        }
        if self.no_network {
            add(&["--unshare-net".as_ref()]);
        }
        // The same session, so that signals for the agent's process group arrive. It has no terminal: see `exec::exec`.
        add(&["--die-with-parent".as_ref(), "--cap-drop".as_ref(), "ALL".as_ref()]);
        let visible = || visible_paths(rustix::process::geteuid().is_root(), self.no_network).map(Path::new);
        for path in visible() {
            add(&["--ro-bind-try".as_ref(), path.as_ref(), path.as_ref()]);
        }
        add(&["--proc".as_ref(), "/proc".as_ref(), "--dev".as_ref(), "/dev".as_ref()]);
        add(&["--tmpfs".as_ref(), "/tmp".as_ref()]);
        // After /tmp, since they may be below it. bubblewrap can't mount on a link, such as a virtual environment's
        // `python3`, so a path below another one is not mounted again.
        let is_below = |path: &Path| {
            let mut others = self.readable.iter().filter(|other| *other != path);
            others.any(|other| path.starts_with(other)) || visible().any(|other| path.starts_with(other))
        };
        for path in self.readable.iter().filter(|path| !is_below(path)) {
            add(&["--ro-bind".as_ref(), path.as_ref(), path.as_ref()]);
        }
        for path in &self.writable {
            add(&["--bind".as_ref(), path.as_ref(), path.as_ref()]);
        }
        add(&["--chdir".as_ref(), cwd.as_ref(), "--".as_ref(), program]);
        all.extend(args.iter().cloned());
        all
    }
}

/// Isolation of agents as plain processes on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// Whether an agent dies with its shim, can't gain privileges, and leaves no processes behind.
    pub linux: bool,
    /// Whether bubblewrap can be used.
    pub bubblewrap: Bubblewrap,
    /// Whether agents run as root, unless the host's owner changes that.
    pub root: bool,
}

/// State of bubblewrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bubblewrap {
    /// Usable.
    Works(PathBuf),
    /// Installed, but unable to create a sandbox.
    Fails {
        /// The program.
        path: PathBuf,
        /// Its error.
        reason: String,
    },
    /// Not on the PATH.
    Absent,
}

/// Probes this machine.
pub fn isolation() -> Isolation {
    probe(None)
}

/// Probes this machine for agents with homes in this folder.
pub fn isolation_in(folder: &Path) -> Isolation {
    probe(Some(folder).filter(|folder| folder.is_dir()))
}

fn probe(folder: Option<&Path>) -> Isolation {
    let bubblewrap =
        find_program("bwrap".as_ref()).map_or(Bubblewrap::Absent, |path| match try_sandbox(&path, folder) {
            Ok(()) => Bubblewrap::Works(path),
            Err(reason) => Bubblewrap::Fails { path, reason },
        });
    Isolation { linux: cfg!(target_os = "linux"), bubblewrap, root: rustix::process::geteuid().is_root() }
}

/// Creates a sandbox like an agent's, in the real path of its home.
fn try_sandbox(bwrap: &Path, folder: Option<&Path>) -> Result<(), String> {
    let sandbox =
        Sandbox { writable: folder.map(Path::to_owned).into_iter().collect(), ..Sandbox::default() };
    let cwd = folder.unwrap_or(Path::new("/")).canonicalize().map_err(|error| error.to_string())?;
    let args = sandbox.arguments(&cwd, "true".as_ref(), &[]);
    let filter = filter().map_err(|error| error.to_string())?;
    let mut command = Command::new(bwrap);
    command.args(["--new-session", "--seccomp", "0"]).args(args).stdin(filter);
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let says = String::from_utf8_lossy(&output.stderr);
    Err(says.lines().next().unwrap_or("it says nothing").chars().take(200).collect())
}

impl Display for Isolation {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        writeln!(to, "own process group, limits, no core dumps, umask 077: yes")?;
        let linux = if self.linux { "yes" } else { "no: only on Linux" };
        writeln!(to, "no new privileges, dies with its shim, leaves no processes: {linux}")?;
        match &self.bubblewrap {
            Bubblewrap::Works(path) => writeln!(to, "bubblewrap: {}", path.display())?,
            Bubblewrap::Fails { path, reason } => {
                writeln!(to, "bubblewrap: {} is there, and can't make a sandbox: {reason}", path.display())?;
            }
            Bubblewrap::Absent => writeln!(to, "bubblewrap: no: bwrap is not on the PATH")?,
        }
        if self.root {
            writeln!(to, "user: root: an agent without a sandbox can do everything on this machine")?;
        }
        writeln!(to, "disk: what an agent writes outside its spool is not bounded")
    }
}

/// The path of a program: itself if it contains a slash, else from the PATH.
pub(crate) fn find_program(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return std::path::absolute(path).ok().filter(|path| is_executable(path));
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let candidates =
        std::env::split_paths(&folders).filter_map(|folder| std::path::absolute(folder.join(path)).ok());
    candidates.into_iter().find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_in_the_order_that_bubblewrap_applies_them() {
        let sandbox = Sandbox {
            writable: vec!["/tmp/home".into()],
            readable: vec!["/srv/agent".into(), "/srv/agent/run".into(), "/usr/bin/python3".into()],
            no_network: false,
        };
        let args =
            sandbox.arguments(Path::new("/tmp/home"), "/srv/agent/run".as_ref(), &["-v".into(), "".into()]);
        let text: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        let all = text.join(" ");
        assert!(all.starts_with(
            "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent \
             --cap-drop ALL --ro-bind-try /usr /usr "
        ));
        assert!(all.ends_with(
            "--proc /proc --dev /dev --tmpfs /tmp --ro-bind /srv/agent /srv/agent --bind /tmp/home /tmp/home \
             --chdir /tmp/home -- /srv/agent/run -v "
        ));
        assert!(!text.contains(&"--unshare-net"), "the network is shared");
        let alone = Sandbox { no_network: true, ..sandbox.clone() };
        assert!(alone.arguments(Path::new("/"), "x".as_ref(), &[]).contains(&"--unshare-net".into()));
        assert_eq!(text.last(), Some(&""), "an empty argument stays one");
    }

    #[test]
    fn root_shows_its_agents_nothing_that_only_root_may_see() {
        let is_below = |path: &str, folder: &str| Path::new(path).starts_with(folder);
        assert!(
            visible_paths(false, true).any(|path| path == "/etc")
                && visible_paths(false, true).any(|path| path == "/opt")
        );
        for secret in
            ["/etc/shadow", "/etc/ssh", "/etc/ssl/private", "/etc/pki/tls/private", "/opt/x", "/root"]
        {
            assert_eq!(visible_paths(true, true).find(|path| is_below(secret, path)), None, "{secret}");
        }
        assert!(
            visible_paths(true, true).any(|path| path == "/usr")
                && visible_paths(true, true).any(|path| path == "/etc/passwd")
        );
    }

    #[test]
    fn without_a_network_a_sandbox_shows_no_socket_that_has_one() {
        let is_below = |path: &str, folder: &str| Path::new(path).starts_with(folder);
        let (socket, file) =
            ("/run/systemd/resolve/io.systemd.Resolve", "/run/systemd/resolve/stub-resolv.conf");
        for is_root in [false, true] {
            assert_eq!(visible_paths(is_root, true).find(|path| is_below(socket, path)), None);
            assert!(
                [false, true]
                    .iter()
                    .all(|alone| visible_paths(is_root, *alone).any(|path| is_below(file, path)))
            );
        }
    }

    #[test]
    fn a_program_is_found_by_name_or_path() {
        assert!(find_program("sh".as_ref()).is_some_and(|path| path.is_absolute()));
        assert_eq!(find_program("/bin/sh".as_ref()), Some("/bin/sh".into()));
        assert_eq!(find_program("/etc/passwd".as_ref()), None, "it can't be run");
        assert_eq!(find_program("no-such-program".as_ref()), None);
    }
}
