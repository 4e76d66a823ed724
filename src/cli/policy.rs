//! `muster policy …`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Cli, Failure, Output};
use crate::access::policy;

/// Work with the permission policies.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Say whether the service would take the policy files, and everything that is wrong with them
    Check(Check),
}

/// What `muster policy check` takes.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The folder [default: the setting policy_dir, or ./policies]
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Policy {
    pub(super) fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Check(command) => command.run(cli),
        }
    }
}

impl Check {
    fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let dir = match self.dir {
            Some(dir) => dir,
            None => cli.settings()?.policy_dir.unwrap_or_else(|| PathBuf::from("policies")),
        };
        let report = policy::check(&dir);
        let text = report.to_string();
        Ok(Output::with_text(serde_json::to_value(&report)?, text).failed_if(!report.ok))
    }
}
