//! Backups of SQLite: a consistent copy made while the service runs, in one verifiable file.
//!
//! The file is a tar archive: `manifest.json` (what made it, when, the newest migration, and the SHA-256 of every other
//! entry), `muster.db`, and the policy files in `policies/`. Attachments and pictures are rows of the database. The key
//! file is left out: with both, anyone could read every secret, so the two are kept apart.
//!
//! Files change while the service runs, so everything is copied first, and the copies are hashed and archived. The
//! archive is read back before it gets its name.
//!
//! [`restore`] overwrites nothing, and puts the database in place only after everything has been checked.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context, bail, ensure};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::{Connection, Row, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{Db, newest_step};
use crate::{
    base::{
        files::{create_private, sync_parent_folder},
        time::Timestamp,
    },
    core::config::Config,
};

/// The version of the archive format.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
const DATABASE: &str = "muster.db";
const POLICIES: &str = "policies/";
/// The largest manifest that is read: a crafted archive could fill the memory.
const LARGEST_TEXT: u64 = 16 << 20;

/// A backup's description of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the archive format.
    pub format: u32,
    /// The Muster version that made it.
    pub muster: String,
    pub made_at: Timestamp,
    pub migrated_to: i64,
    pub files: Vec<Entry>,
    /// The parts left out, and why.
    pub left_out: String,
}

impl Manifest {
    /// The number of policy files in it.
    #[must_use]
    pub fn policies(&self) -> usize {
        self.files.iter().filter(|entry| entry.name.starts_with(POLICIES)).count()
    }
}

/// A file of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the archive.
    pub name: String,
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// The database file that the settings name.
///
/// # Errors
/// It is not an SQLite database, or it is in memory.
pub fn database_file(config: &Config) -> anyhow::Result<PathBuf> {
    ensure!(
        config.database.is_sqlite(),
        "this command is for SQLite. Back up PostgreSQL with its own tools: pg_dump --format=custom --file=muster.dump DATABASE, and \
         pg_restore --clean --if-exists --dbname=DATABASE muster.dump; see docs/backups.md"
    );
    let options =
        SqliteConnectOptions::from_str(config.database.url.expose_secret()).context("database.url")?;
    let path = options.get_filename();
    ensure!(!path.to_string_lossy().contains(":memory:"), "the database is in memory");
    Ok(path.to_owned())
}

/// Writes a backup to the new file `out`, while others read and write.
///
/// # Errors
/// `out` exists, the copy or the archive is faulty, or something can't be read or written.
pub async fn backup(config: &Config, out: &Path, now: Timestamp) -> anyhow::Result<Manifest> {
    let database = database_file(config)?;
    ensure!(database.exists(), "database {} does not exist", database.display());
    ensure!(!out.exists(), "{} already exists and will not be overwritten", out.display());
    let work = Workplace::beside(out)?;
    let copy = work.path(DATABASE);
    let db = Db::open(&config.database).await?;
    let copied = copy_database(&db, &copy).await;
    db.close().await;
    copied.context("copying the database")?;
    let mut files = vec![(DATABASE.to_owned(), copy)];
    if let Some(folder) = config.policy_dir() {
        copy_policies(folder, POLICIES, &work, &mut files)?;
    }
    let migrated_to = check_database(&files[0].1).await?;
    let entries = files.iter().map(|(name, path)| entry(name, path)).collect::<anyhow::Result<_>>()?;
    let manifest = Manifest {
        format: FORMAT,
        muster: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: now,
        migrated_to,
        files: entries,
        left_out:
            "the key file (keys_file): keep it apart from this backup; without it no secret in it can be read"
                .to_owned(),
    };
    let archive = work.path("archive");
    write_archive(&archive, &manifest, &files)?;
    read_archive(&archive, |_| Ok(io::sink())).context("the archive that was written does not read back")?;
    put_new(&archive, out)?;
    Ok(manifest)
}

/// Gives a finished file its name, which never holds half a file, and replaces nothing that someone else has created
/// meanwhile. A link does that; where the file system has none (SMB, exFAT), a move; and where the two names are on
/// different file systems (as in a union of several), a copy that is moved. If the name may not survive a power
/// failure, it is taken back.
fn put_new(finished: &Path, out: &Path) -> anyhow::Result<()> {
    let put = match fs::hard_link(finished, out) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => move_new(finished, out),
        linked => linked,
    };
    let put = match put {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_new(finished, out),
        put => put,
    };
    let kept = put.and_then(|()| {
        sync_parent_folder(out).inspect_err(|_| {
            let _ = fs::remove_file(out);
        })
    });
    kept.with_context(|| out.display().to_string())
}

fn move_new(finished: &Path, out: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::{
            fs::{CWD, RenameFlags, renameat_with},
            io::Errno,
        };
        match renameat_with(CWD, finished, CWD, out, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            moved => return Ok(moved?),
        }
    }
    // Nothing does both in one step here.
    if fs::symlink_metadata(out).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(finished, out)
}

fn copy_new(finished: &Path, out: &Path) -> io::Result<()> {
    let copy = hidden_beside(out).ok_or(io::ErrorKind::InvalidInput)?;
    let put = copy_private(finished, &copy).and_then(|()| move_new(&copy, out));
    if put.is_err() {
        let _ = fs::remove_file(&copy);
    }
    put
}

fn copy_private(finished: &Path, copy: &Path) -> io::Result<()> {
    let mut from = File::open(finished)?;
    let mut to = create_private(copy)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()
}

/// A new hidden name in the folder of a file. `None`: the path ends without a file name.
fn hidden_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy();
    let id = u64::from_be_bytes(crate::core::sealing::random_bytes());
    Some(path.with_file_name(format!(".{name}.{id:016x}")))
}

async fn copy_database(db: &Db, copy: &Path) -> anyhow::Result<()> {
    let target = copy.to_str().context("the path is not UTF-8")?;
    db.execute("VACUUM INTO $1", vec![target.into()]).await?;
    Ok(())
}

/// Checks a copy, and returns its newest migration.
async fn check_database(path: &Path) -> anyhow::Result<i64> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let said: String = sqlx::query("PRAGMA integrity_check").fetch_one(&mut connection).await?.try_get(0)?;
    ensure!(said == "ok", "the copy is damaged: {said}");
    let sql = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations WHERE success";
    let newest = sqlx::query(sql)
        .fetch_one(&mut connection)
        .await
        .context("it is not a Muster database")?
        .try_get(0)?;
    connection.close().await?;
    Ok(newest)
}

/// Copies the policy files, without hidden ones: files being written, and the service's own notes.
fn copy_policies(
    folder: &Path,
    within: &str,
    work: &Workplace,
    files: &mut Vec<(String, PathBuf)>,
) -> anyhow::Result<()> {
    let mut entries: Vec<_> =
        fs::read_dir(folder).with_context(|| folder.display().to_string())?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let name = format!("{within}{name}");
        if path.is_dir() {
            copy_policies(&path, &format!("{name}/"), work, files)?;
            continue;
        }
        let copy = work.path(&name);
        fs::create_dir_all(copy.parent().unwrap_or(&copy))?;
        match fs::copy(&path, &copy) {
            Ok(_) => files.push((name, copy)),
            // Deleted since the folder was read: that policy no longer exists.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
    }
    Ok(())
}

fn entry(name: &str, path: &Path) -> anyhow::Result<Entry> {
    let mut hash = Hashing(Sha256::new(), 0);
    io::copy(&mut File::open(path).with_context(|| path.display().to_string())?, &mut hash)?;
    Ok(Entry { name: name.to_owned(), bytes: hash.1, sha256: hex::encode(hash.0.finalize()) })
}

fn write_archive(path: &Path, manifest: &Manifest, files: &[(String, PathBuf)]) -> anyhow::Result<()> {
    let mut archive = tar::Builder::new(create_private(path)?);
    let text = serde_json::to_vec_pretty(manifest)?;
    append(&mut archive, MANIFEST, text.len() as u64, &text[..])?;
    for (name, path) in files {
        let file = File::open(path)?;
        append(&mut archive, name, file.metadata()?.len(), file)?;
    }
    archive.into_inner()?.sync_all()?;
    Ok(())
}

fn append(
    archive: &mut tar::Builder<File>,
    name: &str,
    bytes: u64,
    content: impl Read,
) -> anyhow::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    Ok(archive.append_data(&mut header, name, content)?)
}

/// Restores a backup where no database exists, after checking everything in it; its policy files only if `policy_dir`
/// is an empty folder. Returns whether the policy files were restored.
///
/// # Errors
/// A database exists; or the archive is not a backup, is damaged, or was made by a later version.
pub async fn restore(config: &Config, file: &Path) -> anyhow::Result<(Manifest, bool)> {
    let database = database_file(config)?;
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let path = PathBuf::from(format!("{}{suffix}", database.display()));
        ensure!(
            !path.exists(),
            "{} already exists and will not be overwritten. Move it away first",
            path.display()
        );
    }
    let policies = config.policy_dir().filter(|folder| is_empty(folder));
    if let Some(folder) = database.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let work = Workplace::beside(&database)?;
    let manifest = unpack(file, &work)?;
    let known = newest_step();
    ensure!(
        manifest.migrated_to <= known,
        "the backup was made by Muster {}, which knows later migrations ({} > {known}): restore it with that version",
        manifest.muster,
        manifest.migrated_to
    );
    let found = check_database(&work.path(DATABASE)).await?;
    ensure!(found == manifest.migrated_to, "the manifest belongs to another database");
    let mut copied = Vec::new();
    let restored = put_policies(&manifest, &work, policies, &mut copied).and_then(|()| {
        File::open(work.path(DATABASE))?.sync_all()?;
        // The last step, which can't overwrite anything.
        put_new(&work.path(DATABASE), &database)
    });
    if let (Err(_), Some(folder)) = (&restored, policies) {
        // Or the next attempt would not find the folder empty.
        remove(&copied, folder);
    }
    restored?;
    Ok((manifest, policies.is_some()))
}

/// Copies the policy files of a backup into a folder, where they survive a power failure. `copied` names each of them,
/// also if the last one is not complete.
fn put_policies(
    manifest: &Manifest,
    work: &Workplace,
    folder: Option<&Path>,
    copied: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    for entry in &manifest.files {
        let Some(name) = entry.name.strip_prefix(POLICIES) else { continue };
        let target = folder.join(name);
        copied.push(target.clone());
        fs::create_dir_all(target.parent().unwrap_or(folder))?;
        fs::copy(work.path(&entry.name), &target)
            .and_then(|_| File::open(&target)?.sync_all())
            .with_context(|| target.display().to_string())?;
    }
    let names = copied.iter().flat_map(|file| file.ancestors().take_while(|path| path.starts_with(folder)));
    for name in names.collect::<BTreeSet<_>>() {
        sync_parent_folder(name).with_context(|| name.display().to_string())?;
    }
    Ok(())
}

/// Removes files from a folder, and the folders in it that are empty then.
fn remove(files: &[PathBuf], folder: &Path) {
    for file in files {
        let _ = fs::remove_file(file);
    }
    for file in files {
        for within in file.ancestors().skip(1).take_while(|within| *within != folder) {
            let _ = fs::remove_dir(within);
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

/// Unpacks the files named in the manifest, and checks every byte.
fn unpack(file: &Path, work: &Workplace) -> anyhow::Result<Manifest> {
    read_archive(file, |name| {
        let target = work.path(name);
        fs::create_dir_all(target.parent().unwrap_or(&target))?;
        if name == DATABASE { create_private(&target) } else { File::create_new(&target) }
    })
}

/// Reads an archive and checks every byte; each entry is written to where `place` says for its name.
fn read_archive<W: Write>(file: &Path, place: impl Fn(&str) -> io::Result<W>) -> anyhow::Result<Manifest> {
    let mut archive = tar::Archive::new(File::open(file).with_context(|| file.display().to_string())?);
    let mut entries = archive.entries()?;
    let first = entries.next().with_context(|| format!("{} is empty", file.display()))?;
    let first = first.with_context(|| format!("{} is not a backup", file.display()))?;
    ensure!(
        first.path()?.to_str() == Some(MANIFEST),
        "{} is not a backup of Muster: it does not start with {MANIFEST}",
        file.display()
    );
    let manifest: Manifest =
        serde_json::from_reader(first.take(LARGEST_TEXT)).context("the manifest is not valid")?;
    ensure!(
        manifest.format == FORMAT,
        "the backup has format {}; this version reads format {FORMAT}",
        manifest.format
    );
    let mut missing: Vec<&Entry> = manifest.files.iter().collect();
    for entry in entries {
        let mut entry = entry.context("the archive is damaged")?;
        let name = entry.path()?.to_str().unwrap_or_default().to_owned();
        let Some(at) = missing.iter().position(|known| known.name == name) else {
            bail!("{name} is not in the manifest, or appears twice");
        };
        let known = missing.remove(at);
        ensure!(is_safe(&name), "{name} is not a valid file name in a backup");
        let mut writing = Tee(place(&name)?, Hashing(Sha256::new(), 0));
        io::copy(&mut entry, &mut writing).with_context(|| name.clone())?;
        let Tee(_, Hashing(hash, bytes)) = writing;
        ensure!(
            bytes == known.bytes && hex::encode(hash.finalize()) == known.sha256,
            "{name} in the archive is damaged: take another backup"
        );
    }
    if let Some(entry) = missing.first() {
        bail!("{} is missing", entry.name);
    }
    ensure!(manifest.files.iter().any(|entry| entry.name == DATABASE), "the backup contains no database");
    Ok(manifest)
}

fn is_safe(name: &str) -> bool {
    let inner = name.strip_prefix(POLICIES);
    name == DATABASE || inner.is_some_and(|name| name.split('/').all(|part| !matches!(part, "" | "." | "..")))
}

/// A folder for unfinished files, next to their final place; removed when dropped.
struct Workplace(PathBuf);

impl Workplace {
    fn beside(path: &Path) -> anyhow::Result<Self> {
        let folder = hidden_beside(path).context("a file name is required")?;
        let within = path.parent().filter(|within| !within.as_os_str().is_empty()).unwrap_or(Path::new("."));
        ensure!(within.is_dir(), "folder {} does not exist", within.display());
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // A leftover folder does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Hashing(Sha256, u64);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Tee<W>(W, Hashing);

impl<W: Write> Write for Tee<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.write(&bytes[..written])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_linked_is_copied_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (out, other) = (folder.path().join("out"), folder.path().join("other"));
        // It is on a file system of its own.
        let version = Path::new("/proc/version");
        put_new(version, &out).unwrap();
        assert_eq!(fs::read(&out).unwrap(), fs::read(version).unwrap());
        for source in [version, folder.path()] {
            assert!(put_new(source, &out).is_err());
            assert_eq!(fs::read(&out).unwrap(), fs::read(version).unwrap());
        }
        // A folder can be neither linked nor copied, nor moved into itself.
        assert!(put_new(folder.path(), &other).is_err());
        assert!(!other.exists());
        // Nor is anything left of what had no place.
        assert!(copy_new(version, &out).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_moved_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, out] = ["one", "two", "out"].map(|name| folder.path().join(name));
        fs::write(&one, "one").unwrap();
        fs::write(&two, "two").unwrap();
        move_new(&one, &out).unwrap();
        assert!(!one.exists());
        let refused = move_new(&two, &out).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&out).unwrap(), fs::read(&two).unwrap()), (b"one".to_vec(), b"two".to_vec()));
    }

    #[test]
    fn a_name_never_has_half_a_copy() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let (pipe, out) = (folder.path().join("pipe"), folder.path().join("out"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::thread::scope(|scope| {
            let copying = scope.spawn(|| copy_new(&pipe, &out));
            // More than a pipe holds: once all is written, the copy has begun.
            let mut writing = File::options().write(true).open(&pipe).unwrap();
            writing.write_all(&vec![7; 1 << 20]).unwrap();
            assert!(!out.exists());
            drop(writing);
            copying.join().unwrap().unwrap();
        });
        assert_eq!(fs::metadata(&out).unwrap().len(), 1 << 20);
    }
}
