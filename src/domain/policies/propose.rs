//! Trying out a text of an organization's own rules: nothing is changed.

use super::{
    edit::{ErrorPlace, blocking, candidate, some},
    simulate::{Simulation, simulate},
    versions::version_of,
};
use crate::{
    base::problem::Result,
    core::{
        access::Scope,
        policy::{CellChange, LintProblem, changed_lines},
    },
};

/// The effect that an edit would have.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Everything that is wrong with it.
    pub problems: Vec<LintProblem>,
    /// The cells of the permission matrix that it changes.
    pub changes: Vec<CellChange>,
    /// The lines that it changes, as a diff.
    pub lines: Vec<String>,
    /// The version it was compared with.
    pub version: String,
}

/// The effect of another text.
///
/// # Errors
/// Too many texts are tried at once.
pub async fn propose(scope: &Scope, text: String) -> Result<Proposal> {
    let (policy, org, after) = (scope.core.policy.now(), scope.org, some(text));
    let (lines, version, tried) = blocking(&scope.core, Some(org), move || {
        let before = policy.org_text(org);
        let before = before.as_deref();
        let lines = changed_lines(before.unwrap_or(""), after.as_deref().unwrap_or(""));
        let tried = policy.with_org(org, after.as_deref()).map(|candidate| candidate.changes(&policy));
        (lines, version_of(before), tried)
    })
    .await?;
    let (problems, mut changes) = match tried {
        Ok(changes) => (Vec::new(), changes),
        Err(problems) => (problems, Vec::new()),
    };
    changes.retain(|change| change.organization_id == Some(org));
    Ok(Proposal { problems, changes, lines, version })
}

/// What another text would have changed in the calls of the last `days`.
///
/// # Errors
/// `VALIDATION_FAILED` with everything that is wrong with the text.
pub async fn try_out(scope: &Scope, text: String, days: i64) -> Result<Simulation> {
    let place = ErrorPlace::Argument("text");
    let candidate = candidate(&scope.core, scope.org, some(text), place).await?;
    simulate(&scope.core, candidate, Some(scope.org), days).await
}
