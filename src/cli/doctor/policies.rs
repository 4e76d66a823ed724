//! The doctor's checks of policies that need the folder, the database and the replicas together.

use std::{collections::BTreeSet, path::Path};

use super::Finding;
use crate::{
    base::{
        bounds,
        ids::OrgId,
        numerals::with_noun,
        problem::{Problem, Result},
        time::Clock,
    },
    core::{
        access::org_policies,
        config::Config,
        policy::{LintProblem, Policy, PolicyStatus, listed, org_file},
        replicas,
        store::{
            Db,
            sql::{RunSql as _, installation_sql},
        },
    },
};

/// The check of the rules in the database.
const VERSIONS: &str = "policy versions";

pub(super) async fn found(db: &Db, config: &Config) -> Vec<Finding> {
    let Ok(policy) = load(config.policy_dir()) else {
        let advice = "correct the policy files first";
        return vec![Finding::warning(VERSIONS, "not checked, because the policy files are invalid", advice)];
    };
    let asked = async {
        let stored = org_policies::all_newest(db).await?.into_iter();
        policy.set_given(stored.map(|(org, text)| (org, Some(text.to_string()))));
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

/// Checks the rules in the database together with the files.
fn rules(policy: &Policy) -> Finding {
    let PolicyStatus { problems: mut wrong, warnings: mut unmet, .. } = policy.status();
    let is_stored = |problem: &LintProblem| problem.org.is_some_and(|org| !policy.has_file(org));
    wrong.retain(is_stored);
    unmet.retain(is_stored);
    if !wrong.is_empty() {
        let advice = "`muster policy publish` or `revert` a valid version; until then only the denials in these rules apply";
        return Finding::bad(VERSIONS, listed(&wrong), advice);
    }
    if !unmet.is_empty() {
        return Finding::warning(VERSIONS, listed(&unmet), UNMET);
    }
    Finding::good(VERSIONS, "the organizations' rules in the database are valid")
}

/// The advice on organizations' own expectations that are not met.
pub(super) const UNMET: &str =
    "these organizations' rules stay in force; tell them, or change the rules for everyone";

/// Files of organizations that do not exist: the number in the file's name is wrong.
async fn stray_files(db: &Db, policy: &Policy) -> Result<Option<Finding>> {
    let there = db.installation().column(installation_sql!("SELECT id FROM organizations"), []).await?;
    let there: BTreeSet<OrgId> = there.into_iter().collect();
    let strays = policy.files().into_iter().filter(|org| !there.contains(org));
    let strays: Vec<String> = strays.map(org_file).collect();
    if strays.is_empty() {
        return Ok(None);
    }
    let advice = "rename the file to its organization's id, or remove it: an organization that gets this number would \
                  get these rules";
    let found = format!("no organization exists for {}", first(&strays));
    Ok(Some(Finding::warning("policy files", found, advice)))
}

/// Whether every serving replica has the same policy folder as this command.
async fn folders(db: &Db, folder: &str) -> Result<Finding> {
    const CHECK: &str = "policy folders";
    let serving = replicas::live(db, Clock::system().now()).await?;
    let differing = serving.iter().filter(|replica| replica.policy_folder != folder);
    let differing: Vec<String> = differing.map(ToString::to_string).collect();
    if differing.is_empty() {
        let serving = with_noun(serving.len(), "replica");
        return Ok(Finding::good(CHECK, format!("{serving} serving, with the same files")));
    }
    let advice =
        "give every replica and this command the same policy folder: until then they decide differently";
    Ok(Finding::warning(CHECK, format!("these replicas have different files: {}", first(&differing)), advice))
}

/// The first few names, as many as people read.
fn first(names: &[String]) -> String {
    let shown = names[..names.len().min(bounds::LISTED_IN_TEXT)].join(", ");
    match names.len().saturating_sub(bounds::LISTED_IN_TEXT) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}
