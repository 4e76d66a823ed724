//! A host's folder: its layout, its owner, and crash-safe writes of its files.
//!
//! ```text
//! <dir>/lock               one host per folder; holds its process id
//!      /identity.json      machine id and host token, readable only by the owner
//!      /joined.json        the control plane that the host serves
//!      /ca.pem             authorities that vouch for it, beside the system's, if the host's owner gave them
//!      /journal.redb       commands, events, and a record per agent
//!      /agents/<id>/home/  the agent's own home, kept across launches
//!      /agents/<id>/log/   the agent's log, within a bound
//!      /agents/<id>/created_at.json   identifies the home's agent: another one may get the number
//!      /backups/<id>/<backup>.tar.zst   a backup of the home
//!      /before/<time>/     data put aside by `rejoin`: journal, unknown agents
//!      /agents/<id>/<generation>.lock   held by the launch's shim
//!      /agents/<id>/<generation>/   one launch: socket, spool, stderr, record, exit
//! ```

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use muster_protocol::{Secret, frame};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::runtime::SavedRuntime;

/// Why the folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{path}: {source}.{}", advice(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{0} is not a folder. Move it away.")]
    NotAFolder(PathBuf),
    /// The file was not written by the host.
    #[error("{path} is not valid ({source}). Restore it, or join again with another folder.")]
    Content { path: PathBuf, source: serde_json::Error },
    /// Another host uses the folder.
    #[error("A host already uses {path} (process {pid}). Stop it first, or choose another folder.")]
    InUse {
        path: PathBuf,
        /// The process that uses it.
        pid: String,
    },
    /// The path is too long for sockets below it.
    #[error(
        "{path} is too long: sockets below it would exceed the system's limit. Choose a path of at most {most} bytes."
    )]
    TooLong {
        path: PathBuf,
        /// The limit in bytes.
        most: usize,
    },
    /// The process is root's, and the folder another user's.
    #[error(
        "{path} belongs to another user (uid {owner}), whose host could not read what root writes there. Do this as that \
         user: `sudo -u '#{owner}' muster host …`."
    )]
    NotRoots { path: PathBuf, owner: u32 },
}

/// The host's identity. The token is secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Id of the folder.
    pub machine_id: String,
    pub token: Secret,
}

/// The control plane that the host serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedState {
    pub url: String,
    pub organization_id: i64,
    pub server_id: i64,
    /// The server's name when the host joined.
    pub server_name: String,
    /// Whether the host's owner allowed plain HTTP to another machine.
    #[serde(default)]
    pub insecure_http: bool,
    /// The runtime, once the host has run.
    #[serde(default)]
    pub runtime: Option<SavedRuntime>,
    /// Whether the host last started with a sandbox.
    #[serde(default)]
    pub sandbox: Option<bool>,
}

/// The file with the agent's creation time.
const CREATED_AT: &str = "created_at.json";

#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens the folder, which may not exist yet. The path is resolved: agents get it, and the kernel reports real
    /// paths to a process that works there.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let root = resolved(path).map_err(|source| FolderError::Io { path: path.to_owned(), source })?;
        // A socket's path has at most 107 bytes; `/agents/<id>/<generation>/mcp/<conversation>` follows the folder.
        let most = 107 - 56;
        if root.as_os_str().len() > most {
            return Err(FolderError::TooLong { path: root, most });
        }
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.redb")
    }

    /// The authorities that the host's owner gave, if any.
    pub fn authorities(&self) -> PathBuf {
        self.root.join("ca.pem")
    }

    /// Keeps authorities, as PEM.
    pub fn keep_authorities(&self, pem: &[u8]) -> Result<(), FolderError> {
        let path = self.authorities();
        write_durably(&path, pem).map_err(|source| FolderError::Io { path, source })
    }

    /// All files of an agent.
    pub fn agent(&self, agent_id: i64) -> PathBuf {
        self.root.join("agents").join(agent_id.to_string())
    }

    /// The creation time of the folder's agent, if it was launched.
    pub fn created_at(&self, agent_id: i64) -> Result<Option<i64>, FolderError> {
        read_json(&self.agent(agent_id).join(CREATED_AT))
    }

    pub fn keep_created_at(&self, agent_id: i64, created_at: i64) -> Result<(), FolderError> {
        create_private(&self.agent(agent_id))?;
        write_json(&self.agent(agent_id).join(CREATED_AT), &created_at)
    }

    /// The folder of an agent's log.
    pub fn log(&self, agent_id: i64) -> PathBuf {
        self.agent(agent_id).join("log")
    }

    pub fn home(&self, agent_id: i64) -> PathBuf {
        self.agent(agent_id).join("home")
    }

    /// The host's files for a contained agent.
    pub fn host_files(&self, agent_id: i64) -> PathBuf {
        self.agent(agent_id).join("given")
    }

    /// The agents that were ever launched here.
    pub fn agents(&self) -> Vec<i64> {
        numbers(&self.root.join("agents"))
    }

    /// The launches of an agent with a folder.
    pub fn launches(&self, agent_id: i64) -> Vec<i64> {
        numbers(&self.agent(agent_id))
    }

    /// Whether this runtime has homes of agents. Those of containers are in the engine.
    pub fn has_homes(&self, runtime: frame::Runtime) -> bool {
        let mark = |agent_id| match runtime {
            frame::Runtime::Process => self.home(agent_id),
            frame::Runtime::Docker | frame::Runtime::Podman => self.host_files(agent_id),
        };
        self.agents().into_iter().any(|agent_id| mark(agent_id).is_dir())
    }

    /// The socket folder for a shim that handles a contained agent's home.
    pub fn home_task_folder(&self, agent_id: i64, task: &str) -> PathBuf {
        self.agent(agent_id).join(task)
    }

    pub fn backups(&self, agent_id: i64) -> PathBuf {
        self.root.join("backups").join(agent_id.to_string())
    }

    pub fn backup(&self, agent_id: i64, backup_id: i64) -> PathBuf {
        self.backups(agent_id).join(format!("{backup_id}.tar.zst"))
    }

    /// The folder for data set aside by a rejoin at this time.
    pub fn aside_folder(&self, now: i64) -> PathBuf {
        self.root.join("before").join(now.to_string())
    }

    /// The lock of a launch's shim, from before its start to its exit. A host killed in between leaves a shim that may
    /// still start.
    pub fn shim_lock(&self, agent_id: i64, generation: i64) -> PathBuf {
        self.agent(agent_id).join(format!("{generation}.lock"))
    }

    /// Whether the launch's shim lives or is starting. In a container the lock is in the shim's own folder.
    pub fn has_shim(&self, agent_id: i64, generation: i64) -> bool {
        let own = self.launch(agent_id, generation).join(muster_shim::folder::LOCK);
        let is_held =
            |path: &Path| muster_shim::folder::open(path).is_ok_and(|file| file.try_lock_shared().is_err());
        is_held(&self.shim_lock(agent_id, generation)) || is_held(&own)
    }

    /// The sockets of a launch that its agent may use.
    pub fn sockets(&self, agent_id: i64, generation: i64) -> PathBuf {
        self.launch(agent_id, generation).join("mcp")
    }

    pub fn launch(&self, agent_id: i64, generation: i64) -> PathBuf {
        self.agent(agent_id).join(generation.to_string())
    }

    /// The mark of a stop by the host's owner, without a running host.
    pub fn stop_mark(&self, agent_id: i64, generation: i64) -> PathBuf {
        self.launch(agent_id, generation).join("stopped")
    }

    /// Refuses root in the folder of another user.
    pub fn require_own(&self) -> Result<(), FolderError> {
        match fs::metadata(&self.root).map(|found| found.uid()) {
            Ok(owner) if owner != 0 && rustix::process::geteuid().is_root() => {
                Err(FolderError::NotRoots { path: self.root.clone(), owner })
            }
            _ => Ok(()),
        }
    }

    /// Creates the folder, private to its owner.
    pub fn create(&self) -> Result<(), FolderError> {
        create_private(&self.root.join("agents"))
    }

    /// Claims the folder until the returned file is dropped.
    pub fn lock(&self) -> Result<File, FolderError> {
        let path = self.root.join("lock");
        let at = |source| FolderError::Io { path: path.clone(), source };
        let open =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        let mut file = open.map_err(at)?;
        if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            file.read_to_string(&mut pid).map_err(at)?;
            return Err(FolderError::InUse { path: self.root.clone(), pid: pid.trim().to_owned() });
        }
        file.set_len(0).map_err(at)?;
        write!(file, "{}", std::process::id()).map_err(at)?;
        Ok(file)
    }

    /// The identity, if there is one.
    pub fn identity(&self) -> Result<Option<Identity>, FolderError> {
        read_json(&self.root.join("identity.json"))
    }

    /// The joined control plane, if any.
    pub fn joined(&self) -> Result<Option<JoinedState>, FolderError> {
        read_json(&self.root.join("joined.json"))
    }

    pub fn keep_identity(&self, identity: &Identity) -> Result<(), FolderError> {
        write_json(&self.root.join("identity.json"), identity)
    }

    pub fn keep_joined(&self, joined: &JoinedState) -> Result<(), FolderError> {
        write_json(&self.root.join("joined.json"), joined)
    }
}

/// A path without symbolic links, as far as it exists.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for known in path.ancestors() {
        match known.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
                return Ok(real.components().chain(rest.components()).collect());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Creates a folder and its parents, private to their owner.
pub fn create_private(path: &Path) -> Result<(), FolderError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| {
        let other = path.ancestors().find(|path| path.exists() && !path.is_dir());
        other.map_or_else(
            || FolderError::Io { path: path.to_owned(), source },
            |other| FolderError::NotAFolder(other.to_owned()),
        )
    })
}

/// Advice about a file that can't be read or written.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " The host's folder must be readable and writable by the user that runs the host."
        }
        _ => "",
    }
}

/// The numeric names in a folder.
fn numbers(folder: &Path) -> Vec<i64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<i64> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_unstable();
    found
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FolderError> {
    match fs::read(path) {
        Ok(bytes) => {
            let value = muster_json::from_slice(&bytes);
            value.map(Some).map_err(|source| FolderError::Content { path: path.to_owned(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FolderError::Io { path: path.to_owned(), source }),
    }
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), FolderError> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| FolderError::Content { path: path.to_owned(), source })?;
    write_durably(path, &bytes).map_err(|source| FolderError::Io { path: path.to_owned(), source })
}

/// Writes a file, private to its owner: a crash leaves the old or the new content.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&next)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_second_host_in_a_folder_learns_about_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.create().unwrap();
        let held = folder.lock().unwrap();
        let refused = folder.lock().unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(held);
        folder.lock().unwrap();
    }

    #[test]
    fn only_its_owner_reads_the_token_and_it_is_not_printed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.create().unwrap();
        assert!(folder.identity().unwrap().is_none());
        let identity = Identity { machine_id: "m".to_owned(), token: "secret-text".to_owned().into() };
        folder.keep_identity(&identity).unwrap();
        assert_eq!(folder.identity().unwrap().unwrap().token.expose(), "secret-text");
        let mode = fs::metadata(dir.path().join("identity.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{identity:?}").contains("secret-text"));
    }

    #[test]
    fn a_folder_behind_a_link_is_where_the_link_leads() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("data");
        fs::create_dir_all(real.join("host")).unwrap();
        let link = |name: &str, to: &Path| {
            let link = dir.path().join(name);
            std::os::unix::fs::symlink(to, &link).unwrap();
            link
        };
        let root = |path: &Path| Folder::open(path).unwrap().root().to_owned();
        assert_eq!(root(&link("itself", &real.join("host"))), real.join("host"));
        let parent = link("parent", &real);
        assert_eq!(root(&parent.join("host")), real.join("host"));
        assert_eq!(root(&parent.join("new/host")), real.join("new/host"), "it need not exist");
        assert_eq!(root(&link("twice", &parent).join("host/")), real.join("host"));
        let long = dir.path().canonicalize().unwrap().join("x".repeat(60));
        fs::create_dir(&long).unwrap();
        let refused = Folder::open(&link("short", &long)).unwrap_err();
        assert!(matches!(refused, FolderError::TooLong { .. }), "what counts is where it leads");
    }

    #[test]
    fn a_path_that_leaves_no_room_for_sockets_is_refused() {
        let refused = Folder::open(Path::new(&format!("/{}", "x".repeat(60)))).unwrap_err();
        assert!(matches!(refused, FolderError::TooLong { .. }));
    }
}
