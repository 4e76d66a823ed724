//! Terms shared by all parts of the policy: subjects, grants, and problems with their lines.

use std::fmt;

use serde::Serialize;

use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// The name of the file that applies to every organization.
pub(super) const POLICY_CSV: &str = "policy.csv";

/// The name of an organization's own rules: that of its file, even if the rules are not in a file.
#[must_use]
pub fn org_file(org: OrgId) -> String {
    format!("orgs/{org}.csv")
}

/// A problem and its place. Displayed as `policy.csv:14: reason`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LintProblem {
    /// The file, relative to the policy folder.
    pub file: String,
    /// The line, starting at 1; `null` if the problem concerns the whole file.
    pub line: Option<usize>,
    pub reason: String,
    /// The organization whose rules are wrong; `None` for the files that apply to every organization.
    #[serde(skip)]
    pub org: Option<OrgId>,
}

impl LintProblem {
    pub(super) fn of_file(file: &str, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, reason: reason.into(), org: None }
    }

    pub(super) fn at(file: &str, line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::of_file(file, reason) }
    }

    pub(super) fn in_org(self, org: Option<OrgId>) -> Self {
        Self { org, ..self }
    }
}

impl fmt::Display for LintProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.reason),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

/// The problems, separated by semicolons.
#[must_use]
pub fn listed(problems: &[LintProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The subject whose lines cap the permissions of service tokens.
pub(super) const SERVICE_TOKEN: &str = "service_token";

/// The subject of a line or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    Role(Role),
    /// The most that a service token can have.
    ServiceToken,
}

impl Subject {
    /// Every subject, in the order of the matrix.
    pub fn all() -> impl Iterator<Item = Self> {
        Role::ALL.into_iter().map(Self::Role).chain([Self::ServiceToken])
    }

    /// As written in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Role(role) => role.as_str(),
            Self::ServiceToken => SERVICE_TOKEN,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Effect {
    Allow,
    Deny,
}

impl Effect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// A `p` line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub line: usize,
    pub subject: Subject,
    pub permission: Permission,
    pub effect: Effect,
}

/// The lines that are neither blank nor comments.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}
