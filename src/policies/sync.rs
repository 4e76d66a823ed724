//! Brings the policy folder and the database together, on every replica.
//!
//! For each organization's own file there are three texts: that in the folder, the newest in the database, and the one
//! that both had when they were last seen equal (noted in `.synced.json` beside the files, so that replicas which share
//! the folder share the note). Whichever differs from the note was changed:
//!
//! - only the database: the file is written;
//! - the file (whether or not the database was changed as well): a hand edit, which becomes the newest version. What it
//!   displaces stays in the history.
//! - nothing is noted (a new folder) and they differ: the database is right. The file's text is kept beside, hidden.
//!
//! Only a folder that is good as a whole is looked at: what is refused is not in force and becomes no version.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use serde_json::json;
use tokio::sync::Mutex;

use super::versions::{self, Author, NO_FILE, version_of};
use crate::{
    access::{Scope, policy::changed_lines},
    app::App,
    audit,
    error::{Problem, Result},
    ids::OrgId,
    orgs,
};

/// What this process knows of the folder and the database.
#[derive(Default)]
pub struct Synced(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether the note beside the files was read.
    begun: bool,
    /// The version that folder and database had in common, by organization.
    noted: BTreeMap<OrgId, String>,
    /// The database and the folder when all was well.
    seen: Option<((i64, i64), String)>,
}

/// The note's name: hidden, so that it is no file of the policy.
const NOTE: &str = ".synced.json";

/// Looks whether the folder or the database was changed, and brings them together. Cheap when nothing was.
///
/// # Errors
/// The database is out of reach, or the folder can't be written.
pub async fn round(app: &Arc<App>) -> Result<u64> {
    let mut state = app.policies.synced.0.lock().await;
    let (mark, folder) = (versions::mark(app).await?, app.policy.status().version);
    if state.seen.as_ref().is_some_and(|seen| seen.0 == mark && seen.1 == folder) {
        return Ok(0);
    }
    together(app, &mut state).await
}

/// The same at once, after reading the folder anew.
pub(super) async fn now(app: &Arc<App>) -> Result<()> {
    let worker = Arc::clone(app);
    tokio::task::spawn_blocking(move || worker.policy.refresh()).await.map_err(Problem::internal)?;
    round(app).await.map(drop)
}

/// Puts a version that was just committed in force here. Other replicas find it in the database.
pub(super) async fn publish(app: &Arc<App>, org: OrgId, text: Option<String>) -> Result<()> {
    let mut state = app.policies.synced.0.lock().await;
    let version = version_of(text.as_deref());
    put(app, org, text).await?;
    state.noted.insert(org, version);
    state.write_note(app.policy.dir());
    Ok(())
}

async fn put(app: &Arc<App>, org: OrgId, text: Option<String>) -> Result<()> {
    let worker = Arc::clone(app);
    let put = tokio::task::spawn_blocking(move || worker.policy.put_org(org, text.as_deref()));
    put.await.map_err(Problem::internal)?.map_err(|error| {
        Problem::internal(
            anyhow::Error::new(error).context(format!("writing the policy of organization {org}")),
        )
    })?;
    // Whoever is being served on the strength of the old policy is asked for anew.
    app.sessions.forget();
    Ok(())
}

async fn together(app: &Arc<App>, state: &mut State) -> Result<u64> {
    state.begin(app.policy.dir());
    let worker = Arc::clone(app);
    tokio::task::spawn_blocking(move || worker.policy.refresh()).await.map_err(Problem::internal)?;
    if !app.policy.status().problems.is_empty() {
        return Ok(0);
    }
    let newest: BTreeMap<OrgId, String> = versions::known(app).await?.into_iter().collect();
    let files: BTreeMap<OrgId, String> = app.policy.org_texts().into_iter().collect();
    let mut done = 0;
    let orgs: BTreeSet<OrgId> =
        newest.keys().chain(files.keys()).chain(state.noted.keys()).copied().collect();
    for org in orgs {
        let here = files.get(&org);
        let version = version_of(here.map(String::as_str));
        let there = newest.get(&org).map_or(NO_FILE, String::as_str);
        let noted = state.noted.get(&org).map(String::as_str);
        if version != there {
            let edited =
                if newest.contains_key(&org) { noted.is_some_and(|noted| noted != version) } else { true };
            if edited {
                if !adopt(app, org, here.cloned()).await? {
                    continue; // there is no such organization
                }
            } else {
                let text = newest_text(app, org).await?;
                if noted.is_none() {
                    keep_beside(app.policy.dir(), org, here);
                }
                tracing::info!(organization = org.0, "policy.file_written");
                put(app, org, text).await?;
            }
            done += 1;
        }
        // After an adoption this is the file's own version; after a write, the database's.
        let now = version_of(app.policy.org_text(org).as_deref());
        state.noted.insert(org, now);
    }
    done += note_operators(app).await?;
    state.noted.retain(|org, version| version != NO_FILE || newest.contains_key(org));
    state.write_note(app.policy.dir());
    state.seen = Some((versions::mark(app).await?, app.policy.status().version));
    if done > 0 {
        app.sessions.forget();
    }
    Ok(done)
}

/// Makes a hand edit a version. False if there is no such organization.
async fn adopt(app: &Arc<App>, org: OrgId, text: Option<String>) -> Result<bool> {
    let sql = "SELECT 1 FROM organizations WHERE id = $1";
    if app.db.one(sql.to_owned(), vec![org.0.into()]).await?.is_none() {
        return Ok(false);
    }
    let scope = Scope::system(app, org);
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let before = versions::newest(&tx).await?.and_then(|newest| newest.text);
    let (was, is) = (version_of(before.as_deref()), version_of(text.as_deref()));
    // Another replica that sees the same folder may have been faster.
    if was == is {
        tx.rollback().await?;
        return Ok(true);
    }
    let mut lines = changed_lines(before.as_deref().unwrap_or(""), text.as_deref().unwrap_or(""));
    lines.truncate(200);
    let row = versions::add(&tx, text, Author::file()).await?;
    let changes = json!({ "reason": null, "author": "file", "from": was, "to": is, "lines": lines });
    let (operation, target_kind, target_id) = ("policyFileEdited", "policy", row.id.0);
    audit::record(&tx, audit::Entry { operation, target_kind, target_id, changes }).await?;
    tx.commit().await?;
    tracing::info!(organization = org.0, version = row.id.0, "policy.file_edited_by_hand");
    Ok(true)
}

async fn newest_text(app: &Arc<App>, org: OrgId) -> Result<Option<String>> {
    let newest = versions::history(&Scope::system(app, org), 1).await?;
    Ok(newest.into_iter().next().and_then(|newest| newest.text))
}

/// The operator's own files are what they are in the folder; the database only remembers them.
async fn note_operators(app: &App) -> Result<u64> {
    if app.policy.dir().is_none() {
        return Ok(0);
    }
    let (policy, expectations) = app.policy.base_texts();
    let mut noted = u64::from(versions::note_operators(app, "policy.csv", Some(policy)).await?);
    noted += u64::from(versions::note_operators(app, "expectations.csv", expectations).await?);
    Ok(noted)
}

/// A file that the database overrules is not lost.
fn keep_beside(dir: Option<&Path>, org: OrgId, text: Option<&String>) {
    let (Some(dir), Some(text)) = (dir, text) else { return };
    let path = dir.join(format!("orgs/.{org}.csv.replaced"));
    match std::fs::write(&path, text) {
        Ok(()) => tracing::warn!(organization = org.0, kept = %path.display(), "policy.file_overruled"),
        Err(error) => tracing::warn!(organization = org.0, %error, "policy.file_overruled_and_not_kept"),
    }
}

impl State {
    fn begin(&mut self, dir: Option<&Path>) {
        if self.begun {
            return;
        }
        self.begun = true;
        let note = dir.and_then(|dir| std::fs::read_to_string(dir.join(NOTE)).ok());
        let note: Option<BTreeMap<OrgId, String>> = note.and_then(|note| serde_json::from_str(&note).ok());
        self.noted = note.unwrap_or_default();
    }

    /// A folder that can't be written has no note; then this process alone remembers.
    fn write_note(&self, dir: Option<&Path>) {
        let Some(dir) = dir else { return };
        let note = serde_json::to_string(&self.noted).unwrap_or_default();
        let path = dir.join(NOTE);
        if std::fs::read_to_string(&path).is_ok_and(|known| known == note) {
            return;
        }
        if let Err(error) = crate::access::policy::write_whole(&path, &note) {
            tracing::warn!(%error, "policy.note_not_written");
        }
    }
}
