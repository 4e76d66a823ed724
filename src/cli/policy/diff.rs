//! `muster policy diff`.

use std::{fmt::Write, path::PathBuf};

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{base::plain::plain, core::policy::Candidate};

/// What `muster policy diff` takes.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// The folder with the change [default, with --live: the setting policy_dir, or the built-in policy]
    #[arg(long, value_name = "CANDIDATE", required_unless_present = "live")]
    dir: Option<PathBuf>,
    /// The folder that it is compared with [default: the setting policy_dir, or the built-in policy]
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Compare with what is published, as the database has it, in place of a folder
    #[arg(long, conflicts_with = "against")]
    live: bool,
}

impl Diff {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let dir = super::folder(cli, self.dir)?;
        let after = Candidate::read(dir.as_deref()).map_err(|problems| super::refused(&problems))?;
        let before = if self.live {
            super::live(cli).await?
        } else {
            super::load(super::folder(cli, self.against)?.as_deref())?
        };
        let changes = after.changes(&before);
        let mut text = String::new();
        for change in &changes {
            let _ = writeln!(text, "{}", plain(&change.to_string()));
        }
        let _ = write!(text, "{} cell{} changed", changes.len(), if changes.len() == 1 { "" } else { "s" });
        let json = json!({
            "before": before.status().version, "after": after.version(), "changes": changes,
        });
        Ok(Output::with_text(json, text))
    }
}
