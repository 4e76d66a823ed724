//! A policy as a whole: read, judged, and compiled into a table that can be asked.
//!
//! What is wrong with the files for every organization refuses the policy. What is wrong with one organization's own rules
//! concerns that organization alone: what they deny holds, and nothing that they allow ([`Rules::fall_back`]).

use std::{collections::BTreeSet, path::Path, sync::Arc};

use moka::sync::Cache;

use super::{
    compile::{self, Table},
    diff::{self, CellChange},
    expectations,
    explain::{Book, Explanation, Line},
    folder::Folder,
    line::{LintProblem, Subject},
    lint,
    rules::Rules,
    source::{Given, Sources},
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, PermissionSet, Role},
    time::{Clock, Timestamp},
};

/// A policy that can be asked, whether it is in force or not.
pub struct Compiled {
    pub(super) table: Table,
    /// What the table came of, for questions why.
    pub(super) book: Book,
    /// Deciding lines that were asked for: every change has its own in the audit log.
    decided: Cache<(Option<OrgId>, Subject, Permission), Option<Arc<str>>>,
    pub(super) loaded_at: Timestamp,
    problems: Vec<LintProblem>,
}

/// How many deciding lines are kept, as text.
const DECIDED: u64 = 10_000;

impl Compiled {
    /// The policy in `dir`, or the built-in one, with the rules that are given for organizations without a file. Touches
    /// the disk.
    ///
    /// # Errors
    /// Something is wrong with the files for every organization.
    pub fn read<'a>(dir: impl Into<Option<&'a Path>>, given: &Given) -> Result<Self, Vec<LintProblem>> {
        Self::build(sources(dir.into()).completed(given), None)
    }

    /// Lint, then compile, then see whether it comes to what is expected.
    pub(super) fn build(sources: Sources, before: Option<&Self>) -> Result<Self, Vec<LintProblem>> {
        let before = before.map(|before| (&before.book.rules, &before.table));
        let (mut rules, mut problems) = lint::lint(&sources);
        let fallen = fall_back(&mut rules, &problems, &BTreeSet::new());
        let table = compile(&rules, before, &sources, &problems)?;
        // Of no lines that is nothing new.
        if !rules.base.is_empty() {
            problems.extend(compile::lockouts(&rules, &table, &sources));
        }
        refuse_for_all(&problems)?;
        let mut book = Book { sources, rules };
        // What wrong rules fall short of as well is no news.
        let wrong: BTreeSet<OrgId> = problems.iter().filter_map(|it| it.org).collect();
        let unmet = expectations::unmet(&table, &book);
        problems.extend(unmet.into_iter().filter(|it| it.org.is_none_or(|org| !wrong.contains(&org))));
        refuse_for_all(&problems)?;
        let late = fall_back(&mut book.rules, &problems, &fallen);
        let table =
            if late.is_empty() { table } else { compile(&book.rules, before, &book.sources, &problems)? };
        problems.sort();
        let loaded_at = Clock::system().now();
        Ok(Self { table, book, decided: Cache::new(DECIDED), loaded_at, problems })
    }

    /// Identifies the content of the files and of the rules that were given.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.book.sources.version
    }

    /// What is wrong with organizations' own rules.
    #[must_use]
    pub fn problems(&self) -> &[LintProblem] {
        &self.problems
    }

    /// What of that is wrong with files; the rest is wrong with rules that were given.
    #[must_use]
    pub fn problems_of_files(&self) -> Vec<LintProblem> {
        let is_given = |org| self.book.sources.org(org).is_some_and(|file| file.given);
        self.problems.iter().filter(|it| !it.org.is_some_and(is_given)).cloned().collect()
    }

    /// Everything that `subject` may do in `org`; without one, in organizations without rules of their own.
    #[must_use]
    pub fn permissions(&self, org: Option<OrgId>, subject: Subject) -> PermissionSet {
        self.table.row(org, subject)
    }

    /// The roles that hold `permission` in `org`.
    pub fn roles(&self, org: OrgId, permission: Permission) -> impl Iterator<Item = Role> + '_ {
        Role::ALL.into_iter().filter(move |role| self.table.role_permissions(org, *role).contains(permission))
    }

    /// Why `subject` may or may not do `permission` in `org`.
    #[must_use]
    pub fn explain(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Explanation {
        self.book.explain(org, subject, permission)
    }

    /// The line that decides, as text.
    pub(super) fn deciding_line(
        &self,
        org: OrgId,
        subject: Subject,
        permission: Permission,
    ) -> Option<Arc<str>> {
        // Where no line is an organization's own, one answer is everybody's.
        let org = Some(org).filter(|org| !self.book.rules.own(*org).is_empty());
        self.decided.get_with((org, subject, permission), || {
            self.book.deciding_line(org, subject, permission).map(|line| line.to_string().into())
        })
    }

    /// The cells in which it differs from another policy.
    #[must_use]
    pub fn changes(&self, from: &Self) -> Vec<CellChange> {
        diff::cells(&from.table, (&self.table, &self.book))
    }

    /// Every line, with where it stands: for asking which of them ever decided anything.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.book.all_lines()
    }

    /// The text of an organization's own rules.
    #[must_use]
    pub fn org_text(&self, org: OrgId) -> Option<Arc<str>> {
        self.book.sources.org(org)?.text.as_ref().ok().cloned()
    }

    /// The same policy with other rules of one organization, or without any.
    ///
    /// # Errors
    /// Everything that is wrong with these rules.
    pub fn with_org(&self, org: OrgId, text: Option<&str>) -> Result<Self, Vec<LintProblem>> {
        let sources = self.book.sources.clone().with_org(org, text.map(Arc::from));
        let candidate = Self::build(sources, Some(self))?;
        let (own, others): (Vec<_>, Vec<_>) =
            candidate.problems.into_iter().partition(|it| it.org == Some(org));
        if own.is_empty() { Ok(Self { problems: others, ..candidate }) } else { Err(own) }
    }
}

/// The texts in a folder, or those that the program was built with.
pub(super) fn sources(dir: Option<&Path>) -> Sources {
    dir.map_or_else(Sources::embedded, |dir| Folder::read(dir).sources)
}

/// Leaves what is safe of the rules of the organizations that have problems, but for those that have fallen back already.
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
        let refused = LintProblem::of_file(&sources.model.name, format!("casbin refuses it: {error}"));
        [problems, &[refused]].concat()
    })
}

/// Refuses the policy for what is wrong with the files for every organization; then everything that is wrong is named.
fn refuse_for_all(problems: &[LintProblem]) -> Result<(), Vec<LintProblem>> {
    if problems.iter().all(|it| it.org.is_some()) {
        return Ok(());
    }
    let mut problems = problems.to_vec();
    problems.sort();
    Err(problems)
}
