//! The owner of an SQLite database: only one process at a time serves, migrates or restores it.
//!
//! The owner holds a lock on a file next to the database, and writes its name into it. The kernel releases the lock
//! when the process ends, even by a crash, so the file may stay. Commands that only look or change rows need no lock.
//! On PostgreSQL any number of processes can serve, without an owner.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use super::backup::database_file;
use crate::{
    base::{bounds::REASON, files::private_options},
    core::config::Config,
};

/// Ownership of a database, until dropped.
#[derive(Debug)]
pub struct Owner {
    /// `None` on PostgreSQL.
    held: Option<File>,
    command: &'static str,
}

impl Owner {
    /// Fails if another process owns the database. Creates nothing.
    ///
    /// # Errors
    /// Names the owner.
    pub fn check(config: &Config) -> anyhow::Result<()> {
        let Ok(database) = database_file(config) else { return Ok(()) };
        match File::open(lock_file(&database)) {
            // Never owned, or it can't be determined: taking it will tell.
            Err(_) => Ok(()),
            Ok(mut file) => lock(&mut file, &database),
        }
    }

    /// Takes ownership for `command`, until the process ends or this is dropped.
    ///
    /// # Errors
    /// Names the owner, if there is one; or the folder is not writable.
    pub fn acquire(config: &Config, command: &'static str) -> anyhow::Result<Self> {
        let Ok(database) = database_file(config) else { return Ok(Self { held: None, command }) };
        let path = lock_file(&database);
        let opened = private_options().read(true).create(true).truncate(false).open(&path);
        let mut file = opened.with_context(|| format!("{} can't be written", path.display()))?;
        lock(&mut file, &database)?;
        let mut owner = Self { held: Some(file), command };
        owner.write_name("")?;
        Ok(owner)
    }

    /// Records where the owner serves.
    ///
    /// # Errors
    /// The file is not writable.
    pub fn serves_at(&mut self, address: &str) -> anyhow::Result<()> {
        self.write_name(&format!(" at {address}"))
    }

    fn write_name(&mut self, at: &str) -> anyhow::Result<()> {
        let Some(file) = &mut self.held else { return Ok(()) };
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("`{}` (process {}){at}\n", self.command, std::process::id()).as_bytes())?;
        Ok(())
    }
}

/// Next to the database itself, through any symbolic links.
fn lock_file(database: &Path) -> PathBuf {
    let mut path = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned()).into_os_string();
    path.push(".lock");
    path.into()
}

fn lock(file: &mut File, database: &Path) -> anyhow::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.take(REASON as u64).read_to_string(&mut text);
            let owner = match text.trim() {
                "" => "another process",
                owner => owner,
            };
            bail!(
                "{owner} owns the database {}, and SQLite allows one owner at a time: stop that process first, or use another \
                 data folder (MUSTER_DATA_DIR; `muster demo --data-dir`). With PostgreSQL any number of processes can serve",
                database.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{} can't be locked", database.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_owns_a_database_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::in_folder(folder.path()).unwrap();
        Owner::check(&config).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "looking creates nothing");
        let mut owner = Owner::acquire(&config, "muster serve").unwrap();
        owner.serves_at("http://127.0.0.1:1").unwrap();
        let named = format!("`muster serve` (process {}) at http://127.0.0.1:1 owns", std::process::id());
        for refused in [Owner::check(&config), Owner::acquire(&config, "muster migrate").map(drop)] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.starts_with(&named), "{refused}");
        }
        drop(owner);
        Owner::check(&config).unwrap();
        // The previous owner's text must not remain.
        let _owner = Owner::acquire(&config, "muster migrate").unwrap();
        let refused = Owner::check(&config).unwrap_err().to_string();
        assert!(refused.starts_with("`muster migrate` (process ") && !refused.contains("http"), "{refused}");
    }
}
