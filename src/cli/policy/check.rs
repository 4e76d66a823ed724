//! `muster policy check`.

use std::path::PathBuf;

use super::{Cli, Failure, Output};
use crate::{base::plain::plain_lines, core::policy};

/// What `muster policy check` takes.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The folder [default: the setting policy_dir, or the built-in policy]
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Check {
    pub(super) fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let report = policy::check(super::folder(cli, self.dir)?.as_deref());
        let text = plain_lines(&report.to_string());
        Ok(Output::with_text(serde_json::to_value(&report)?, text).failed_if(!report.ok))
    }
}
