//! `muster policy init`.

use std::{fmt::Write, path::PathBuf};

use serde_json::json;

use super::{Failure, Output};
use crate::core::policy;

/// What `muster policy init` takes.
#[derive(Debug, clap::Args)]
pub struct Init {
    /// The folder; files that are there are left as they are
    dir: PathBuf,
}

impl Init {
    pub(super) fn run(self) -> Result<Output, Failure> {
        let dir = self.dir.display();
        let files =
            policy::write_defaults(&self.dir).map_err(|error| Failure::new(format!("{dir}: {error}")))?;
        let mut text = String::new();
        for (name, written) in &files {
            let what = if *written { "written" } else { "there already, and left as it is" };
            let _ = writeln!(text, "{name}: {what}");
        }
        let _ = write!(
            text,
            "The service reads this folder with MUSTER_POLICY_DIR={dir} (policy_dir). Begin with {dir}/README.md."
        );
        let written: Vec<&str> =
            files.iter().filter(|(_, written)| *written).map(|(name, _)| *name).collect();
        Ok(Output::with_text(json!({ "dir": self.dir, "written": written }), text))
    }
}
