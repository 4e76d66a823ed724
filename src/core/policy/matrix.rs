//! The permission matrix: who may do what, as a table for people and cell by cell for programs.

use std::fmt::Write;

use serde::Serialize;

use super::{
    compiled::Compiled,
    explain::PolicyLine,
    line::{POLICY_CSV, Subject},
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// A permission, and who has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatrixRow {
    pub permission: Permission,
    /// In the order of [`Subject::all`].
    pub cells: Vec<MatrixCell>,
}

/// Whether a role, or `service_token`, has a permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatrixCell {
    pub subject: String,
    pub allowed: bool,
    /// Whether the organization's own rules decide.
    pub own: bool,
    /// The line that decides; `null` if no line applies, which means refused.
    pub decided_by: Option<PolicyLine>,
}

/// The matrix of an organization, or, without `org`, of organizations without rules of their own.
#[must_use]
pub fn matrix(policy: &Compiled, org: Option<OrgId>) -> Vec<MatrixRow> {
    let cell = |subject: Subject, permission| {
        let decided_by = policy.decided_by(org, subject, permission);
        MatrixCell {
            subject: subject.as_str().to_owned(),
            allowed: policy.permissions(org, subject).contains(permission),
            own: decided_by.as_ref().is_some_and(|line| line.file != POLICY_CSV),
            decided_by,
        }
    };
    let row = |permission| MatrixRow {
        permission,
        cells: Subject::all().map(|subject| cell(subject, permission)).collect(),
    };
    Permission::ALL.into_iter().map(row).collect()
}

/// The matrix as text. `*` marks cells that the organization's own rules decide.
#[must_use]
pub fn matrix_table(rows: &[MatrixRow]) -> String {
    let width = Permission::ALL.iter().map(|permission| permission.as_str().len()).max().unwrap_or(0);
    let mark = |cell: &MatrixCell| match (cell.allowed, cell.own) {
        (true, false) => "✓",
        (true, true) => "✓*",
        (false, false) => "·",
        (false, true) => "·*",
    };
    let mut out = format!("{:width$}", "");
    for role in Role::ALL {
        let _ = write!(out, "  {:<8}", role.as_str());
    }
    out.push_str("  service token\n");
    for row in rows {
        let mut line = format!("{:width$}", row.permission.as_str());
        for cell in &row.cells {
            let _ = write!(line, "  {:<8}", mark(cell));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
