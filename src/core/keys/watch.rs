//! Loads a changed key file within a second.
//!
//! It polls the file's size, time and inode, which is cheap and works on every file system, even when a new file
//! replaces the old one under its name.

use std::{fs::Metadata, path::Path, sync::Arc};

use crate::{base::bounds, core::Core};

/// Watches the key file for as long as it is polled.
pub async fn watch(core: Arc<Core>) {
    if core.config.keys_are_given() {
        return;
    }
    let path = core.config.keys_file.clone();
    let mut seen = fingerprint(&path);
    loop {
        tokio::time::sleep(bounds::POLL).await;
        let now = fingerprint(&path);
        if now != seen && now.is_some() {
            seen = now;
            reload(&core);
        }
    }
}

/// Reads the key file again. If it can't be read, the ring stays as it is and the log says why.
pub fn reload(core: &Core) {
    match core.config.existing_keys() {
        Ok(file) => {
            let (active, before) = (file.ring().active_id(), core.sealing.active_id());
            core.sealing.replace(file.ring().clone());
            tracing::info!(active, before, "keys.ring_reloaded");
        }
        Err(error) => tracing::error!(%error, "keys.file_refused; the ring is unchanged"),
    }
}

/// Changes when the file does.
fn fingerprint(path: &Path) -> Option<(u64, std::time::SystemTime, u64)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()?, inode(&about)))
}

#[cfg(unix)]
fn inode(about: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(about)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}
