//! The policy in force: which texts decide, and putting others in their place.
//!
//! An organization's own rules are those of its file where the folder has one, and otherwise those that the caller has given
//! ([`Policy::give`]). Everything that reads files or compiles takes its time and is not for async threads; questions are
//! answered from what is in force, and never wait.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use serde::Serialize;

use super::{
    compiled::Compiled,
    explain::Explanation,
    folder::Folder,
    line::{LintProblem, Subject},
    source::{File, Given, Sources},
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, PermissionSet, Role},
    time::{Clock, Timestamp},
};

/// The policy in force. Cheap to clone; all clones are the same policy.
#[derive(Clone)]
pub struct Policy(Arc<Inner>);

struct Inner {
    /// Where it is read from; none for the copy in the program.
    dir: Option<PathBuf>,
    live: ArcSwap<Compiled>,
    found: ArcSwap<Found>,
    /// What the next policy is made of. Held while it is made, so that two don't overtake each other.
    parts: Mutex<Parts>,
    readings: [AtomicU64; 2],
}

struct Parts {
    folder: Option<Folder>,
    /// The texts that were last good as a whole.
    good: Sources,
    given: Given,
    /// What the log was told. Nothing at the beginning: it may be right with what is given.
    told: Vec<LintProblem>,
}

/// What the last look at the folder has found.
struct Found {
    version: String,
    /// The organizations that have a file.
    files: BTreeSet<OrgId>,
    problems: Vec<LintProblem>,
}

/// What `/health` says about the policy.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyStatus {
    /// Identifies everything that is in force.
    pub version: String,
    /// Identifies the files as they are in the folder.
    pub folder: String,
    /// Since when it is in force.
    pub loaded_at: Timestamp,
    /// How many organizations have rules of their own.
    pub organizations: usize,
    /// What is wrong with the files, and with the rules that were given.
    pub problems: Vec<LintProblem>,
}

/// How many problems of one reading the log names.
const LOGGED: usize = 20;

impl Policy {
    /// Reads the policy in `dir`. Touches the disk.
    ///
    /// # Errors
    /// Something is wrong with the files for every organization.
    pub fn load(dir: &Path) -> Result<Self, Vec<LintProblem>> {
        Self::new(Some(Folder::read(dir)), Some(dir.to_owned()))
    }

    /// The policy that the program was built with.
    ///
    /// # Errors
    /// Never: a test says so.
    pub fn embedded() -> Result<Self, Vec<LintProblem>> {
        Self::new(None, None)
    }

    fn new(folder: Option<Folder>, dir: Option<PathBuf>) -> Result<Self, Vec<LintProblem>> {
        let good = folder.as_ref().map_or_else(Sources::embedded, |folder| folder.sources.clone());
        let compiled = Compiled::build(good.clone(), None)?;
        let found = Found::of(&good, &good, compiled.problems().to_vec());
        Ok(Self(Arc::new(Inner {
            dir,
            live: ArcSwap::from_pointee(compiled),
            found: ArcSwap::from_pointee(found),
            parts: Mutex::new(Parts { folder, good, given: Given::new(), told: Vec::new() }),
            readings: Default::default(),
        })))
    }

    /// The folder that it is read from; none for the copy in the program.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.0.dir.as_deref()
    }

    /// All of what is in force at this moment.
    #[must_use]
    pub fn now(&self) -> Arc<Compiled> {
        self.0.live.load_full()
    }

    /// Everything that `role` may do in `org`.
    #[must_use]
    pub fn role_permissions(&self, org: OrgId, role: Role) -> PermissionSet {
        self.0.live.load().table.role_permissions(org, role)
    }

    /// Whether `role` may do `permission` in `org`.
    #[must_use]
    pub fn allows(&self, org: OrgId, role: Role, permission: Permission) -> bool {
        self.role_permissions(org, role).contains(permission)
    }

    /// What a service token may carry at most.
    #[must_use]
    pub fn token_cap(&self) -> PermissionSet {
        self.0.live.load().table.token_cap()
    }

    /// The line that decides whether `subject` may do `permission` in `org`; none if no line speaks of it, which
    /// refuses it. Looks through all lines about the organization when it is first asked: for the log and for refusals, not
    /// for checks.
    #[must_use]
    pub fn deciding_line(&self, org: OrgId, subject: Subject, permission: Permission) -> Option<Arc<str>> {
        self.0.live.load().deciding_line(org, subject, permission)
    }

    /// Why `subject` may or may not do `permission` in `org`; without one, in every organization that has no rules
    /// of its own.
    #[must_use]
    pub fn explain(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Explanation {
        self.0.live.load().explain(org, subject, permission)
    }

    /// The text of `policy.csv` that is in force, and of the expectations if there are any.
    #[must_use]
    pub fn base_texts(&self) -> (String, Option<String>) {
        let live = self.0.live.load();
        let text = |file: &File| file.text.as_deref().ok().map(str::to_owned);
        let sources = &live.book.sources;
        (text(&sources.policy).unwrap_or_default(), sources.expectations.as_ref().and_then(text))
    }

    /// Whether the folder has a file with this organization's rules, so that nothing that is given decides.
    #[must_use]
    pub fn has_file(&self, org: OrgId) -> bool {
        self.0.found.load().files.contains(&org)
    }

    /// The organizations whose rules are in files.
    #[must_use]
    pub fn files(&self) -> Vec<OrgId> {
        self.0.found.load().files.iter().copied().collect()
    }

    /// What is in force, and what is wrong with the texts as they are now.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        let (live, found) = (self.0.live.load(), self.0.found.load());
        PolicyStatus {
            version: live.version().to_owned(),
            folder: found.version.clone(),
            loaded_at: live.loaded_at,
            organizations: live.table.organizations(),
            problems: found.problems.clone(),
        }
    }

    /// How often changed files were taken, and refused.
    #[must_use]
    pub fn readings(&self) -> (u64, u64) {
        let [taken, refused] = &self.0.readings;
        (taken.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
    }

    /// Reads the files that were changed and puts them in force: everything that is wrong, as long as it is. Touches the
    /// disk.
    ///
    /// # Errors
    /// Something is wrong. Where it is the files for every organization, what was in force stays; where it is an
    /// organization's own file, its last good rules do.
    pub fn reload(&self) -> Result<(), Vec<LintProblem>> {
        self.look();
        let problems = self.0.found.load().problems.clone();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The same; whether anything was changed.
    pub(super) fn look(&self) -> bool {
        let mut parts = self.parts();
        let Some(folder) = &mut parts.folder else { return false };
        let before = folder.sources.version.clone();
        folder.look(Clock::system().now());
        if folder.sources.version == before {
            return false;
        }
        let is_good = self.take(&mut parts);
        tracing::info!(folder = self.0.found.load().version, is_good, "policy.folder_read");
        self.0.readings[usize::from(!is_good)].fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Gives organizations rules of their own, or takes them away: in force where the folder has no file. Answers whether
    /// that has changed what is in force.
    pub fn give(&self, texts: impl IntoIterator<Item = (OrgId, Option<String>)>) -> bool {
        let mut parts = self.parts();
        for (org, text) in texts {
            match text {
                Some(text) => drop(parts.given.insert(org, text.into())),
                None => drop(parts.given.remove(&org)),
            }
        }
        let before = self.now();
        self.take(&mut parts);
        before.version() != self.0.live.load().version()
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the parts in force, the folder's as far as they are good: whether nothing is wrong with them.
    fn take(&self, parts: &mut Parts) -> bool {
        let read = parts.folder.as_ref().map_or_else(|| parts.good.clone(), |it| it.sources.clone());
        let live = self.now();
        let (compiled, problems) = match judge(read.clone().completed(&parts.given), &live) {
            Ok((compiled, problems)) => {
                parts.good = read.clone();
                (Some(compiled), problems)
            }
            Err(problems) => {
                // The folder stays as it was; what is given may be new.
                let before = judge(parts.good.clone().completed(&parts.given), &live);
                (before.ok().map(|(compiled, _)| compiled), problems)
            }
        };
        log(problems.iter().filter(|problem| !parts.told.contains(problem)));
        parts.told.clone_from(&problems);
        let found = Found::of(&read, &parts.good, problems);
        let is_good = found.problems.is_empty();
        self.0.found.store(Arc::new(found));
        // Unchanged texts keep the time since when they are in force.
        if let Some(compiled) = compiled.filter(|it| it.version() != live.version()) {
            self.0.live.store(Arc::new(compiled));
        }
        is_good
    }
}

/// Judges the texts; where an organization's file is wrong, with the last good text in its place. With it, everything that
/// is wrong.
fn judge(sources: Sources, live: &Compiled) -> Result<(Compiled, Vec<LintProblem>), Vec<LintProblem>> {
    let compiled = Compiled::build(sources, Some(live))?;
    let problems = compiled.problems().to_vec();
    let wrong = compiled.problems_of_files().into_iter().filter_map(|problem| problem.org);
    let mut kept = compiled.book.sources.clone();
    for org in wrong.collect::<BTreeSet<_>>() {
        let was_wrong = live.problems().iter().any(|problem| problem.org == Some(org));
        if !was_wrong {
            kept = kept.with_org(org, live.org_text(org));
        }
    }
    if kept.version == compiled.version() {
        return Ok((compiled, problems));
    }
    Ok((Compiled::build(kept, Some(live))?, problems))
}

/// Tells the log what is wrong, and what that means.
fn log<'a>(problems: impl Iterator<Item = &'a LintProblem>) {
    for problem in problems.take(LOGGED) {
        let means = match problem.org {
            None => "nothing is taken from the folder; the last good policy stays in force",
            Some(_) => "the organization keeps its last good file, or else only what its rules deny",
        };
        tracing::error!(%problem, means, "policy.problem");
    }
}

impl Found {
    fn of(read: &Sources, good: &Sources, problems: Vec<LintProblem>) -> Self {
        // A file that is gone from a folder that is refused still decides.
        let files = read.orgs.iter().chain(&good.orgs).map(|(org, _)| *org).collect();
        Self { version: read.version.clone(), files, problems }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("dir", &self.0.dir).finish_non_exhaustive()
    }
}
