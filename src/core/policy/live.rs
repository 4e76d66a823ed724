//! The policy in force: which texts it is made of, and how they are replaced.
//!
//! An organization's own rules come from its file if the folder has one, and otherwise from the caller
//! ([`Policy::set_given`]). Reading files and compiling take time and must not happen on async threads; queries are
//! answered from the policy in force and never wait.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use super::{
    compiled::Compiled,
    explain::Explanation,
    folder::Folder,
    line::{LintProblem, Subject},
    source::{File, Given, Sources},
};
use crate::base::{
    bounds,
    ids::OrgId,
    permission::{Permission, PermissionSet, Role},
    time::{Clock, Timestamp},
};

/// The policy in force. Cheap to clone; all clones share it.
#[derive(Clone)]
pub struct Policy(Arc<Inner>);

struct Inner {
    /// The folder; `None` for the built-in policy.
    dir: Option<PathBuf>,
    live: ArcSwap<Compiled>,
    found: ArcSwap<Found>,
    /// The parts of the next policy. Locked while it is built, so that two builds can't overtake each other.
    parts: Mutex<Parts>,
    readings: [AtomicU64; 2],
}

struct Parts {
    folder: Option<Folder>,
    /// The last texts that were valid as a whole.
    good: Sources,
    given: Given,
    /// The problems last logged. Nothing is logged before the given rules are known, which may resolve a problem.
    logged: Vec<LintProblem>,
}

/// The result of the last look at the folder.
struct Found {
    version: String,
    /// The organizations that have a file.
    files: BTreeSet<OrgId>,
    problems: Vec<LintProblem>,
}

/// The policy's status in `/health`.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyStatus {
    /// Identifies everything that is in force.
    pub version: String,
    /// Identifies the files in the folder.
    pub folder: String,
    /// When it came into force.
    pub loaded_at: Timestamp,
    /// The number of organizations with rules of their own.
    pub organizations: usize,
    /// Problems in the files and in the given rules.
    pub problems: Vec<LintProblem>,
    /// The unmet expectations of organizations' own rules, which are in force all the same.
    pub warnings: Vec<LintProblem>,
}

impl Policy {
    /// Reads the policy in `dir` from disk.
    ///
    /// # Errors
    /// The files that apply to every organization are invalid.
    pub fn load(dir: &Path) -> Result<Self, Vec<LintProblem>> {
        Self::new(Some(Folder::read(dir)), Some(dir.to_owned()))
    }

    /// The built-in policy.
    ///
    /// # Errors
    /// Never; a test makes sure.
    pub fn embedded() -> Result<Self, Vec<LintProblem>> {
        Self::new(None, None)
    }

    fn new(folder: Option<Folder>, dir: Option<PathBuf>) -> Result<Self, Vec<LintProblem>> {
        let good = folder.as_ref().map_or_else(Sources::embedded, |folder| folder.sources.clone());
        let compiled = Compiled::build(good.clone(), None)?;
        let found = Found::compare(&good, &good, compiled.problems().to_vec());
        Ok(Self(Arc::new(Inner {
            dir,
            live: ArcSwap::from_pointee(compiled),
            found: ArcSwap::from_pointee(found),
            parts: Mutex::new(Parts { folder, good, given: Given::new(), logged: Vec::new() }),
            readings: Default::default(),
        })))
    }

    /// The folder; `None` for the built-in policy.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.0.dir.as_deref()
    }

    /// The whole policy in force.
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

    /// The most that a service token can have.
    #[must_use]
    pub fn token_cap(&self) -> PermissionSet {
        self.0.live.load().table.token_cap()
    }

    /// The line that decides whether `subject` may use `permission` in `org`; `None` if no line applies, which means
    /// refused. The first query searches all of the organization's lines, so this is for the log and for refusals, not
    /// for checks.
    #[must_use]
    pub fn deciding_line(&self, org: OrgId, subject: Subject, permission: Permission) -> Option<Arc<str>> {
        self.0.live.load().deciding_line(org, subject, permission)
    }

    /// Why `subject` may or may not use `permission` in `org`; without `org`, in every organization without rules of
    /// its own.
    #[must_use]
    pub fn explain(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Explanation {
        self.0.live.load().explain(org, subject, permission)
    }

    /// The text of `policy.csv` in force, and of the expectations, if any.
    #[must_use]
    pub fn base_texts(&self) -> (String, Option<String>) {
        let live = self.0.live.load();
        let text = |file: &File| file.text.as_deref().ok().map(str::to_owned);
        let sources = &live.book.sources;
        (text(&sources.policy).unwrap_or_default(), sources.expectations.as_ref().and_then(text))
    }

    /// Whether the folder has a file for this organization, which then overrides any given rules.
    #[must_use]
    pub fn has_file(&self, org: OrgId) -> bool {
        self.0.found.load().files.contains(&org)
    }

    /// The organizations whose rules are in files.
    #[must_use]
    pub fn files(&self) -> Vec<OrgId> {
        self.0.found.load().files.iter().copied().collect()
    }

    /// The policy in force, and the problems in the current texts.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        let (live, found) = (self.0.live.load(), self.0.found.load());
        PolicyStatus {
            version: live.version().to_owned(),
            folder: found.version.clone(),
            loaded_at: live.loaded_at,
            organizations: live.table.organizations(),
            problems: found.problems.clone(),
            warnings: live.warnings().to_vec(),
        }
    }

    /// How often changed files were accepted, and how often refused.
    #[must_use]
    pub fn readings(&self) -> (u64, u64) {
        let [taken, refused] = &self.0.readings;
        (taken.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
    }

    /// Reads the changed files from disk and puts them in force. Reports every current problem.
    ///
    /// # Errors
    /// The current problems. If one is in the files that apply to every organization, the previous policy
    /// stays in force; if it is in an organization's own file, that organization's last valid rules stay in force.
    pub fn reload(&self) -> Result<(), Vec<LintProblem>> {
        self.look();
        let problems = self.0.found.load().problems.clone();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Like [`Self::reload`], but returns whether any file changed.
    pub(super) fn look(&self) -> bool {
        let mut parts = self.parts();
        let Some(folder) = &mut parts.folder else { return false };
        let before = folder.sources.version.clone();
        folder.look(Clock::system().now());
        if folder.sources.version == before {
            return false;
        }
        let is_good = self.put_in_force(&mut parts);
        tracing::info!(folder = self.0.found.load().version, is_good, "policy.folder_read");
        self.0.readings[usize::from(!is_good)].fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Sets or removes organizations' own rules, which apply if the folder has no file for them. Returns whether this
    /// changed the policy in force.
    pub fn set_given(&self, texts: impl IntoIterator<Item = (OrgId, Option<String>)>) -> bool {
        let mut parts = self.parts();
        for (org, text) in texts {
            match text {
                Some(text) => drop(parts.given.insert(org, text.into())),
                None => drop(parts.given.remove(&org)),
            }
        }
        let before = self.now();
        self.put_in_force(&mut parts);
        before.version() != self.0.live.load().version()
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.parts.lock()
    }

    /// Puts the parts in force, as far as the folder's are valid. Returns whether there were no problems.
    fn put_in_force(&self, parts: &mut Parts) -> bool {
        let read = parts.folder.as_ref().map_or_else(|| parts.good.clone(), |it| it.sources.clone());
        let live = self.now();
        let (compiled, problems) = match judge(read.clone().completed(&parts.given), &live) {
            Ok((compiled, problems)) => {
                parts.good = read.clone();
                (Some(compiled), problems)
            }
            Err(problems) => {
                // The folder's files stay as they were, but the given rules may be new.
                let before = judge(parts.good.clone().completed(&parts.given), &live);
                (before.ok().map(|(compiled, _)| compiled), problems)
            }
        };
        log(problems.iter().filter(|problem| !parts.logged.contains(problem)));
        parts.logged.clone_from(&problems);
        let unmet = compiled.iter().flat_map(Compiled::warnings).filter(|it| !live.warnings().contains(it));
        for warning in unmet.take(bounds::LISTED_IN_TEXT) {
            tracing::warn!(%warning, "policy.expectation_unmet");
        }
        let found = Found::compare(&read, &parts.good, problems);
        let is_good = found.problems.is_empty();
        self.0.found.store(Arc::new(found));
        // Unchanged texts keep the time at which they came into force.
        if let Some(compiled) = compiled.filter(|it| it.version() != live.version()) {
            self.0.live.store(Arc::new(compiled));
        }
        is_good
    }
}

/// Builds a policy from the texts. An organization's invalid file is replaced by its last valid text. Also returns all
/// problems.
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

/// Logs the problems and their consequences.
fn log<'a>(problems: impl Iterator<Item = &'a LintProblem>) {
    for problem in problems.take(bounds::LISTED_IN_TEXT) {
        let means = match problem.org {
            None => "the folder is ignored; the last valid policy stays in force",
            Some(_) => "the organization keeps its last valid file, or else only the denials in its rules",
        };
        tracing::error!(%problem, means, "policy.problem");
    }
}

impl Found {
    fn compare(read: &Sources, good: &Sources, problems: Vec<LintProblem>) -> Self {
        // While a folder is refused, files that it no longer has still apply.
        let files = read.orgs.iter().chain(&good.orgs).map(|(org, _)| *org).collect();
        Self { version: read.version.clone(), files, problems }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("dir", &self.0.dir).finish_non_exhaustive()
    }
}
