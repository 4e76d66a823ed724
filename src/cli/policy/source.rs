//! The policy of `muster policy explain` and `muster policy matrix`: an organization's, in force or from a folder.

use std::path::PathBuf;

use super::{Cli, Failure, candidate::whole};
use crate::{
    base::{ids::OrgId, plain::without_controls},
    core::policy::{Compiled, Given},
};

#[derive(Debug, clap::Args)]
pub struct Source {
    /// The organization's id or name [default: any without its own rules]
    #[arg(long)]
    org: Option<String>,
    /// Use only the files of this folder [default: what is in force, from files and database]
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Source {
    pub(super) async fn organization(&self, cli: &Cli) -> Result<Option<OrgId>, Failure> {
        match &self.org {
            Some(org) => Ok(Some(cli.organization(org).await?)),
            None => Ok(None),
        }
    }

    pub(super) async fn policy(&self, cli: &Cli, org: Option<OrgId>) -> Result<Compiled, Failure> {
        match &self.dir {
            Some(dir) => whole(Some(dir), &Given::new()),
            None => super::in_force(cli, org).await,
        }
    }
}

/// The problems in the organization's own rules, for people.
pub(super) fn shown_problems(policy: &Compiled, org: Option<OrgId>) -> String {
    let problems = policy.problems().iter().filter(|problem| problem.org == org);
    let said = problems.map(|problem| {
        let problem = without_controls(&problem.to_string());
        format!("{problem} (so only the denials in these rules apply)\n")
    });
    said.collect()
}
