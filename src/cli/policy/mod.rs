//! `muster policy …`: one file a command.
//!
//! What only reads files needs no database: it works on any folder, before and beside a running service, and without one
//! on the policy that is built in, as the service does. With `--live` it is the other way round: the database is asked, and
//! no folder. What is shown was written by tenants: [`plain`](crate::base::plain::plain) goes over every line of it.

mod break_glass;
mod check;
mod diff;
mod explain;
mod history;
mod init;
mod publish;
mod revert;
mod simulate;
mod test;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::{Cli, Failure, Output};
use crate::{
    base::{ids::OrgId, plain::plain},
    core::policy,
    slices::{orgs, policies},
};

/// Work with the permission policies.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Write the policy that is built in into a folder, to begin a policy of one's own
    Init(init::Init),
    /// Say whether the service would take the policy files, and everything that is wrong with them
    Check(check::Check),
    /// Say which roles gain and lose which permissions where, if a folder took the present one's place
    Diff(diff::Diff),
    /// Say whether the policy comes to what its expectations.csv expects
    Test(test::Test),
    /// Show the texts that a policy file has had, who wrote them and why
    History(history::History),
    /// Put an organization's own file from a folder in force, as a new version
    Publish(publish::Publish),
    /// Put an earlier text in force again
    Revert(revert::Revert),
    /// Say which calls of the last days a folder would have decided otherwise, and which of its lines nothing asked for
    Simulate(simulate::Simulate),
    /// On the machine itself: make somebody OWNER of an organization in which nobody can edit the policy any more
    BreakGlass(break_glass::BreakGlass),
    /// Say who may do what, by which line; why not, and which line would allow it
    Explain(explain::Explain),
}

impl Policy {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Init(command) => command.run(),
            Self::Check(command) => command.run(cli),
            Self::Diff(command) => command.run(cli).await,
            Self::Test(command) => command.run(cli),
            Self::History(command) => command.run(cli).await,
            Self::Publish(command) => command.run(cli).await,
            Self::Revert(command) => command.run(cli).await,
            Self::Simulate(command) => command.run(cli).await,
            Self::BreakGlass(command) => command.run(cli).await,
            Self::Explain(command) => command.run(cli).await,
        }
    }
}

/// The folder of a command: the one that it names, or else the service's. None is the policy that is built in.
fn folder(cli: &Cli, named: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
    match named {
        Some(dir) => Ok(Some(dir)),
        None => Ok(cli.settings()?.policy_dir),
    }
}

/// The policy that is published.
async fn live(cli: &Cli) -> Result<policy::Policy, Failure> {
    let db = cli.database().await?;
    let published = policies::published(&db).await;
    db.close().await;
    Ok(published?)
}

/// An organization that has to be there.
async fn live_organization(cli: &Cli, reference: &str) -> Result<OrgId, Failure> {
    let db = cli.database().await?;
    let found = orgs::find_in(&db, reference).await;
    db.close().await;
    Ok(found?)
}

/// The policy in a folder, or the one that is built in.
fn load(dir: Option<&Path>) -> Result<policy::Policy, Failure> {
    let loaded = dir.map_or_else(policy::Policy::embedded, policy::Policy::load);
    loaded.map_err(|problems| refused(&problems))
}

/// A folder that the service would not take.
fn refused(problems: &[policy::LintProblem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(|problem| plain(&problem.to_string())).collect();
    Failure::new(format!("the policy is refused:\n{}", lines.join("\n")))
}
