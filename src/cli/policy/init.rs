//! `muster policy init`.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{Failure, Output};
use crate::core::policy;

#[derive(Debug, clap::Args)]
pub struct Init {
    /// The folder; existing files are kept
    dir: PathBuf,
}

impl Init {
    pub(super) fn run(self) -> Result<Output, Failure> {
        let dir = self.dir.display();
        let files = write_defaults(&self.dir).map_err(|error| Failure::new(format!("{dir}: {error}")))?;
        let mut text = String::new();
        for (name, written) in &files {
            let what = if *written { "written" } else { "already there, left unchanged" };
            let _ = writeln!(text, "{name}: {what}");
        }
        let _ = write!(
            text,
            "Set MUSTER_POLICY_DIR={dir} (policy_dir) to use this folder. Start with {dir}/README.md."
        );
        let written: Vec<&str> =
            files.iter().filter(|(_, written)| *written).map(|(name, _)| *name).collect();
        Ok(Output::with_text(json!({ "dir": self.dir, "written": written }), text))
    }
}

/// Writes the built-in policy files into `dir` and keeps existing files. Returns each file's name and whether it was
/// written.
///
/// # Errors
/// The folder is not writable.
pub fn write_defaults(dir: &Path) -> io::Result<Vec<(&'static str, bool)>> {
    fs::create_dir_all(dir.join("orgs"))?;
    let mut files = Vec::new();
    for (name, text) in policy::DEFAULTS {
        match fs::File::create_new(dir.join(name)) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                files.push((name, true));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => files.push((name, false)),
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}
