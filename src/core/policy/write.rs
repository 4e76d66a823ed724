//! Writing policy files: whole or not at all, and in two steps where a transaction stands between them.
//!
//! [`Prepared`] is a file's next text, on the disk beside it: what can go wrong (no right, no room, a read-only folder)
//! goes wrong then, before anything is committed. What is left is a rename.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use crate::{
    base::{files::put_in_place, ids::OrgId, time::Timestamp},
    core::sealing::random_bytes,
};

/// How the name of a file that is being prepared begins; random hexadecimal digits follow.
const BESIDE: &str = ".new-";
/// How many bytes those digits stand for.
const RANDOM: usize = 8;

/// An organization's own file as it is going to be. Dropped, it leaves nothing behind.
pub struct Prepared {
    /// The organization.
    pub org: OrgId,
    /// The text; none removes the file.
    pub text: Option<String>,
    /// The file, and what is to take its place; none where the policy is read from no folder.
    pub(super) on_disk: Option<(PathBuf, Beside)>,
}

impl Prepared {
    /// Writes the text beside the file in `dir`; for a removal, sees whether the folder could be written.
    pub(super) fn new(dir: Option<&Path>, org: OrgId, text: Option<String>) -> io::Result<Self> {
        let on_disk = dir.map(|dir| prepare(dir, org, text.as_deref())).transpose()?;
        Ok(Self { org, text, on_disk })
    }
}

fn prepare(dir: &Path, org: OrgId, text: Option<&str>) -> io::Result<(PathBuf, Beside)> {
    let folder = dir.join("orgs");
    let path = folder.join(format!("{org}.csv"));
    fs::create_dir_all(&folder)?;
    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
        return Err(io::Error::other("a folder stands in its place"));
    }
    let beside = Beside::write(&folder, text.unwrap_or_default())?;
    Ok((path, beside))
}

/// Puts what was prepared in the file's place, or removes the file. Whoever reads meanwhile finds the old file or the new
/// one, whole; a crash leaves one of them.
pub(super) fn finish(path: &Path, beside: Beside, text: Option<&str>) -> io::Result<()> {
    if text.is_some() {
        return beside.take_place_of(path);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// A file that nobody takes for one of the policy: hidden, and removed when it is dropped.
pub(super) struct Beside {
    path: PathBuf,
}

impl Beside {
    fn write(folder: &Path, text: &str) -> io::Result<Self> {
        // Replicas that share the folder may have the same process id.
        let path = folder.join(format!("{BESIDE}{}", hex::encode(random_bytes::<RANDOM>())));
        let mut file = fs::File::create_new(&path)?;
        let this = Self { path };
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(this)
    }

    fn take_place_of(self, path: &Path) -> io::Result<()> {
        put_in_place(&self.path, path)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After a rename there is nothing of that name any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the files in `folder` that were prepared before that instant, and nothing else: how many. A process that was
/// killed has left them.
pub(super) fn sweep(folder: &Path, before: Timestamp) -> io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry?;
        if !is_beside(&entry.file_name().to_string_lossy()) {
            continue;
        }
        match sweep_one(&entry, before) {
            // Put in place, or swept by another replica.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => swept += u64::from(removed?),
        }
    }
    Ok(swept)
}

fn is_beside(name: &str) -> bool {
    let digits = name.strip_prefix(BESIDE).unwrap_or_default();
    digits.len() == 2 * RANDOM && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn sweep_one(entry: &fs::DirEntry, before: Timestamp) -> io::Result<bool> {
    // Not that of what a link leads to.
    let about = entry.metadata()?;
    let written = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    if !about.is_file() || written.as_millis() >= u128::from(before.0.max(0).unsigned_abs()) {
        return Ok(false);
    }
    fs::remove_file(entry.path())?;
    Ok(true)
}

/// Puts a text in the place of a file, whole or not at all.
///
/// # Errors
/// The folder can't be written.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    Beside::write(path.parent().unwrap_or(Path::new(".")), text)?.take_place_of(path)
}
