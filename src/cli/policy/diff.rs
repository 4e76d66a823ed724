//! `muster policy diff`.

use std::{fmt::Write, path::PathBuf};

use serde_json::json;

use super::{
    Cli, Failure, Output,
    candidate::{Candidate, whole},
};
use crate::{
    base::{numerals::with_noun, plain::without_controls},
    core::policy::{Compiled, Given},
};

#[derive(Debug, clap::Args)]
pub struct Diff {
    #[command(flatten)]
    candidate: Candidate,
    /// The folder to compare the candidate with, files only [default: what is in force]
    #[arg(long, value_name = "DIR", conflicts_with = "version")]
    against: Option<PathBuf>,
}

impl Diff {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let (before, after) = self.compared(cli).await?;
        let changes = after.changes(&before);
        let mut text = String::new();
        for change in &changes {
            let _ = writeln!(text, "{}", without_controls(&change.to_string()));
        }
        for problem in after.problems() {
            let _ = writeln!(
                text,
                "{} (in the database; with this policy, only the denials in these rules would apply)",
                without_controls(&problem.to_string())
            );
        }
        for warning in after.warnings() {
            let _ = writeln!(
                text,
                "{} (with this policy, an organization's own expectation would not be met; its rules stay in force)",
                without_controls(&warning.to_string())
            );
        }
        let _ = write!(text, "{} changed", with_noun(changes.len(), "cell"));
        let json = json!({
            "before": before.version(), "after": after.version(), "changes": changes, "problems": after.problems(),
            "warnings": after.warnings(),
        });
        Ok(Output::with_text(json, text))
    }

    async fn compared(&self, cli: &Cli) -> Result<(Compiled, Compiled), Failure> {
        if let (Some(dir), Some(against)) = (&self.candidate.dir, &self.against) {
            return Ok((whole(Some(against), &Given::new())?, whole(Some(dir), &Given::new())?));
        }
        let service = cli.settings()?.policy_dir;
        let db = super::database(cli).await?;
        let compared = self.candidate.read(db.as_ref(), service.as_deref()).await;
        if let Some(db) = db {
            db.close().await;
        }
        compared
    }
}
