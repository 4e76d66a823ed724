//! What the doctor says of policies: what only the folder, the database and the replicas tell together.

use std::{collections::BTreeSet, path::Path};

use super::Finding;
use crate::{
    base::{
        numerals::counted,
        problem::{Problem, Result},
        time::Clock,
    },
    core::{
        access::rules,
        config::Config,
        policy::{LintProblem, Policy, listed, org_file},
        replicas,
        store::Db,
    },
};

/// How many files or replicas a finding names.
const NAMED: usize = 10;
/// Organizations' rules in the database.
const VERSIONS: &str = "policy versions";

pub(super) async fn found(db: &Db, config: &Config) -> Vec<Finding> {
    let Ok(policy) = load(config.policy_dir()) else {
        let advice = "mend the policy files first";
        return vec![Finding::look(VERSIONS, "not checked: the policy files are not good", advice)];
    };
    let asked = async {
        let stored = rules::all_newest(db).await?.into_iter();
        policy.give(stored.map(|(org, text)| (org, Some(text.to_string()))));
        Ok::<_, Problem>([
            Some(rules(&policy)),
            stray_files(db, &policy).await?,
            Some(folders(db, &policy.status().folder).await?),
        ])
    };
    match asked.await {
        Ok(findings) => findings.into_iter().flatten().collect(),
        Err(problem) => vec![Finding::bad(VERSIONS, problem.to_string(), "check the database")],
    }
}

fn load(dir: Option<&Path>) -> std::result::Result<Policy, Vec<LintProblem>> {
    dir.map_or_else(Policy::embedded, Policy::load)
}

/// Whether the rules in the database are good with the files for every organization.
fn rules(policy: &Policy) -> Finding {
    let mut wrong = policy.status().problems;
    wrong.retain(|problem| problem.org.is_some_and(|org| !policy.has_file(org)));
    if wrong.is_empty() {
        return Finding::good(VERSIONS, "the organizations' rules in the database are good");
    }
    let advice =
        "`muster policy publish` or `revert` a good version; until then only what these rules deny holds";
    Finding::bad(VERSIONS, listed(&wrong), advice)
}

/// Files for organizations that there are not: what is wrong with them is the number.
async fn stray_files(db: &Db, policy: &Policy) -> Result<Option<Finding>> {
    let rows = db.all("SELECT id FROM organizations".to_owned(), vec![]).await?;
    let there: BTreeSet<i64> =
        rows.iter().map(|row| row.try_get_by_index(0)).collect::<std::result::Result<_, _>>()?;
    let strays = policy.files().into_iter().filter(|org| !there.contains(&org.0));
    let strays: Vec<String> = strays.map(org_file).collect();
    if strays.is_empty() {
        return Ok(None);
    }
    let advice = "give the file the number of its organization, or remove it: an organization that gets this number would \
                  get these rules";
    let found = format!("there is no organization for {}", first(&strays));
    Ok(Some(Finding::look("policy files", found, advice)))
}

/// Whether all replicas that serve have the same policy folder as this command.
async fn folders(db: &Db, folder: &str) -> Result<Finding> {
    const CHECK: &str = "policy folders";
    let serving = replicas::live(db, Clock::system().now()).await?;
    let differing = serving.iter().filter(|replica| replica.policy_folder != folder);
    let differing: Vec<String> = differing.map(ToString::to_string).collect();
    if differing.is_empty() {
        let serving = counted(serving.len(), "replica");
        return Ok(Finding::good(CHECK, format!("{serving} serving, with the same files as here")));
    }
    let advice = "bring the same policy folder to every replica, and to this command: until then they decide differently";
    Ok(Finding::look(CHECK, format!("other files than here have {}", first(&differing)), advice))
}

/// Not more of them than a person reads.
fn first(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}
