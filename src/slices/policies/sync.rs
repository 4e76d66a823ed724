//! Brings the policy folder and the database together, on every replica.
//!
//! For each organization's own file there are three texts: that in the folder, the newest in the database, and the one
//! that both had when they were last seen equal (noted in `.synced.json` beside the files, so that replicas which share
//! the folder share the note). Whichever differs from the note was changed:
//!
//! - only the database: the file is written;
//! - the file (whether or not the database was changed as well): a hand edit, which becomes the newest version. What it
//!   displaces stays in the history.
//!   A text that was a version since the file was last seen is no hand edit, though: whoever published the next one
//!   has not replaced the file yet.
//! - nothing is noted (a new folder) and they differ: the database is right. The file's text is kept beside, hidden.
//!
//! Only a folder that is good as a whole is looked at: what is refused is not in force and becomes no version.
//!
//! A file that can't be written is tried again, ever more rarely (`retry`); until then its text is in force from memory, and
//! the note keeps the version that the file still has. Files are written while the organization is locked in the database,
//! and always with the newest version: replicas that share a folder don't overtake each other.
//!
//! The order matters where a process can be killed or another replica can come in between, and
//! `tests/it/policies_order.rs` stops it at each such point: first the file, then the note of it; first the mark of what
//! there is, then what there is.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use serde_json::json;
use tokio::sync::Mutex;

use super::{
    place,
    retry::Retries,
    versions::{self, Author, Mark, NO_FILE, version_of},
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{OrgId, PolicyVersionId},
        problem::{Problem, Result},
    },
    core::{Core, access::Scope, audit, policy::write_whole, store::Tx},
    slices::orgs,
};

/// What this process knows of the folder and the database.
#[derive(Default)]
pub struct Synced(pub(super) Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    /// Whether the note beside the files was read.
    begun: bool,
    /// The version that folder and database had in common, by organization.
    noted: BTreeMap<OrgId, String>,
    /// Which of the versions with that text it was, where this process has seen it itself: a text may come again.
    seen_at: BTreeMap<OrgId, PolicyVersionId>,
    /// What there was when all was well.
    seen: Option<Seen>,
    /// Whether something was left for the next round, because the folder was edited meanwhile.
    pub(super) unsettled: bool,
    /// When files that could not be written are tried again.
    pub(super) retries: Retries,
    /// Whether the note could not be written; told when it begins.
    noteless: bool,
}

/// Tells whether anything was changed: in the database, in what is in force, or in what is not in the folder.
#[derive(PartialEq, Eq)]
struct Seen {
    mark: Mark,
    in_force: String,
    unwritten: Vec<OrgId>,
}

impl Seen {
    fn now(core: &Core, mark: Mark) -> Self {
        Self { mark, in_force: core.policy.status().version, unwritten: core.policy.unwritten() }
    }
}

/// The note's name: hidden, so that it is no file of the policy.
const NOTE: &str = ".synced.json";

/// Looks whether the folder or the database was changed, and brings them together. Cheap when nothing was.
///
/// # Errors
/// The database is out of reach, or the folder can't be written.
pub async fn round(core: &Arc<Core>) -> Result<u64> {
    let synced = super::synced(core);
    let mut state = synced.0.lock().await;
    let mark = versions::mark(core).await?;
    if !state.is_called_for(core, mark) {
        return Ok(0);
    }
    let before = newest_rows(core).await?;
    read_folder(core).await?;
    together(core, &mut state, mark, before).await
}

/// The same, but the folder is read in any case: what was edited by hand a moment ago, nobody has seen yet.
pub(super) async fn now(core: &Arc<Core>) -> Result<()> {
    let synced = super::synced(core);
    let mut state = synced.0.lock().await;
    let mark = versions::mark(core).await?;
    let before = newest_rows(core).await?;
    read_folder(core).await?;
    if state.is_called_for(core, mark) {
        together(core, &mut state, mark, before).await?;
    }
    Ok(())
}

/// The newest version of every organization's file.
type Newest = BTreeMap<OrgId, (PolicyVersionId, String)>;

async fn newest_rows(core: &Core) -> Result<Newest> {
    let known = versions::known(&core.db).await?;
    Ok(known.into_iter().map(|(org, row, version)| (org, (row, version))).collect())
}

async fn read_folder(core: &Arc<Core>) -> Result<()> {
    let worker = Arc::clone(core);
    tokio::task::spawn_blocking(move || worker.policy.refresh()).await.map_err(Problem::internal)
}

/// Of a folder that was just read. The mark was taken before what it tells of is read: a change that comes meanwhile is
/// looked at in the next round. `before` is what was the newest before the folder was read.
async fn together(core: &Arc<Core>, state: &mut State, mark: Mark, before: Newest) -> Result<u64> {
    state.begin(core.policy.dir());
    if !core.policy.status().problems.is_empty() {
        return Ok(0);
    }
    let seen = Seen::now(core, mark);
    let newest = newest_rows(core).await?;
    let files: BTreeMap<OrgId, String> = core.policy.org_texts().into_iter().collect();
    let mut done = 0;
    let orgs: BTreeSet<OrgId> =
        newest.keys().chain(files.keys()).chain(state.noted.keys()).copied().collect();
    let now = core.clock.elapsed();
    state.unsettled = false;
    state.retries.keep(&seen.unwritten);
    for org in orgs {
        let version = version_of(files.get(&org).map(String::as_str));
        let there = newest.get(&org).map_or(NO_FILE, |(_, version)| version.as_str());
        let unwritten = seen.unwritten.contains(&org);
        // Another text than the one that could not be written is tried at once.
        if version != there || (unwritten && state.retries.is_due(org, now)) {
            done += u64::from(settle(core, state, org).await?);
        } else if !unwritten && before.get(&org) == newest.get(&org) {
            state.note(org, version, newest.get(&org).map(|(row, _)| *row));
        }
    }
    done += note_operators(core).await?;
    state.noted.retain(|org, version| version != NO_FILE || newest.contains_key(org));
    state.seen_at.retain(|org, _| newest.contains_key(org));
    state.write_note(core.policy.dir());
    state.seen = Some(seen).filter(|_| !state.unsettled);
    if done > 0 {
        core.access.cache.invalidate_all();
    }
    Ok(done)
}

/// Brings file and database together where they differ, while nobody else does or edits: whether that took anything.
async fn settle(core: &Arc<Core>, state: &mut State, org: OrgId) -> Result<bool> {
    let sql = "SELECT 1 FROM organizations WHERE id = $1";
    if core.db.one(sql.to_owned(), vec![org.0.into()]).await?.is_none() {
        // A service that makes an organization of this number would give it these rules.
        tracing::warn!(organization = org.0, "policy.file_of_no_organization");
        return Ok(false);
    }
    let scope = Scope::system(core, org);
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    // Another replica, or a hand, may have been here since the folder was read: what it has undone is no hand edit.
    read_folder(core).await?;
    if !core.policy.status().problems.is_empty() {
        state.unsettled = true;
        tx.rollback().await?;
        return Ok(false);
    }
    let newest = versions::newest(&tx).await?;
    let there = newest.as_ref().map_or(NO_FILE, |newest| newest.version.as_str()).to_owned();
    let (here, over) = (core.policy.org_text(org), core.policy.read_text(org));
    let version = version_of(here.as_deref());
    let unwritten = core.policy.unwritten().contains(&org);
    if version == there && !unwritten {
        tx.rollback().await?;
        state.note(org, version, newest.map(|newest| newest.id));
        return Ok(false);
    }
    let noted = state.noted.get(&org).cloned();
    let edited = match (&newest, &noted) {
        _ if unwritten => false,
        (None, _) => true,
        (Some(_), None) => false,
        // A replica that shares the folder wrote what is no longer the newest: no hand.
        (Some(_), Some(noted)) => {
            let seen_at = state.seen_at.get(&org).copied();
            *noted != version && !versions::follows(&tx, &version, noted, seen_at).await?
        }
    };
    let (row, before) = newest.map(|newest| (newest.id, newest.text)).unzip();
    if edited {
        let row = adopt(tx, before.flatten(), here).await?;
        state.note(org, version, Some(row));
        return Ok(true);
    }
    if noted.is_none() && !unwritten {
        place::keep_beside(core.policy.dir(), org, here.as_ref());
    }
    let written = place::put(core, state, org, (row, before.flatten()), over).await;
    tx.rollback().await?;
    written.map_err(Problem::internal)
}

/// Makes a hand edit a version.
async fn adopt(tx: Tx, before: Option<String>, text: Option<String>) -> Result<PolicyVersionId> {
    let mut changes = versions::difference(before.as_deref(), text.as_deref());
    changes["reason"] = json!(null);
    changes["author"] = "file".into();
    let row = versions::add(&tx, text, Author::file()).await?;
    let (operation, target_id) = ("policyFileEdited", row.id.0);
    audit::record(
        &tx,
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Policy, id: target_id, changes },
    );
    let org = tx.scope.org;
    tx.commit().await?;
    tracing::info!(organization = org.0, version = row.id.0, "policy.file_edited_by_hand");
    Ok(row.id)
}

/// The operator's own files are what they are in the folder; the database only remembers them.
async fn note_operators(core: &Core) -> Result<u64> {
    if core.policy.dir().is_none() {
        return Ok(0);
    }
    let (policy, expectations) = core.policy.base_texts();
    let mut noted = u64::from(versions::note_operators(core, "policy.csv", Some(policy)).await?);
    noted += u64::from(versions::note_operators(core, "expectations.csv", expectations).await?);
    Ok(noted)
}

impl State {
    fn begin(&mut self, dir: Option<&Path>) {
        if self.begun {
            return;
        }
        self.begun = true;
        self.noted = dir.map(read_note).unwrap_or_default();
    }

    /// Notes that the file has the text of this version; which one it is, is known of what was looked up while nobody else
    /// could write it.
    pub(super) fn note(&mut self, org: OrgId, version: String, row: Option<PolicyVersionId>) {
        self.noted.insert(org, version);
        match row {
            Some(row) => drop(self.seen_at.insert(org, row)),
            None => drop(self.seen_at.remove(&org)),
        }
    }

    /// Whether there is anything to look at.
    fn is_called_for(&self, core: &Core, mark: Mark) -> bool {
        let (seen, now) = (Seen::now(core, mark), core.clock.elapsed());
        let is_due = seen.unwritten.iter().any(|org| self.retries.is_due(*org, now));
        is_due || self.unsettled || self.seen.as_ref() != Some(&seen)
    }

    /// A folder that can't be written has no note; then this process alone remembers.
    pub(super) fn write_note(&mut self, dir: Option<&Path>) {
        let Some(dir) = dir else { return };
        let note = serde_json::to_string(&self.noted).unwrap_or_default();
        let path = dir.join(NOTE);
        let known = std::fs::read_to_string(&path).is_ok_and(|known| known == note);
        let written = if known { Ok(()) } else { write_whole(&path, &note) };
        if let Err(error) = &written
            && !self.noteless
        {
            tracing::warn!(%error, "policy.note_not_written");
        }
        self.noteless = written.is_err();
    }
}

/// The versions that a folder and the database had in common when they were last seen.
pub(super) fn read_note(dir: &Path) -> BTreeMap<OrgId, String> {
    let note = std::fs::read_to_string(dir.join(NOTE)).ok();
    note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default()
}
