use std::{
    ffi::OsString,
    fs::Permissions,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
};

use muster_shim::home_archive::Task;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::*;

struct Fixture {
    _dir: TempDir,
    folder: Folder,
    home: PathBuf,
    /// A shim does the work, as in a container.
    has_shim: bool,
}

impl Fixture {
    fn new() -> Self {
        Self::with(false)
    }

    fn with(has_shim: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.create().unwrap();
        let home = folder.home(7);
        fs::create_dir_all(&home).unwrap();
        Self { _dir: dir, folder, home, has_shim }
    }

    fn reach(&self, task: Task) -> Home {
        if !self.has_shim {
            return Home::Folder(self.home.clone());
        }
        let socket = self.folder.root().join("socket");
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let words = task.to_args(socket.to_str().unwrap(), self.home.to_str().unwrap());
        let words = std::iter::once("keep".to_owned()).chain(words).map(OsString::from);
        std::thread::spawn(move || muster_shim::main(&[], words));
        Home::Volume(listener.accept().unwrap().0)
    }

    fn try_back_up(&self, id: i64, reserve: u64) -> Result<CompleteBackup> {
        back_up(&self.folder, self.reach(Task::Pack), 7, id, reserve)
    }

    fn back_up(&self, id: i64) -> CompleteBackup {
        self.try_back_up(id, 0).unwrap()
    }

    fn try_restore(&self, id: i64, command: i64, sha256: &str, reserve: u64) -> Result<()> {
        let home = self.reach(Task::Restore { command_id: command, reserve });
        restore(&self.folder, home, 7, id, command, sha256, reserve)
    }

    fn restore(&self, id: i64, command: i64, sha256: &str) -> Result<()> {
        self.try_restore(id, command, sha256, 0)
    }

    /// Replaces a backup by another archive, and returns its digest.
    fn forge(&self, id: i64, build: impl FnOnce(&mut Builder<Vec<u8>>)) -> String {
        let mut builder = Builder::new(Vec::new());
        build(&mut builder);
        let bytes = zstd::encode_all(builder.into_inner().unwrap().as_slice(), 1).unwrap();
        fs::create_dir_all(self.folder.backups(7)).unwrap();
        fs::write(self.folder.backup(7, id), &bytes).unwrap();
        hex(&Sha256::digest(&bytes))
    }

    /// Names next to the home.
    fn beside(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.parent().unwrap()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header
}

/// A path next to the home.
fn beside(home: &Path, what: &str) -> PathBuf {
    home.with_file_name(format!("home.{what}"))
}

#[test]
fn a_home_comes_back_as_it_was() {
    comes_back(&Fixture::new());
}

#[test]
fn a_home_that_a_shim_reaches_comes_back_as_it_was() {
    comes_back(&Fixture::with(true));
}

fn comes_back(fixture: &Fixture) {
    let home = &fixture.home;
    let long = "n".repeat(255);
    fs::create_dir_all(home.join("a").join(&long)).unwrap();
    fs::write(home.join("a").join(&long).join(&long), "deep").unwrap();
    fs::write(home.join(OsStrBytes(b"not \xff text\n").path()), "odd").unwrap();
    fs::write(home.join("run"), "#!").unwrap();
    fs::set_permissions(home.join("run"), Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(home.join("run"), home.join("same")).unwrap();
    symlink("../../../etc/passwd", home.join("out")).unwrap();
    symlink("/etc", home.join("etc")).unwrap();
    mknodat(CWD, home.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let sparse = File::create(home.join("sparse")).unwrap();
    sparse.set_len(64 * 1024 * 1024).unwrap();
    fs::create_dir(home.join("closed")).unwrap();
    fs::write(home.join("closed/in"), "in").unwrap();
    fs::set_permissions(home.join("closed"), Permissions::from_mode(0o555)).unwrap();
    let written = fixture.back_up(1);
    let file = fixture.folder.backup(7, 1);
    assert_eq!(fs::metadata(&file).unwrap().len(), written.bytes);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(written.bytes < 100_000, "holes cost nothing: {}", written.bytes);

    fs::set_permissions(home.join("closed"), Permissions::from_mode(0o755)).unwrap();
    fs::write(home.join("closed/in"), "changed").unwrap();
    fs::remove_file(home.join("out")).unwrap();
    fs::write(home.join("new"), "new").unwrap();
    fixture.restore(1, 11, &written.sha256).unwrap();
    let read = |name: &str| fs::read_to_string(home.join(name)).unwrap();
    assert_eq!(read(&format!("a/{long}/{long}")), "deep");
    assert_eq!(fs::read(home.join(OsStrBytes(b"not \xff text\n").path())).unwrap(), b"odd");
    assert_eq!(read("closed/in"), "in");
    assert_eq!(fs::metadata(home.join("closed")).unwrap().permissions().mode() & 0o777, 0o555);
    assert_eq!(fs::metadata(home.join("run")).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs::metadata(home.join("run")).unwrap().ino(), fs::metadata(home.join("same")).unwrap().ino());
    assert_eq!(fs::read_link(home.join("out")).unwrap(), Path::new("../../../etc/passwd"));
    assert_eq!(fs::read_link(home.join("etc")).unwrap(), Path::new("/etc"));
    assert!(!home.join("new").exists());
    assert!(home.join("pipe").symlink_metadata().is_err(), "pipes are left out");
    let sparse = fs::metadata(home.join("sparse")).unwrap();
    assert_eq!(sparse.len(), 64 * 1024 * 1024);
    assert!(sparse.blocks() < 1000, "the hole is one again");
    assert_eq!(fixture.beside(), ["home", "home.before-11"]);
    fixture.reach(Task::Drop).drop_old().unwrap();
    assert_eq!(fixture.beside(), ["home"]);
}

/// A path with non-text bytes.
struct OsStrBytes(&'static [u8]);

impl OsStrBytes {
    fn path(&self) -> &Path {
        Path::new(std::ffi::OsStr::from_bytes(self.0))
    }
}

#[test]
fn a_restore_that_was_interrupted_goes_on_where_it_was() {
    goes_on(&Fixture::new());
    goes_on(&Fixture::with(true));
}

fn goes_on(fixture: &Fixture) {
    fs::write(fixture.home.join("file"), "old").unwrap();
    let written = fixture.back_up(1);
    fs::write(fixture.home.join("file"), "newer").unwrap();
    let file = || fs::read_to_string(fixture.home.join("file")).unwrap();
    // Killed while unpacking.
    fs::create_dir(beside(&fixture.home, "unpacking")).unwrap();
    fs::write(beside(&fixture.home, "unpacking").join("half"), "half").unwrap();
    fixture.restore(1, 11, &written.sha256).unwrap();
    assert_eq!(file(), "old");
    // Killed at the very end: a repetition changes nothing, not even later writes.
    fs::write(fixture.home.join("file"), "after").unwrap();
    fixture.restore(1, 11, &written.sha256).unwrap();
    assert_eq!(file(), "after");
    // Killed between the two renames.
    fs::rename(&fixture.home, beside(&fixture.home, "before-12")).unwrap();
    fs::create_dir(beside(&fixture.home, "new-12")).unwrap();
    fs::write(beside(&fixture.home, "new-12").join("file"), "unpacked").unwrap();
    fixture.restore(1, 12, &written.sha256).unwrap();
    assert_eq!(file(), "unpacked");
    assert_eq!(fixture.beside(), ["home", "home.before-11", "home.before-12"]);
}

#[test]
fn a_file_that_was_changed_is_not_restored() {
    let fixture = Fixture::new();
    fs::write(fixture.home.join("file"), "kept").unwrap();
    let written = fixture.back_up(1);
    let path = fixture.folder.backup(7, 1);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    fs::write(fixture.home.join("file"), "newer").unwrap();
    assert!(matches!(fixture.restore(1, 11, &written.sha256), Err(BackupError::Changed)));
    fs::remove_file(&path).unwrap();
    assert!(matches!(fixture.restore(1, 11, &written.sha256), Err(BackupError::Missing)));
    assert_eq!(fs::read_to_string(fixture.home.join("file")).unwrap(), "newer");
    assert_eq!(fixture.beside(), ["home"]);
}

#[test]
fn an_escaping_archive_is_refused_despite_its_digest() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(fixture.home.join("file"), "kept").unwrap();
    let named = |name: &'static str| {
        move |builder: &mut Builder<Vec<u8>>| {
            let mut header = header(EntryType::Regular, 1);
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, &b"x"[..]).unwrap();
        }
    };
    let through = |builder: &mut Builder<Vec<u8>>| {
        builder.append_link(&mut header(EntryType::Symlink, 0), "link", outside.path()).unwrap();
        builder.append_data(&mut header(EntryType::Regular, 1), "link/x", &b"x"[..]).unwrap();
    };
    let linked = |builder: &mut Builder<Vec<u8>>| {
        builder.append_link(&mut header(EntryType::Link, 0), "x", "../../../lock").unwrap();
    };
    let device = |builder: &mut Builder<Vec<u8>>| {
        builder.append_data(&mut header(EntryType::Fifo, 0), "pipe", io::empty()).unwrap();
    };
    let forged = [
        fixture.forge(1, named("../x")),
        fixture.forge(2, named("/x")),
        fixture.forge(3, named("a/../../x")),
        fixture.forge(4, through),
        fixture.forge(5, linked),
        fixture.forge(6, device),
        fixture.forge(7, |builder| {
            builder.append_data(&mut header(EntryType::Regular, 9), "cut", &b"x"[..]).unwrap();
        }),
    ];
    for (id, sha256) in (1..).zip(forged) {
        fixture.restore(id, 11, &sha256).unwrap_err();
        assert_eq!(fs::read_to_string(fixture.home.join("file")).unwrap(), "kept", "{id}");
        assert_eq!(fixture.beside(), ["home"], "{id}");
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn the_disk_keeps_its_reserve_and_nothing_half_is_left() {
    keeps_its_reserve(&Fixture::new());
    keeps_its_reserve(&Fixture::with(true));
}

fn keeps_its_reserve(fixture: &Fixture) {
    let bytes: Vec<u8> =
        (0..300_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    fs::write(fixture.home.join("file"), &bytes).unwrap();
    let written = fixture.back_up(1);
    let full = |error: BackupError| error.to_string().contains("disk is full");
    assert!(full(fixture.try_back_up(2, u64::MAX).unwrap_err()));
    assert!(full(fixture.try_restore(1, 11, &written.sha256, u64::MAX).unwrap_err()));
    let left: Vec<_> =
        fs::read_dir(fixture.folder.backups(7)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["1.tar.zst"]);
    assert_eq!(fixture.beside(), ["home"]);
    assert_eq!(fs::read(fixture.home.join("file")).unwrap(), bytes);
}

/// An archive on a failing disk.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk fails"))
    }
}

#[test]
fn a_backup_read_error_is_reported_by_both_unpackers() {
    for has_shim in [true, false] {
        let fixture = Fixture::with(has_shim);
        let home = fixture.reach(Task::Restore { command_id: 11, reserve: 0 });
        let why = home.restore(11, 0, Broken).unwrap_err().to_string();
        assert_eq!(why, "The backup can't be unpacked: the disk fails.");
        assert_eq!(fixture.beside(), ["home"]);
    }
}

#[test]
fn a_failed_backup_says_why() {
    let mut fixture = Fixture::new();
    let huge = File::create(fixture.home.join("huge")).unwrap();
    huge.set_len(65 * 1024 * 1024 * 1024).unwrap();
    for has_shim in [true, false] {
        fixture.has_shim = has_shim;
        let why = fixture.try_back_up(1, 0).unwrap_err().to_string();
        assert_eq!(why, "The home's files have holes of more than 64 GiB. Remove them.");
    }
    fs::remove_dir_all(&fixture.home).unwrap();
    assert!(matches!(fixture.try_back_up(1, 0), Err(BackupError::NoHome)));
    forget(&fixture.folder, 7, 1).unwrap();
    forget(&fixture.folder, 7, 1).unwrap();
}
