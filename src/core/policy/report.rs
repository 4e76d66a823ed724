//! All problems of the policy in a folder.

use std::{fmt, path::Path};

use serde::Serialize;

use super::{
    compiled::{self, Compiled},
    line::LintProblem,
    lint,
    source::Given,
};
use crate::base::numerals::with_noun;

/// The findings of `muster policy check` and `muster policy test`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether there are no problems.
    pub ok: bool,
    /// Identifies the content of the files.
    pub version: String,
    /// The number of files read.
    pub files: usize,
    /// The number of organizations with a file of their own.
    pub organizations: usize,
    pub expectations: usize,
    /// All problems, by file and line.
    pub problems: Vec<LintProblem>,
    /// The unmet expectations of organizations' own rules, which stay in force all the same.
    pub warnings: Vec<LintProblem>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "{warning} (a warning: these rules stay in force)")?;
        }
        let files = with_noun(self.files, "file");
        let organizations = with_noun(self.organizations, "organization");
        write!(f, "{files}, {organizations}, {}", with_noun(self.problems.len(), "problem"))
    }
}

/// Reads and checks the policy in `dir`, or the built-in one, without putting it in force.
#[must_use]
pub fn check<'a>(dir: impl Into<Option<&'a Path>>) -> Report {
    check_with(dir, &Given::new())
}

/// The same, including the given rules for organizations without a file.
#[must_use]
pub fn check_with<'a>(dir: impl Into<Option<&'a Path>>, given: &Given) -> Report {
    let sources = compiled::sources(dir.into());
    let (version, files, organizations) = (sources.version.clone(), sources.len(), sources.orgs.len());
    let sources = sources.completed(given);
    let expectations = lint::lint(&sources).0.all_expectations().count();
    let (problems, warnings) = match Compiled::build(sources, None) {
        Ok(compiled) => (compiled.problems().to_vec(), compiled.warnings().to_vec()),
        Err(problems) => (problems, Vec::new()),
    };
    Report { ok: problems.is_empty(), version, files, organizations, expectations, problems, warnings }
}
