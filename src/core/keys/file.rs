//! Changes to the key file, one at a time.
//!
//! Reading, changing and replacing the file are three steps. Two processes doing this at once would start with the same
//! keys, and the slower one's file would lack the key that the faster one has announced, with which the service may
//! already have sealed. So a process that changes the file holds a lock next to it (`keys.toml.lock`) from before the
//! read until the file is replaced. The operating system releases the lock when the process ends, even by a crash. The
//! empty file stays: removing it would let two processes hold locks of the same name.

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

/// The key file, locked against changes by others.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) file: KeyFile,
    path: PathBuf,
    /// Held until this is dropped.
    _lock: File,
}

impl Change {
    /// Waits for the lock, then reads the file.
    ///
    /// # Errors
    /// `CONFLICT` if the keys come from `MUSTER_KEYS`, or if another process holds the lock for too long; the file
    /// can't be read.
    pub(super) async fn begin(core: &Core) -> Result<Self> {
        let path = core.config.rotatable_keys()?.to_owned();
        // Ten seconds, many times the duration of a change.
        let lock = acquire_lock(&path, 200).await?;
        // Never created: if the file is missing, new keys would be the wrong ones.
        let file = KeyFile::load(&path).map_err(Problem::internal)?;
        Ok(Self { file, path, _lock: lock })
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// It can't be written; the keys are then unchanged.
    pub(super) fn save(self) -> Result<()> {
        self.file.save(&self.path).map_err(Problem::internal)
    }
}

/// Adds a sealing key to the key file and, unless `only_prepare`, makes it the active one. Returns its id and whether
/// it is active.
///
/// # Errors
/// `CONFLICT` if the keys come from `MUSTER_KEYS`, or while another process changes them; the file can't be written.
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

async fn acquire_lock(keys: &Path, tries: u32) -> Result<File> {
    let path = beside(keys);
    let failed = |error: io::Error| Problem::internal(anyhow::anyhow!("{}: {error}", path.display()));
    let file = files::private_options().create(true).truncate(false).open(&path).map_err(failed)?;
    for _ in 0..tries {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    let detail = format!(
        "Another process is changing the keys: it holds {}. Nothing was changed; try again when it is done.",
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
    async fn waiting_too_long_fails_and_the_lock_ends_with_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys.toml");
        let held = acquire_lock(&keys, 1).await.unwrap();
        let refused = acquire_lock(&keys, 2).await.unwrap_err();
        assert_eq!(refused.code, Code::Conflict);
        assert!(refused.detail.contains("keys.toml.lock"), "{refused}");
        drop(held);
        acquire_lock(&keys, 1).await.unwrap();
        assert!(acquire_lock(&folder.path().join("nowhere/keys.toml"), 1).await.is_err());
    }
}
