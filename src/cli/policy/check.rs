//! `muster policy check`.

use std::path::PathBuf;

use super::{Cli, Failure, Output};
use crate::{
    base::plain::lines_without_controls,
    core::policy::{self, Report},
};

#[derive(Debug, clap::Args)]
pub struct Check {
    /// Check only the files of this folder [default: the service's files, or the built-in ones, and the rules in
    /// the database]
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Check {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let report = self.report(cli).await?;
        let text = lines_without_controls(&report.to_string());
        Ok(Output::with_text(serde_json::to_value(&report)?, text).failed_if(!report.ok))
    }

    pub(super) async fn report(&self, cli: &Cli) -> Result<Report, Failure> {
        Ok(match &self.dir {
            Some(dir) => policy::check(dir.as_path()),
            None => policy::check_with(cli.settings()?.policy_dir.as_deref(), &super::stored(cli).await?),
        })
    }
}
