//! The policy: who may do what, read from the files in `policies/` and decided by casbin.
//!
//! Casbin is the only judge, but a poor reader: it drops lines with an unknown prefix, joins a trailing comment
//! to the last field, meets a short line only when a request reaches it, and panics at an effect expression it
//! doesn't know. So a policy passes through four rooms, and nothing skips one:
//!
//! 1. `source`: the bytes of all files at one moment, and their hash.
//! 2. `reader` and `lint`: bytes become typed lines, or problems with file and line. *All* problems of all files
//!    are found in one go.
//! 3. `compile`: casbin is asked once for every cell (organization, role, permission) and for the cap of service
//!    tokens. The answers are bit sets: the [`Table`].
//! 4. [`Policy`]: swaps the table in behind an atomic pointer. A check is an array index and an AND.
//!
//! A policy with any problem is refused as a whole, and the last good one stays in force ([`PolicyStatus`]).
//! What may be touched: the rules of `lint` grow by a check and a test. The matcher in `policies/model.conf` may
//! only change together with `compile`, whose shortcut for organizations rests on it.

mod candidate;
mod compile;
mod diff;
mod expectations;
mod explain;
mod lint;
mod matrix;
mod publish;
mod reader;
mod source;
mod watch;
mod write;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use moka::sync::Cache;
use serde::Serialize;

pub use self::{
    candidate::Candidate,
    compile::Table,
    diff::{CellChange, lines as changed_lines},
    explain::{ChangeKind, Explanation, Line, NO_LINE, Remedy, org_file},
    lint::{LintProblem, listed},
    matrix::matrix,
    publish::Placed,
    reader::Subject,
    write::{Prepared, write_whole},
};
use self::{explain::Book, publish::HeldTexts, source::Sources};
use crate::{
    base::{
        ids::OrgId,
        numerals::counted,
        permission::{Permission, PermissionSet, Role},
        time::{Clock, Timestamp},
    },
    core::telemetry::metrics,
};

/// A policy without problems, ready to be asked.
struct Compiled {
    table: Table,
    /// What the table came of, for questions why.
    book: Book,
    /// Deciding lines that were asked for: every change has its own in the audit log.
    decided: Cache<(Option<OrgId>, Subject, Permission), Option<Arc<str>>>,
    loaded_at: Timestamp,
}

/// How many deciding lines are kept, as text.
const DECIDED: u64 = 10_000;

/// The policy in force. Cheap to clone; all clones are the same policy.
#[derive(Clone)]
pub struct Policy(Arc<Inner>);

struct Inner {
    /// Where it is read again from; none for the copy in the program.
    dir: Option<PathBuf>,
    live: ArcSwap<Compiled>,
    /// What the last reading found, good or bad. Also keeps two readings from overtaking each other.
    last_read: Mutex<LastRead>,
}

#[derive(Default)]
struct LastRead {
    /// Of the files as they are in the folder.
    version: String,
    problems: Vec<LintProblem>,
    held: HeldTexts,
}

/// What `/health` says about the policy.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyStatus {
    /// Identifies the content of the files in force.
    pub version: String,
    /// Since when they are in force.
    pub loaded_at: Timestamp,
    /// How many organizations have a file of their own.
    pub organizations: usize,
    /// Why what is in the folder now is not in force; empty if it is.
    pub problems: Vec<LintProblem>,
    /// How many published files could not be written; they are in force all the same.
    pub unwritten: usize,
}

/// What `muster policy check` finds in a folder.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether the service would take it.
    pub ok: bool,
    /// Identifies the content of the files.
    pub version: String,
    /// How many files were read.
    pub files: usize,
    /// How many organizations have a file of their own.
    pub organizations: usize,
    /// Everything that is wrong, by file and line.
    pub problems: Vec<LintProblem>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        let files = counted(self.files, "file");
        let organizations = counted(self.organizations, "organization");
        write!(f, "{files}, {organizations}, {}", counted(self.problems.len(), "problem"))
    }
}

/// Reads and judges the policy in `dir`, or the built-in one, without putting it in force.
#[must_use]
pub fn check<'a>(dir: impl Into<Option<&'a Path>>) -> Report {
    let sources = Sources::of(dir.into());
    let (version, files, organizations) = (sources.version.clone(), sources.len(), sources.orgs.len());
    let problems = build(sources, None).err().unwrap_or_default();
    Report { ok: problems.is_empty(), version, files, organizations, problems }
}

/// What `muster policy test` finds in a folder.
#[derive(Clone, Debug, Serialize)]
pub struct TestReport {
    /// Whether every expectation is met.
    pub ok: bool,
    /// How many expectations there are.
    pub expectations: usize,
    /// What is expected and is not so; what keeps the expectations from being tried.
    pub problems: Vec<LintProblem>,
}

impl fmt::Display for TestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        let expectations = counted(self.expectations, "expectation");
        write!(f, "{expectations}, {}", counted(self.problems.len(), "problem"))
    }
}

/// Holds the policy in `dir`, or the built-in one, against the expectations beside it. A policy that can't be read is tried
/// by none.
#[must_use]
pub fn test<'a>(dir: impl Into<Option<&'a Path>>) -> TestReport {
    let sources = Sources::of(dir.into());
    let mut unread = Vec::new();
    let expectations = expectations::read(&sources, &mut unread).len();
    let problems = build(sources, None).err().unwrap_or_default();
    TestReport { ok: problems.is_empty(), expectations, problems }
}

/// Writes the files that the program was built with into `dir`; files that are there are left as they are. Each file's name,
/// and whether it was written.
pub fn write_defaults(dir: &Path) -> io::Result<Vec<(&'static str, bool)>> {
    source::write_defaults(dir)
}

/// Lint, then compile, then see whether it comes to what is expected.
fn build(sources: Sources, before: Option<&Compiled>) -> Result<Compiled, Vec<LintProblem>> {
    let (rules, mut problems) = lint::lint(&sources);
    let table = match compile::compile(&rules, before.map(|before| (&before.book.rules, &before.table))) {
        Ok(table) => table,
        Err(error) => {
            problems.push(LintProblem::of_file(&sources.model.name, format!("casbin refuses it: {error}")));
            return Err(problems);
        }
    };
    // Of no lines that is nothing new.
    if !rules.base.is_empty() {
        problems.extend(lint::lockouts(&rules, &table, &sources));
    }
    if !problems.is_empty() {
        return Err(lint::in_order(problems));
    }
    let book = Book { sources, rules };
    let unmet = expectations::unmet(&book.rules.expectations, &table, &book);
    if !unmet.is_empty() {
        return Err(unmet);
    }
    Ok(Compiled { table, book, decided: Cache::new(DECIDED), loaded_at: Clock::system().now() })
}

impl Policy {
    /// Reads the policy in `dir`. Touches the disk.
    pub fn load(dir: &Path) -> Result<Self, Vec<LintProblem>> {
        Self::new(Some(dir.to_owned()), Sources::read(dir))
    }

    /// What is published: the operator's `policy.csv` and expectations (those of the program, where none are), and each
    /// organization's own file.
    pub fn published(
        operators: Option<(String, Option<String>)>,
        orgs: Vec<(OrgId, String)>,
    ) -> Result<Self, Vec<LintProblem>> {
        Self::new(None, Sources::published(operators, orgs))
    }

    /// The policy that the program was built with.
    pub fn embedded() -> Result<Self, Vec<LintProblem>> {
        Self::new(None, Sources::embedded())
    }

    fn new(dir: Option<PathBuf>, sources: Sources) -> Result<Self, Vec<LintProblem>> {
        let compiled = build(sources, None)?;
        let last_read = LastRead { version: compiled.version().to_owned(), ..LastRead::default() };
        let live = ArcSwap::from_pointee(compiled);
        Ok(Self(Arc::new(Inner { dir, live, last_read: Mutex::new(last_read) })))
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
    /// refuses it. Looks through the lines of two files when it is first asked: for the log and for refusals, not for
    /// checks.
    #[must_use]
    pub fn deciding_line(&self, org: OrgId, subject: Subject, permission: Permission) -> Option<Arc<str>> {
        self.0.live.load().deciding_line(org, subject, permission)
    }

    /// Why `subject` may or may not do `permission` in `org`; without one, in every organization that has no file
    /// of its own.
    #[must_use]
    pub fn explain(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Explanation {
        self.0.live.load().book.explain(org, subject, permission)
    }

    /// Reads the files again and puts them in force, or says why not; then the last good ones stay in force.
    /// Touches the disk. Does nothing for [`Self::embedded`].
    pub fn reload(&self) -> Result<(), Vec<LintProblem>> {
        let Some(dir) = &self.0.dir else { return Ok(()) };
        self.take(&mut self.last_read(), Sources::read(dir))
    }

    /// [`Self::reload`], if the files differ from those last looked at.
    fn reload_if_changed(&self) -> Option<Result<(), Vec<LintProblem>>> {
        let dir = self.0.dir.as_ref()?;
        let mut last = self.last_read();
        let sources = Sources::read(dir);
        (sources.version != last.version).then(|| self.take(&mut last, sources))
    }

    fn last_read(&self) -> MutexGuard<'_, LastRead> {
        self.0.last_read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, last: &mut LastRead, sources: Sources) -> Result<(), Vec<LintProblem>> {
        last.version.clone_from(&sources.version);
        let built = build(last.with_held(sources), Some(&self.0.live.load()));
        last.problems = built.as_ref().err().cloned().unwrap_or_default();
        if let Some(meters) = metrics::on() {
            meters.policy_read(built.is_ok());
        }
        let compiled = built?;
        // Unchanged files keep the time since when they are in force.
        if self.0.live.load().version() != compiled.version() {
            self.0.live.store(Arc::new(compiled));
        }
        Ok(())
    }

    /// What is in force, and what is wrong with the files as they are now.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        let live = self.0.live.load();
        let last = self.last_read();
        PolicyStatus {
            version: live.version().to_owned(),
            loaded_at: live.loaded_at,
            organizations: live.table.organizations(),
            problems: last.problems.clone(),
            unwritten: last.held.len(),
        }
    }

    /// Puts every saved change in force, for as long as the future is polled. Needs tokio's timer.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + use<> {
        watch::watch(self.clone())
    }
}

impl Compiled {
    fn version(&self) -> &str {
        &self.book.sources.version
    }

    fn deciding_line(&self, org: OrgId, subject: Subject, permission: Permission) -> Option<Arc<str>> {
        // Where no line is an organization's own, one answer is everybody's.
        let org = Some(org).filter(|org| !self.book.rules.own(*org).is_empty());
        self.decided.get_with((org, subject, permission), || {
            self.book.deciding_line(org, subject, permission).map(|line| line.to_string().into())
        })
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("dir", &self.0.dir).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod tests;
