//! A policy as a whole: read, judged, and compiled into a table that can be queried.
//!
//! A problem in the files that apply to every organization makes the whole policy invalid. A problem in one
//! organization's own rules affects only that organization: its denials still apply, but not its grants
//! ([`Rules::fall_back`]).

use std::{collections::BTreeSet, path::Path, sync::Arc};

use moka::sync::Cache;

use super::{
    compile::{self, Table},
    diff::{self, CellChange},
    expectations::{self, OwnExpectation},
    explain::{Book, Explanation, PolicyLine},
    folder::Folder,
    line::{LintProblem, Subject},
    lint,
    rules::Rules,
    source::{Given, Sources},
};
use crate::base::{
    bounds,
    ids::OrgId,
    permission::{Permission, PermissionSet, Role},
    time::{Clock, Timestamp},
};

/// A policy that can be queried, whether or not it is in force.
pub struct Compiled {
    pub(super) table: Table,
    /// The lines behind the table, for explanations.
    pub(super) book: Book,
    /// Deciding lines already looked up: every change needs one for the audit log.
    decided: Cache<(Option<OrgId>, Subject, Permission), Option<Arc<str>>>,
    pub(super) loaded_at: Timestamp,
    problems: Vec<LintProblem>,
    warnings: Vec<LintProblem>,
}

impl Compiled {
    /// The policy in `dir`, or the built-in one, with the given rules for organizations without a file. Reads from
    /// disk.
    ///
    /// # Errors
    /// The files that apply to every organization are invalid.
    pub fn read<'a>(dir: impl Into<Option<&'a Path>>, given: &Given) -> Result<Self, Vec<LintProblem>> {
        Self::build(sources(dir.into()).completed(given), None)
    }

    /// Lints, compiles, then checks the expectations.
    pub(super) fn build(sources: Sources, before: Option<&Self>) -> Result<Self, Vec<LintProblem>> {
        let before = before.map(|before| (&before.book.rules, &before.table));
        let (mut rules, mut problems) = lint::lint(&sources);
        let fallen = fall_back(&mut rules, &problems, &BTreeSet::new());
        let table = compile(&rules, before, &sources, &problems)?;
        // Without any lines, lockouts are not news.
        if !rules.base.is_empty() {
            problems.extend(compile::lockouts(&rules, &table, &sources));
        }
        refuse_for_all(&problems)?;
        let mut book = Book { sources, rules };
        // Don't report unmet expectations of organizations whose rules are already invalid.
        let wrong: BTreeSet<OrgId> = problems.iter().filter_map(|it| it.org).collect();
        let was_valid = |it: &LintProblem| it.org.is_none_or(|org| !wrong.contains(&org));
        problems.extend(expectations::unmet(&table, &book).into_iter().filter(was_valid));
        refuse_for_all(&problems)?;
        let mut warnings = expectations::unmet_own(&table, &book);
        warnings.retain(was_valid);
        let late = fall_back(&mut book.rules, &problems, &fallen);
        let table =
            if late.is_empty() { table } else { compile(&book.rules, before, &book.sources, &problems)? };
        problems.sort();
        warnings.sort();
        let loaded_at = Clock::system().now();
        let decided = Cache::new(bounds::CACHE_ENTRIES);
        Ok(Self { table, book, decided, loaded_at, problems, warnings })
    }

    /// Identifies the content of the files and of the given rules.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.book.sources.version
    }

    /// Problems in organizations' own rules.
    #[must_use]
    pub fn problems(&self) -> &[LintProblem] {
        &self.problems
    }

    /// The unmet expectations of organizations' own rules, which stay in force all the same.
    #[must_use]
    pub fn warnings(&self) -> &[LintProblem] {
        &self.warnings
    }

    /// The warnings about one organization's own rules.
    #[must_use]
    pub fn warnings_of(&self, org: OrgId) -> Vec<LintProblem> {
        self.warnings.iter().filter(|it| it.org == Some(org)).cloned().collect()
    }

    /// The expectations of an organization's own rules, each with whether it is met.
    #[must_use]
    pub fn expectations(&self, org: OrgId) -> Vec<OwnExpectation> {
        expectations::results(&self.table, &self.book.rules, org)
    }

    /// The problems in files; the others are in rules that were given.
    #[must_use]
    pub fn problems_of_files(&self) -> Vec<LintProblem> {
        let is_given = |org| self.book.sources.org(org).is_some_and(|file| file.given);
        self.problems.iter().filter(|it| !it.org.is_some_and(is_given)).cloned().collect()
    }

    /// Everything that `subject` may do in `org`, or, without `org`, in organizations without rules of their own.
    #[must_use]
    pub fn permissions(&self, org: Option<OrgId>, subject: Subject) -> PermissionSet {
        self.table.row(org, subject)
    }

    pub fn roles(&self, org: OrgId, permission: Permission) -> impl Iterator<Item = Role> + '_ {
        Role::ALL.into_iter().filter(move |role| self.table.role_permissions(org, *role).contains(permission))
    }

    /// Why `subject` may or may not use `permission` in `org`.
    #[must_use]
    pub fn explain(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Explanation {
        self.book.explain(org, subject, permission)
    }

    /// The line that decides; `None` if no line applies, which means refused.
    #[must_use]
    pub fn decided_by(
        &self,
        org: Option<OrgId>,
        subject: Subject,
        permission: Permission,
    ) -> Option<PolicyLine> {
        self.book.deciding_line(org, subject, permission)
    }

    /// The deciding line, as text.
    pub(super) fn deciding_line(
        &self,
        org: OrgId,
        subject: Subject,
        permission: Permission,
    ) -> Option<Arc<str>> {
        // Without rules of its own, an organization shares the answer of all others.
        let org = Some(org).filter(|org| !self.book.rules.own(*org).is_empty());
        self.decided.get_with((org, subject, permission), || {
            self.book.deciding_line(org, subject, permission).map(|line| line.to_string().into())
        })
    }

    /// The cells that differ from another policy.
    #[must_use]
    pub fn changes(&self, from: &Self) -> Vec<CellChange> {
        diff::cells(&from.table, (&self.table, &self.book))
    }

    /// Every line with its place, to find lines that never decided anything.
    #[must_use]
    pub fn lines(&self) -> Vec<PolicyLine> {
        self.book.all_lines()
    }

    /// The text of an organization's own rules.
    #[must_use]
    pub fn org_text(&self, org: OrgId) -> Option<Arc<str>> {
        self.book.sources.org(org)?.text.as_ref().ok().cloned()
    }

    /// The same policy with different rules for one organization, or none.
    ///
    /// # Errors
    /// Everything that is wrong with these rules, including their unmet expectations.
    pub fn with_org(&self, org: OrgId, text: Option<&str>) -> Result<Self, Vec<LintProblem>> {
        let candidate = self.with_draft(org, text)?;
        let unmet = candidate.warnings_of(org);
        if unmet.is_empty() { Ok(candidate) } else { Err(unmet) }
    }

    /// The same, but the rules may fail expectations of their own.
    ///
    /// # Errors
    /// Everything that is wrong with these rules, if there is more than that.
    pub fn with_draft(&self, org: OrgId, text: Option<&str>) -> Result<Self, Vec<LintProblem>> {
        let sources = self.book.sources.clone().with_org(org, text.map(Arc::from));
        let candidate = Self::build(sources, Some(self))?;
        let unmet = candidate.warnings_of(org);
        let (own, others): (Vec<_>, Vec<_>) =
            candidate.problems.into_iter().partition(|it| it.org == Some(org));
        if own.is_empty() {
            return Ok(Self { problems: others, ..candidate });
        }
        let mut all = [own, unmet].concat();
        all.sort();
        Err(all)
    }
}

/// The texts in a folder, or the built-in ones.
pub(super) fn sources(dir: Option<&Path>) -> Sources {
    dir.map_or_else(Sources::embedded, |dir| Folder::read(dir).sources)
}

/// Reduces the rules of organizations with problems to their safe part, unless that was already done.
fn fall_back(rules: &mut Rules, problems: &[LintProblem], fallen: &BTreeSet<OrgId>) -> BTreeSet<OrgId> {
    let wrong: BTreeSet<OrgId> = problems.iter().filter_map(|it| it.org).collect();
    let wrong: BTreeSet<OrgId> = wrong.difference(fallen).copied().collect();
    for org in &wrong {
        rules.fall_back(*org);
    }
    wrong
}

fn compile(
    rules: &Rules,
    before: Option<(&Rules, &Table)>,
    sources: &Sources,
    problems: &[LintProblem],
) -> Result<Table, Vec<LintProblem>> {
    compile::compile(rules, before).map_err(|error| {
        let refused = LintProblem::of_file(&sources.model.name, format!("casbin rejects it: {error}"));
        [problems, &[refused]].concat()
    })
}

/// Fails if the files that apply to every organization have a problem, and then reports every problem.
fn refuse_for_all(problems: &[LintProblem]) -> Result<(), Vec<LintProblem>> {
    if problems.iter().all(|it| it.org.is_some()) {
        return Ok(());
    }
    let mut problems = problems.to_vec();
    problems.sort();
    Err(problems)
}
