//! The policy folder as last read. Reading it again only reads files that changed.
//!
//! A file counts as unchanged if the file system reports the same times, size and identity. Times are coarse: a file
//! written twice in quick succession may look the same. So a file that changed very recently is read again until enough
//! time has passed.

use std::{
    collections::HashMap,
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::source::{File, Sources};
use crate::base::time::{Clock, Timestamp};

pub(super) struct Folder {
    dir: PathBuf,
    seen: HashMap<String, Seen>,
    pub sources: Sources,
}

struct Seen {
    stamp: Stamp,
    /// Whether the stamp would reveal any later change.
    settled: bool,
    file: File,
}

/// The file system's report on a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn from_metadata(about: &Metadata) -> Self {
        Self {
            file: (about.dev(), about.ino()),
            size: about.size(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    fn is_settled(self, now: Timestamp) -> bool {
        let (seconds, _) = self.modified.max(self.changed);
        // Otherwise a file with a time far in the future would be read again forever.
        // Before that, the file system's times may not reveal another change.
        now.0.abs_diff(seconds.saturating_mul(1_000)) > 3_000
    }
}

impl Folder {
    pub fn read(dir: &Path) -> Self {
        let mut folder = Self { dir: dir.to_owned(), seen: HashMap::new(), sources: Sources::embedded() };
        folder.look(Clock::system().now());
        folder
    }

    /// Reads what changed, and returns the number of files.
    pub fn look(&mut self, now: Timestamp) -> usize {
        let (mut before, mut seen, mut read) = (std::mem::take(&mut self.seen), HashMap::new(), 0);
        self.sources = Sources::read(&self.dir, &mut |root, name| {
            // Taken before the file is read, so that a change in between is noticed next time.
            let stamp = root.about(name).map(|about| Stamp::from_metadata(&about));
            let known = before.remove(name).filter(|it| it.settled && Some(it.stamp) == stamp);
            let file = known.map_or_else(
                || {
                    read += 1;
                    root.read(name)
                },
                |known| known.file,
            );
            if let Some(stamp) = stamp.filter(|_| file.text.is_ok()) {
                let seen_now = Seen { stamp, settled: stamp.is_settled(now), file: file.clone() };
                seen.insert(name.to_owned(), seen_now);
            }
            file
        });
        self.seen = seen;
        read
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::{super::tests::folder, *};

    #[test]
    fn only_changed_files_are_read_again() {
        let dir = folder(&[]);
        let path = |org: usize| dir.path().join(format!("orgs/{org}.csv"));
        let line = |org, permission| format!("p, VIEWER, {org}, {permission}, allow\n");
        for org in 1..=1_000 {
            fs::write(path(org), line(org, "contact.view")).unwrap();
        }
        let mut folder = Folder::read(dir.path());
        let later = |seconds| Clock::system().now().plus(Duration::from_secs(seconds));
        assert_eq!(folder.look(later(10)), 1_003, "written a moment ago, so it is read again");
        let before = folder.sources.version.clone();
        assert_eq!((folder.look(later(11)), folder.look(later(12))), (0, 0));
        // The same size and time as before.
        let modified = fs::metadata(path(7)).unwrap().modified().unwrap();
        fs::write(path(7), line(7, "contact.edit")).unwrap();
        fs::File::open(path(7)).unwrap().set_modified(modified).unwrap();
        assert_eq!(folder.look(later(13)), 1);
        assert_ne!(folder.sources.version, before);
        // One file replaced, one removed, one added.
        fs::rename(path(8), path(9)).unwrap();
        fs::write(path(1_001), line(1_001, "contact.view")).unwrap();
        assert_eq!(folder.look(later(14)), 2);
        assert_eq!(folder.sources.orgs.len(), 1_000);
        assert_eq!(folder.look(later(15)), 0);
    }

    #[test]
    fn a_file_that_is_written_twice_at_one_moment_is_read_twice() {
        let dir = folder(&[]);
        let mut folder = Folder::read(dir.path());
        folder.look(Clock::system().now().plus(Duration::from_secs(10)));
        let file = dir.path().join("orgs/7.csv");
        fs::write(&file, "# one\n").unwrap();
        let at = Timestamp(fs::metadata(&file).unwrap().mtime() * 1_000);
        assert!(folder.look(at) > 0 && folder.look(at) > 0, "its time can't reveal another change");
        assert!(folder.look(at.plus(Duration::from_secs(4))) > 0, "the last one at that moment");
        assert_eq!(folder.look(at.plus(Duration::from_secs(5))), 0);
    }
}
