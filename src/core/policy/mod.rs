//! The policy: the rules for permissions, read from the files in `policies/` and decided by casbin.
//!
//! Only casbin decides, but it is a poor reader: it drops lines with an unknown prefix, joins a trailing comment to the
//! last field, notices a short line only when a request reaches it, and panics at an unknown effect expression. So a
//! policy goes through four stages, without exception:
//!
//! 1. `source` and `folder`: the texts of all files at one moment, and their hash; plus organizations' rules that are
//!    kept elsewhere, given by the caller.
//! 2. `reader` and `lint`: texts become typed lines, or problems with file and line. *All* problems of all files are
//!    found in one pass.
//! 3. `compile`: casbin is asked once for every cell (organization, role, permission) and for the cap of service
//!    tokens. The answers are bit sets: the [`Table`].
//! 4. `live`: swaps the table in behind an atomic pointer. A check is an array index and an AND.
//!
//! A problem in the files that apply to every organization makes all of them invalid, and the last valid policy stays
//! in force. A problem in an organization's own rules affects only that organization (`compiled`, `live`). An unmet
//! expectation of its own refuses an edit, but never takes rules out of force. Nothing here writes a file.
//!
//! To change this: a new rule in `lint` needs a check and a test. The matcher in `policies/model.conf` may only change
//! together with `compile`, whose shortcut for organizations relies on it.

mod compile;
mod compiled;
mod diff;
mod expectations;
mod explain;
mod folder;
mod line;
mod lint;
mod live;
mod matrix;
mod reader;
mod remedy;
mod report;
mod rules;
mod source;
mod watch;

pub use self::{
    compile::Table,
    compiled::Compiled,
    diff::{CellChange, lines as changed_lines},
    expectations::OwnExpectation,
    explain::{Explanation, NO_LINE, PolicyLine},
    line::{LintProblem, Subject, listed, org_file},
    live::{Policy, PolicyStatus},
    matrix::{MatrixCell, MatrixRow, matrix, matrix_table},
    remedy::{ChangeKind, Remedy},
    report::{Report, check, check_with},
    source::{DEFAULTS, Given},
};

#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod tests;
