//! An edit before it is made, and making it.
//!
//! A candidate has gone through all that a saved file goes through (`lint`, casbin, expectations), so that what
//! is published is never refused by the folder it is written to.

use std::path::{Path, PathBuf};

use super::{
    CellChange, Compiled, Explanation, LintProblem, Policy, Subject, build, diff,
    source::{self, Sources},
    write_whole,
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, PermissionSet, Role},
};

/// A policy that is good and not in force.
pub struct Candidate(Compiled);

impl Candidate {
    /// The policy in `dir`, or the built-in one, which is not put in force.
    pub fn read<'a>(dir: impl Into<Option<&'a Path>>) -> Result<Self, Vec<LintProblem>> {
        build(Sources::of(dir.into()), None).map(Self)
    }

    /// Identifies the content of the files.
    #[must_use]
    pub fn version(&self) -> &str {
        self.0.version()
    }

    /// Everything that `subject` may do in `org`.
    #[must_use]
    pub fn permissions(&self, org: Option<OrgId>, subject: Subject) -> PermissionSet {
        self.0.table.row(org, subject)
    }

    /// Why `subject` may or may not do `permission` in `org`.
    #[must_use]
    pub fn explain(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Explanation {
        self.0.book.explain(org, subject, permission)
    }

    /// The cells in which it differs from the policy in force.
    #[must_use]
    pub fn changes(&self, from: &Policy) -> Vec<CellChange> {
        diff::cells(&from.0.live.load().table, &self.0)
    }

    /// The roles that hold `permission` in `org`.
    pub fn roles(&self, org: OrgId, permission: Permission) -> impl Iterator<Item = Role> + '_ {
        Role::ALL
            .into_iter()
            .filter(move |role| self.permissions(Some(org), Subject::Role(*role)).contains(permission))
    }

    /// Every line, with where it stands: for asking which of them ever decided anything.
    pub(crate) fn lines(&self) -> Vec<super::Line> {
        self.0.book.all_lines()
    }
}

impl Policy {
    /// The folder that it is read from; none for the copy in the program.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.0.dir.as_deref()
    }

    /// The text of an organization's own file that is in force.
    #[must_use]
    pub fn org_text(&self, org: OrgId) -> Option<String> {
        let live = self.0.live.load();
        live.book.sources.org(org)?.text.as_ref().ok().cloned()
    }

    /// The texts of all organizations' own files that are in force.
    #[must_use]
    pub fn org_texts(&self) -> Vec<(OrgId, String)> {
        let live = self.0.live.load();
        let texts = live.book.sources.orgs.iter();
        texts.filter_map(|(org, file)| Some((*org, file.text.as_ref().ok()?.clone()))).collect()
    }

    /// The text of `policy.csv` that is in force, and of the expectations if there are any.
    #[must_use]
    pub fn base_texts(&self) -> (String, Option<String>) {
        let live = self.0.live.load();
        let text = |file: &source::File| file.text.as_ref().ok().cloned();
        let sources = &live.book.sources;
        (text(&sources.policy).unwrap_or_default(), sources.expectations.as_ref().and_then(text))
    }

    /// What the policy in force would be with another text as an organization's own file, or without one. Nothing is
    /// written.
    pub fn with_org(&self, org: OrgId, text: Option<&str>) -> Result<Candidate, Vec<LintProblem>> {
        let live = self.0.live.load();
        let sources = live.book.sources.clone().with_org(org, text.map(str::to_owned));
        build(sources, Some(&live)).map(Candidate).map_err(|problems| self.without_folder(problems))
    }

    /// Gives one of the operator's own files another text, if the policy is good with it. Touches the disk.
    pub fn put_operators(&self, file: &str, text: Option<&str>) -> Result<(), Vec<LintProblem>> {
        let Some(dir) = &self.0.dir else {
            let reason = "the policy is built in: set policy_dir to a folder".to_owned();
            return Err(vec![LintProblem::of_file(file, reason)]);
        };
        let sources = self.0.live.load().book.sources.clone().with_operators(file, text);
        build(sources, None).map_err(|problems| self.without_folder(problems))?;
        let path = dir.join(file);
        let written = match text {
            Some(text) => write_whole(&path, text),
            None => std::fs::remove_file(&path),
        };
        written.map_err(|error| vec![LintProblem::of_file(file, format!("can't be written: {error}"))])?;
        self.reload()
    }

    /// Reads the files again if they were changed, so that what follows is about what is there now.
    pub fn refresh(&self) {
        let _ = self.reload_if_changed();
    }

    /// Problems as a caller from outside may see them: where the folder is, is nobody's business.
    #[must_use]
    pub fn without_folder(&self, mut problems: Vec<LintProblem>) -> Vec<LintProblem> {
        let prefix = self.0.dir.as_ref().map_or_else(PathBuf::new, |dir| dir.join("")).display().to_string();
        for problem in &mut problems {
            if !prefix.is_empty() {
                problem.file = problem.file.replace(&prefix, "");
                problem.reason = problem.reason.replace(&prefix, "");
            }
            problem.file = problem.file.replace("(built in) ", "");
            problem.reason = problem.reason.replace("(built in) ", "");
        }
        problems
    }
}
