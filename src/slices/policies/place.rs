//! Putting a version's text where it belongs: into the organization's own file, and in force.
//!
//! An edit prepares its file before it commits, so that a folder that can't be written refuses it. What goes wrong
//! after the commit refuses nothing: the text is in force from memory, and the rounds (`sync`) try the file again.

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    sync::State,
    versions::{self, version_of},
};
use crate::{
    base::{
        ids::{OrgId, PolicyVersionId},
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        policy::{LintProblem, Placed, Policy, Prepared, listed, org_file},
        store::Tx,
    },
    slices::orgs,
};

/// Prepares an organization's next file, so that after the commit nothing but a rename is left.
///
/// # Errors
/// `POLICY_NOT_WRITABLE`.
pub(super) async fn prepare(core: &Arc<Core>, org: OrgId, text: Option<String>) -> Result<Prepared> {
    let worker = Arc::clone(core);
    let prepared = tokio::task::spawn_blocking(move || worker.policy.prepare(org, text));
    prepared.await.map_err(Problem::internal)?.map_err(|error| {
        let folder = core.policy.dir().unwrap_or(Path::new("")).display();
        tracing::error!(organization = org.0, %folder, %error, "policy.file_not_prepared");
        let file = org_file(org);
        let detail = format!(
            "{file} can't be written ({error}), so nothing was changed. The operator has to let the service write the policy \
             folder; then repeat the edit."
        );
        Problem::new(Code::PolicyNotWritable, detail).with("file", file)
    })
}

/// Puts a version that was just committed in force here. Other replicas find it in the database. The version stands: what
/// fails now is told in the log, and mended by the rounds.
pub(super) async fn publish(core: &Arc<Core>, prepared: Prepared) {
    let org = prepared.org;
    let synced = super::synced(core);
    let mut state = synced.0.lock().await;
    let put = match newest(core, org).await {
        Ok((tx, row, newest)) => {
            let put = over_a_version(core, &mut state, &tx, prepared, (row, newest)).await;
            let _ = tx.rollback().await;
            put
        }
        // What is to be replaced can't be looked up any more.
        Err(_) => {
            let over = core.policy.file_text(org);
            let version = version_of(prepared.text.as_deref());
            let put = move |policy: &Policy| policy.put(prepared, over.as_deref());
            place(core, &mut state, org, (None, version), put).await
        }
    };
    if let Err(error) = put {
        tracing::error!(organization = org.0, error = format!("{error:#}"), "policy.not_in_force_here");
    }
    state.write_note(core.policy.dir());
}

/// Puts the newest version in force, unless its file has a text by now that never was one: that is a hand edit, which a
/// round makes the newest version. The organization is locked, so that no other replica writes meanwhile.
async fn over_a_version(
    core: &Arc<Core>,
    state: &mut State,
    tx: &Tx,
    prepared: Prepared,
    (row, newest): (Option<PolicyVersionId>, Option<String>),
) -> anyhow::Result<bool> {
    let org = prepared.org;
    let over = core.policy.file_text(org);
    // What could not be overwritten before may never have been a version.
    let is_held_over = core.policy.unwritten().contains(&org) && core.policy.read_text(org) == over;
    if over != newest && !is_held_over {
        let was = versions::was(tx, &version_of(over.as_deref())).await;
        if !was.map_err(|problem| anyhow::anyhow!("{problem}"))? {
            return Ok(overtaken(state, org));
        }
    }
    if newest != prepared.text {
        // Who committed later was here earlier.
        return put(core, state, org, (row, newest), over).await;
    }
    let version = version_of(newest.as_deref());
    place(core, state, org, (row, version), move |policy| policy.put(prepared, over.as_deref())).await
}

/// The newest version and its text, and what keeps it the newest one.
async fn newest(core: &Arc<Core>, org: OrgId) -> Result<(Tx, Option<PolicyVersionId>, Option<String>)> {
    // Not the editor's scope: what an edit demands of the record was looked at with the edit.
    let tx = Scope::system(core, org).begin().await?;
    orgs::lock(&tx).await?;
    let newest = versions::newest(&tx).await?;
    let (row, text) = newest.map(|newest| (newest.id, newest.text)).unzip();
    Ok((tx, row, text.flatten()))
}

/// Puts the database's text in force here, in the place of the file's text `over`, and notes it if the file has it as well:
/// whether it has.
pub(super) async fn put(
    core: &Arc<Core>,
    state: &mut State,
    org: OrgId,
    (row, text): (Option<PolicyVersionId>, Option<String>),
    over: Option<String>,
) -> anyhow::Result<bool> {
    let version = version_of(text.as_deref());
    place(core, state, org, (row, version), move |policy| policy.put_org(org, text, over.as_deref())).await
}

/// Answers whether the file has the text.
async fn place(
    core: &Arc<Core>,
    state: &mut State,
    org: OrgId,
    (row, version): (Option<PolicyVersionId>, String),
    put: impl FnOnce(&Policy) -> Result<Placed, Vec<LintProblem>> + Send + 'static,
) -> anyhow::Result<bool> {
    let worker = Arc::clone(core);
    let placed = tokio::task::spawn_blocking(move || put(&worker.policy)).await?;
    let placed = placed.map_err(|problems| anyhow::anyhow!("organization {org}: {}", listed(&problems)))?;
    // Whoever is being served on the strength of the old policy is asked for anew.
    core.access.cache.invalidate_all();
    match placed {
        Placed::Written => {
            state.note(org, version, row);
            tracing::info!(organization = org.0, "policy.file_written");
            Ok(true)
        }
        Placed::Held(error) => {
            let failures = state.retries.failed(org, version, core.clock.elapsed());
            // Told ever more rarely; the gauge, /health and `muster doctor` tell it for as long as it lasts.
            if failures.is_power_of_two() {
                tracing::error!(organization = org.0, %error, failures, "policy.file_not_written; in force all the same");
            }
            Ok(false)
        }
        Placed::Overtaken => Ok(overtaken(state, org)),
    }
}

/// Leaves a hand edit that came in between to the next round, which makes it a version.
fn overtaken(state: &mut State, org: OrgId) -> bool {
    tracing::warn!(organization = org.0, "policy.file_edited_meanwhile");
    state.unsettled = true;
    false
}

/// How old a prepared file has to be for nobody to be about to put it in place any more. Between the two is a
/// transaction, which takes seconds. The file's age is what the folder's own clock wrote on it (on a network file system the
/// server's) against the service's: this is far more than two clocks that somebody looks after are apart. Should it
/// be too little all the same, the rename fails, and the text is written anew by the rounds.
const LEFT_BEHIND: Duration = Duration::from_mins(15);

/// Removes what was prepared and never put in place, because its process was killed in between: how many files.
///
/// # Errors
/// Never for the folder's sake: leftovers harm nobody, so it is told in the log.
pub async fn sweep(core: &Arc<Core>) -> Result<u64> {
    let (worker, before) = (Arc::clone(core), core.clock.now().minus(LEFT_BEHIND));
    let swept = tokio::task::spawn_blocking(move || worker.policy.sweep(before));
    let swept = swept.await.map_err(Problem::internal)?;
    Ok(swept.unwrap_or_else(|error| {
        tracing::warn!(%error, "policy.leftovers_not_removed");
        0
    }))
}

/// A file that the database overrules is not lost.
pub(super) fn keep_beside(dir: Option<&Path>, org: OrgId, text: Option<&String>) {
    let (Some(dir), Some(text)) = (dir, text) else { return };
    let path = dir.join(format!("orgs/.{org}.csv.replaced"));
    match std::fs::write(&path, text) {
        Ok(()) => tracing::warn!(organization = org.0, kept = %path.display(), "policy.file_overruled"),
        Err(error) => tracing::warn!(organization = org.0, %error, "policy.file_overruled_and_not_kept"),
    }
}
