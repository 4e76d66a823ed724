//! `muster policy …`: one file a command.
//!
//! Files that are named on the command line are read as they are, without a database. Otherwise the question is what the
//! service decides by: its policy folder, and for organizations without a file there the newest versions in the database.
//! What is shown was written by tenants: [`plain`](crate::plain::plain) goes over every line of it.

mod break_glass;
mod candidate;
mod check;
mod diff;
mod explain;
mod export;
mod history;
mod init;
mod publish;
mod revert;
mod simulate;
mod test;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

pub use self::init::write_defaults;
use super::{Cli, Failure, Output};
use crate::{
    base::{ids::OrgId, plain::plain},
    core::{
        access::rules,
        policy::{self, Compiled, Given, org_file},
        store::{Db, backup::database_file},
    },
};

/// Work with the permission policies.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Write the policy that is built in into a folder, to begin a policy of one's own
    Init(init::Init),
    /// Name everything that is wrong with the policy
    Check(check::Check),
    /// Say which roles gain and lose which permissions where, if a folder or an earlier version were in force
    Diff(diff::Diff),
    /// Say whether the policy comes to what its expectations.csv expects
    Test(test::Test),
    /// Show the versions of an organization's own rules in the database, who wrote them and why
    History(history::History),
    /// Store an organization's file as the newest version in the database, where its rules can be edited without files
    Publish(publish::Publish),
    /// Write an organization's own rules, or a version of them, to standard output or into a file
    Export(export::Export),
    /// Make an earlier version the newest again
    Revert(revert::Revert),
    /// Say which calls of the last days a folder or an earlier version would have decided otherwise, and which lines nothing
    /// asked for
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
            Self::Check(command) => command.run(cli).await,
            Self::Diff(command) => command.run(cli).await,
            Self::Test(command) => command.run(cli).await,
            Self::History(command) => command.run(cli).await,
            Self::Publish(command) => command.run(cli).await,
            Self::Export(command) => command.run(cli).await,
            Self::Revert(command) => command.run(cli).await,
            Self::Simulate(command) => command.run(cli).await,
            Self::BreakGlass(command) => command.run(cli).await,
            Self::Explain(command) => command.run(cli).await,
        }
    }
}

/// The database; none where there is none yet, or nothing in it.
async fn database(cli: &Cli) -> Result<Option<Db>, Failure> {
    if database_file(&cli.settings()?).is_ok_and(|file| !file.exists()) {
        return Ok(None);
    }
    let db = cli.any_database().await?;
    Ok(if db.is_blank().await? { None } else { Some(db) })
}

/// The organizations' own rules in the database.
async fn stored(cli: &Cli) -> Result<Given, Failure> {
    let Some(db) = database(cli).await? else { return Ok(Given::new()) };
    let stored = rules::all_newest(&db).await;
    db.close().await;
    Ok(stored?)
}

/// What the service decides by; of one organization, whose file has to be good.
async fn in_force(cli: &Cli, org: Option<OrgId>) -> Result<Compiled, Failure> {
    let dir = cli.settings()?.policy_dir;
    let policy =
        Compiled::read(dir.as_deref(), &stored(cli).await?).map_err(|problems| refused(&problems))?;
    let mut wrong = policy.problems_of_files();
    wrong.retain(|problem| org.is_some() && problem.org == org);
    if wrong.is_empty() { Ok(policy) } else { Err(refused(&wrong)) }
}

/// The file with an organization's own rules in the service's policy folder, if there is one.
fn own_file(cli: &Cli, org: OrgId) -> Result<Option<PathBuf>, Failure> {
    let file = cli.settings()?.policy_dir.map(|dir| dir.join(org_file(org)));
    Ok(file.filter(|file| file.symlink_metadata().is_ok()))
}

fn shown(file: Option<&Path>) -> Value {
    json!(file.map(|file| file.display().to_string()))
}

/// What an administrator has to do until a stored version is in force.
fn in_force_when(file: Option<&Path>) -> String {
    match file {
        None => "It is in force within a second.".to_owned(),
        Some(file) => format!(
            "It is not in force as long as {} is there: delete that file from the policy folder of every replica.",
            file.display()
        ),
    }
}

/// A policy that is not good.
fn refused(problems: &[policy::LintProblem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(|problem| plain(&problem.to_string())).collect();
    Failure::new(format!("the policy is refused:\n{}", lines.join("\n")))
}
