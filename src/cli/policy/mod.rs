//! `muster policy …`: one file per command.
//!
//! Files named on the command line are read as they are, without a database. Otherwise the commands work on what the
//! service uses: its policy folder and, for organizations without a file there, the newest versions in the database.
//! The shown text is written by tenants, so every line goes through [`without_controls`](crate::base::plain::without_controls).

mod break_glass;
mod candidate;
mod check;
mod diff;
mod explain;
mod export;
mod history;
mod init;
mod matrix;
mod publish;
mod revert;
mod simulate;
mod source;
mod test;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

pub use self::init::write_defaults;
use super::{Cli, Failure, Output};
use crate::{
    base::{ids::OrgId, plain::without_controls},
    core::{
        access::org_policies,
        policy::{self, Compiled, Given, org_file},
        store::{Db, backup::database_file},
    },
};

/// Work with the permission policies.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Write the built-in policy to a folder, as a start for your own
    Init(init::Init),
    /// List everything that is wrong with the policy
    Check(check::Check),
    /// Show which roles would gain and lose which permissions if a folder or an earlier version were in force
    Diff(diff::Diff),
    /// Check that the policy meets its expectations: expectations.csv, and those in organizations' own rules
    Test(test::Test),
    /// Show the versions of an organization's own rules in the database, with author and reason
    History(history::History),
    /// Store an organization's file as the newest version in the database, where its rules can be edited without files
    Publish(publish::Publish),
    /// Write an organization's own rules, or a version of them, to standard output or a file
    Export(export::Export),
    /// Make an earlier version the newest again
    Revert(revert::Revert),
    /// Show which recent calls a folder or an earlier version would have decided differently, and which lines no call
    /// used
    Simulate(simulate::Simulate),
    /// As the operator: make someone OWNER of an organization in which no one can edit the policy
    BreakGlass(break_glass::BreakGlass),
    /// Show who may do what and because of which line; or why not, and which line would allow it
    Explain(explain::Explain),
    /// Show the permissions of every role and the most that a service token can have, as one table
    Matrix(matrix::Matrix),
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
            Self::Matrix(command) => command.run(cli).await,
        }
    }
}

/// The database, or `None` if there is none yet or it is empty.
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
    let stored = org_policies::all_newest(&db).await;
    db.close().await;
    Ok(stored?)
}

/// The texts that the service decides by; if for one organization, its file must be valid.
async fn in_force(cli: &Cli, org: Option<OrgId>) -> Result<Compiled, Failure> {
    let dir = cli.settings()?.policy_dir;
    let policy =
        Compiled::read(dir.as_deref(), &stored(cli).await?).map_err(|problems| refused(&problems))?;
    let mut wrong = policy.problems_of_files();
    wrong.retain(|problem| org.is_some() && problem.org == org);
    if wrong.is_empty() { Ok(policy) } else { Err(refused(&wrong)) }
}

/// The organization's own file in the service's policy folder, if there is one.
fn own_file(cli: &Cli, org: OrgId) -> Result<Option<PathBuf>, Failure> {
    let file = cli.settings()?.policy_dir.map(|dir| dir.join(org_file(org)));
    Ok(file.filter(|file| file.symlink_metadata().is_ok()))
}

fn shown(file: Option<&Path>) -> Value {
    json!(file.map(|file| file.display().to_string()))
}

/// What the operator must do to bring a stored version into force.
fn in_force_when(file: Option<&Path>) -> String {
    match file {
        None => "It is in force within a second.".to_owned(),
        Some(file) => format!(
            "It comes into force when you delete {} from the policy folder of every replica.",
            file.display()
        ),
    }
}

/// An invalid policy.
fn refused(problems: &[policy::LintProblem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(|problem| without_controls(&problem.to_string())).collect();
    Failure::invalid(format!("the policy is invalid:\n{}", lines.join("\n")))
}
