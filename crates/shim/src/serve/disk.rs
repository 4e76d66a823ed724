//! Disk work besides the spool: syncing it, and storing the end of the agent's stderr.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use crate::folder::{STDERR, STDERR_BEFORE, STDERR_BYTES};

/// Syncs files on a thread of its own, since a disk may take seconds.
pub(super) struct Syncer {
    work: SyncSender<Vec<Arc<File>>>,
    results: Receiver<io::Result<()>>,
    busy: bool,
}

impl Syncer {
    pub(super) fn start() -> io::Result<Self> {
        let (work, todo) = sync_channel::<Vec<Arc<File>>>(1);
        let (done, results) = sync_channel(1);
        thread::Builder::new().name("sync".to_owned()).stack_size(64 << 10).spawn(move || {
            for files in todo {
                if done.send(sync(&files)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { work, results, busy: false })
    }

    /// Whether a sync is running. An error belongs to the last one.
    pub(super) fn is_busy(&mut self) -> io::Result<bool> {
        if self.busy
            && let Ok(result) = self.results.try_recv()
        {
            self.busy = false;
            result?;
        }
        Ok(self.busy)
    }

    /// Starts a sync, unless one is running.
    pub(super) fn begin(&mut self, files: Vec<Arc<File>>) {
        self.busy = self.work.try_send(files).is_ok();
    }

    /// Syncs these files, and waits.
    pub(super) fn finish(&mut self, files: &[Arc<File>]) -> io::Result<()> {
        if self.busy {
            self.busy = false;
            self.results.recv().map_err(io::Error::other)??;
        }
        sync(files)
    }
}

fn sync(files: &[Arc<File>]) -> io::Result<()> {
    files.iter().try_for_each(|file| file.sync_data())
}

/// The agent's stderr: two files; the older one is dropped once the newer one is full. It is best effort: a full disk
/// loses some of it.
pub(super) struct Ring {
    dir: PathBuf,
    file: Option<File>,
    len: u64,
}

impl Ring {
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), file: None, len: 0 }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.len >= STDERR_BYTES {
            drop(fs::rename(self.dir.join(STDERR), self.dir.join(STDERR_BEFORE)));
            self.file = None;
        }
        if self.file.is_none() {
            self.file = File::create(self.dir.join(STDERR)).ok();
            self.len = 0;
        }
        if let Some(file) = &mut self.file
            && file.write_all(bytes).is_ok()
        {
            self.len += bytes.len() as u64;
        }
    }
}
