//! Changes to the key file, one at a time.
//!
//! Reading, changing and replacing the file are three steps. Two processes that took them at once would both begin with
//! the same keys, and the file of the slower one would lack the key that the faster one has announced, under which the
//! service may have sealed by then. So whoever changes the file holds a lock beside it (`keys.toml.lock`) from before it
//! is read until it is replaced. The lock is the system's: it ends with the process, however that ends, and the empty
//! file stays, since removing it would let two hold locks of the same name.

use std::{
    ffi::OsString,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;

use crate::{
    base::{
        files,
        problem::{Code, Problem, Result},
    },
    core::{Core, audit::Origin, sealing::KeyFile},
};

/// How often a lock that somebody else holds is tried.
const RETRY: Duration = Duration::from_millis(50);
/// How often at most: ten seconds, many times as long as a change takes.
const TRIES: u32 = 200;

/// The key file, which nobody else changes meanwhile.
#[derive(Debug)]
pub(super) struct Change {
    /// The keys as they are, and as they will be.
    pub(super) file: KeyFile,
    path: PathBuf,
    /// Held until this is dropped.
    _lock: File,
}

impl Change {
    /// Waits for the lock, then reads the file.
    ///
    /// # Errors
    /// `CONFLICT` where the keys come from `MUSTER_KEYS`, or where somebody holds the lock for longer than a change takes;
    /// the file can't be read.
    pub(super) async fn begin(core: &Core) -> Result<Self> {
        let path = core.config.rotatable_keys()?.to_owned();
        let lock = hold(&path, TRIES).await?;
        // Read, never made: a file that has gone missing is no reason to begin with other keys.
        let file = KeyFile::load(&path).map_err(Problem::internal)?;
        Ok(Self { file, path, _lock: lock })
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// It can't be written; then the keys are as they were.
    pub(super) fn save(self) -> Result<()> {
        self.file.save(&self.path).map_err(Problem::internal)
    }
}

/// Adds a sealing key to the key file and, unless it is only to be prepared, makes it the active one. Its id, and whether
/// it is active.
///
/// # Errors
/// `CONFLICT` where the keys come from `MUSTER_KEYS`, or while somebody else changes them; the file can't be written.
pub async fn rotate_sealing(core: &Core, only_prepare: bool) -> Result<(u32, bool)> {
    let mut change = Change::begin(core).await?;
    let id = if only_prepare { change.file.prepare_sealing() } else { change.file.rotate_sealing() };
    let is_active = change.file.ring().active_id() == id;
    change.save()?;
    let changes = json!({ "id": id, "active": is_active });
    let target = ("sealing key", Some(id.into()));
    Origin::operator(core).record_after("rotateSealingKey", target, changes).await?;
    Ok((id, is_active))
}

async fn hold(keys: &Path, tries: u32) -> Result<File> {
    let path = beside(keys);
    let failed = |error: io::Error| Problem::internal(anyhow::anyhow!("{}: {error}", path.display()));
    let file = files::private().create(true).truncate(false).open(&path).map_err(failed)?;
    for _ in 0..tries {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(RETRY).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    let detail = format!(
        "Another process is changing the keys: it holds {}. Nothing was changed; try again when it has ended.",
        path.display()
    );
    Err(Problem::new(Code::Conflict, detail))
}

fn beside(keys: &Path) -> PathBuf {
    let mut name = OsString::from(keys);
    name.push(".lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_too_long_is_told_and_the_lock_ends_with_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys.toml");
        let held = hold(&keys, 1).await.unwrap();
        let refused = hold(&keys, 2).await.unwrap_err();
        assert_eq!(refused.code, Code::Conflict);
        assert!(refused.detail.contains("keys.toml.lock"), "{refused}");
        drop(held);
        hold(&keys, 1).await.unwrap();
        assert!(hold(&folder.path().join("nowhere/keys.toml"), 1).await.is_err());
    }
}
