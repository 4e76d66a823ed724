//! Tries a text of an organization's own rules without changing anything.

use super::{
    edit::{ErrorPlace, compile_candidate, non_blank, run_in_cpu_pool},
    simulate::{Simulation, simulate},
    versions::version_of,
};
use crate::{
    base::problem::Result,
    core::{
        access::Scope,
        policy::{CellChange, LintProblem, OwnExpectation, changed_lines},
    },
};

/// The effect that an edit would have.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// All errors in the text.
    pub problems: Vec<LintProblem>,
    /// The changed cells of the permission matrix; none if the text has problems other than unmet expectations of its
    /// own.
    pub changes: Vec<CellChange>,
    /// The expectations in the text; none with other problems.
    pub expectations: Vec<OwnExpectation>,
    /// The changed lines, as a diff.
    pub lines: Vec<String>,
    /// The version it was compared with.
    pub version: String,
}

/// Computes the effect of another text.
///
/// # Errors
/// Too many texts are tried at once.
pub async fn propose(scope: &Scope, text: String) -> Result<Proposal> {
    let (policy, org, after) = (scope.core.policy.now(), scope.org, non_blank(text));
    let (lines, version, tried) = run_in_cpu_pool(&scope.core, Some(org), move || {
        let before = policy.org_text(org);
        let before = before.as_deref();
        let lines = changed_lines(before.unwrap_or(""), after.as_deref().unwrap_or(""));
        let tried = policy
            .with_draft(org, after.as_deref())
            .map(|draft| (draft.warnings_of(org), draft.changes(&policy), draft.expectations(org)));
        (lines, version_of(before), tried)
    })
    .await?;
    let (problems, mut changes, expectations) =
        tried.unwrap_or_else(|problems| (problems, Vec::new(), Vec::new()));
    changes.retain(|change| change.organization_id == Some(org));
    Ok(Proposal { problems, changes, expectations, lines, version })
}

/// Computes which calls of the last `days` another text decides differently than the rules in force.
///
/// # Errors
/// `VALIDATION_FAILED` with all errors in the text.
pub async fn try_out(scope: &Scope, text: String, days: i64) -> Result<Simulation> {
    let place = ErrorPlace::Argument("text");
    let candidate = compile_candidate(&scope.core, scope.org, non_blank(text), place).await?;
    simulate(&scope.core, candidate, Some(scope.org), days).await
}
