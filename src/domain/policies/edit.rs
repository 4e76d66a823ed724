//! Edits an organization's own rules: based on a version, linted like a file, and never locking its members out.
//!
//! A text is checked before the organization is locked, because casbin is slow; if another edit came first, it
//! is checked again. Rules in a file can't be edited through the schema. The operator's own commands store a
//! version next to the file, which takes effect once the file is gone.

use std::sync::Arc;

use super::{
    lines,
    versions::{self, Author, version_of},
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{OrgId, PolicyVersionId},
        permission::{Permission, Role},
        plain,
        problem::{Code, Problem, Result, Violation},
    },
    core::{
        Core,
        access::{Caller, Scope, org_policies},
        audit,
        policy::{Compiled, LintProblem, Subject, org_file},
        store::Tx,
    },
    domain::{orgs, people},
};

/// An edit of the organization's own rules.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The version the edit is based on; it fails if that isn't the newest. None accepts any version.
    pub version: Option<String>,
    /// The complete text. Blank means no rules of its own.
    pub text: String,
    pub reason: String,
}

/// The part of the caller's input that an error points to.
#[derive(Clone, Copy, Debug)]
pub(super) enum ErrorPlace {
    /// A pointer into the field's input.
    Input(&'static str),
    /// An argument of the field.
    Argument(&'static str),
}

/// Puts a new text in force. Returns whether it differs from the old one.
///
/// # Errors
/// `CONFLICT` if the edit isn't based on the newest version; `VALIDATION_FAILED` with every problem in the
/// text; `POLICY_LOCKS_OUT`; `POLICY_OWNED_BY_FILE`. In each case nothing changes.
pub async fn edit(scope: &Scope, edit: Edit) -> Result<bool> {
    let (reason, text) = (checked_reason(&edit.reason)?, non_blank(edit.text));
    change(scope, ("editPolicy", ErrorPlace::Input("/text"), &reason), |before| {
        require_version(edit.version.as_deref(), before)?;
        Ok(NextText { text: text.clone(), ..NextText::default() })
    })
    .await
}

/// Allows or denies a permission to a role in the organization by inserting or replacing one line. `allow` is `None`:
/// removes the line. Returns whether anything changed.
///
/// # Errors
/// As [`edit`]; `CONFLICT`, with the reason, if the line wouldn't have the requested effect.
pub async fn set_permission(
    scope: &Scope,
    role: Role,
    permission: Permission,
    allow: Option<bool>,
    reason: &str,
) -> Result<bool> {
    let operation = match allow {
        Some(true) => "allowPermission",
        Some(false) => "denyPermission",
        None => "resetPermission",
    };
    let reason = checked_reason(reason)?;
    change(scope, (operation, ErrorPlace::Input("/permission"), &reason), |before| {
        let text = non_blank(lines::set_line(before.unwrap_or_default(), scope.org, role, permission, allow));
        Ok(NextText { text, comes_to: allow.map(|allow| (role, permission, allow)), reverts_to: None })
    })
    .await
}

/// Restores an earlier text as a new version, checked like any edit. `seen` is the version that the change is based on;
/// `None` accepts any. Returns whether the text wasn't already the newest.
///
/// # Errors
/// `NOT_FOUND` for a version that this organization never had; otherwise as [`edit`].
pub async fn revert(scope: &Scope, seen: Option<&str>, to: PolicyVersionId, reason: &str) -> Result<bool> {
    let reason = checked_reason(reason)?;
    let earlier = versions::load(scope, to).await?.text;
    change(scope, ("revertPolicy", ErrorPlace::Input("/version_id"), &reason), |before| {
        require_version(seen, before)?;
        Ok(NextText { text: earlier.clone(), reverts_to: Some(to), comes_to: None })
    })
    .await
}

/// The text that replaces the newest one.
#[derive(Default)]
struct NextText {
    text: Option<String>,
    reverts_to: Option<PolicyVersionId>,
    /// The effect it must have.
    comes_to: Option<(Role, Permission, bool)>,
}

/// Derives the next text from the newest one and stores it. Returns whether it differs.
async fn change(
    scope: &Scope,
    (operation, place, reason): (&'static str, ErrorPlace, &str),
    next: impl Fn(Option<&str>) -> Result<NextText> + Send + Sync,
) -> Result<bool> {
    if !matches!(scope.request.caller, Caller::System) {
        require_no_file(scope).await?;
    }
    // Another edit may come first.
    for _ in 0..20 {
        let newest = versions::newest(scope).await?;
        let (row, before) = newest.map(|newest| (newest.id, newest.text)).unzip();
        let before = before.flatten();
        let next = next(before.as_deref())?;
        let is_same = version_of(before.as_deref()) == version_of(next.text.as_deref());
        if is_same && next.comes_to.is_none() {
            return Ok(false);
        }
        let candidate = compile_candidate(&scope.core, scope.org, next.text.clone(), place).await?;
        require_effect(scope.org, &candidate, next.comes_to)?;
        if is_same {
            return Ok(false);
        }
        let tx = scope.begin().await?;
        orgs::lock(&tx).await?;
        if versions::newest_in(&tx).await?.map(|newest| newest.id) != row {
            tx.rollback().await?;
            continue;
        }
        require_editor(&tx, &candidate).await?;
        store(tx, (operation, reason), before.as_deref(), next).await?;
        // The version is already stored. If this fails, the next run puts it in force.
        if let Err(problem) = org_policies::follow(&scope.core).await {
            tracing::error!(org = scope.org.0, %problem, "policy.not_in_force_yet");
        }
        return Ok(true);
    }
    Err(Problem::new(Code::Conflict, "Others are editing this policy at the same time. Try again."))
}

async fn store(
    tx: Tx,
    (operation, reason): (&'static str, &str),
    before: Option<&str>,
    next: NextText,
) -> Result<()> {
    let mut changes = versions::difference(before, next.text.as_deref());
    changes["reason"] = reason.into();
    if let Some(to) = next.reverts_to {
        changes["reverts_to"] = to.0.into();
    }
    let author = Author { reverts_to: next.reverts_to, ..Author::from_caller(&tx.scope, reason) };
    let row = versions::add(&tx, next.text, author).await?;
    let entry =
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Policy, id: row.id.0, changes };
    audit::record(&tx, entry);
    tx.scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await
}

/// Compiles the policy with this text, or lists all of its errors.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub(super) async fn compile_candidate(
    core: &Arc<Core>,
    org: OrgId,
    text: Option<String>,
    place: ErrorPlace,
) -> Result<Compiled> {
    let policy = core.policy.now();
    let judged = run_in_cpu_pool(core, Some(org), move || policy.with_org(org, text.as_deref())).await?;
    judged.map_err(|problems| to_problem(&problems, place))
}

/// Runs work with a candidate in the CPU pool, in the slot of an organization, or of the operator.
pub(super) async fn run_in_cpu_pool<T: Send + 'static>(
    core: &Core,
    org: Option<OrgId>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let slot = core.cpu_pool.slot(org.unwrap_or(OrgId(0))).await.map_err(Problem::internal)?;
    slot.run(work).await.map_err(Problem::internal)
}

fn to_problem(problems: &[LintProblem], place: ErrorPlace) -> Problem {
    let violation = |problem: &LintProblem| match place {
        ErrorPlace::Input(pointer) => Violation::at(pointer, "POLICY_REFUSED", problem.to_string()),
        ErrorPlace::Argument(name) => Violation::parameter(name, "POLICY_REFUSED", problem.to_string()),
    };
    let errors = problems.iter().take(100).map(violation).collect();
    Problem::invalid(errors).with(
        "problems",
        serde_json::to_value(problems.iter().take(100).collect::<Vec<_>>()).unwrap_or_default(),
    )
}

/// Refuses a line that another one overrules.
fn require_effect(
    org: OrgId,
    candidate: &Compiled,
    comes_to: Option<(Role, Permission, bool)>,
) -> Result<()> {
    let Some((role, permission, allow)) = comes_to else { return Ok(()) };
    let why = candidate.explain(Some(org), Subject::Role(role), permission);
    if why.allowed == allow {
        return Ok(());
    }
    Err(Problem::new(Code::Conflict, format!("That line would have no effect. {}", why.reason)))
}

/// Requires a member who could undo the edit: who can sign in and may edit the policy under the candidate.
async fn require_editor(tx: &Tx, candidate: &Compiled) -> Result<()> {
    let editors: Vec<Role> = candidate.roles(tx.scope.org, Permission::PolicyEdit).collect();
    if people::has_member_with(tx, &editors).await? {
        return Ok(());
    }
    let detail = "After this edit, no member of the organization could edit its policy.";
    Err(Problem::new(Code::PolicyLocksOut, detail))
}

/// Refuses to edit rules that a file contains.
async fn require_no_file(scope: &Scope) -> Result<()> {
    // A file may have been saved or deleted shortly before; its text was published before it was deleted.
    org_policies::follow(&scope.core).await?;
    // The watcher logs problems in the folder.
    let worker = Arc::clone(&scope.core);
    tokio::task::spawn_blocking(move || drop(worker.policy.reload())).await.map_err(Problem::internal)?;
    if !scope.core.policy.has_file(scope.org) {
        return Ok(());
    }
    let (file, org) = (org_file(scope.org), scope.org);
    let detail = format!(
        "The file {file} in the policy folder contains this organization's rules, so they can't be edited here. The operator edits \
         the file, or runs `muster policy publish --org {org}` and deletes the file."
    );
    Err(Problem::new(Code::PolicyOwnedByFile, detail).with("file", file))
}

/// Refuses a change that isn't based on the newest text.
fn require_version(seen: Option<&str>, before: Option<&str>) -> Result<()> {
    let newest = version_of(before);
    let Some(seen) = seen.filter(|seen| *seen != newest) else { return Ok(()) };
    let detail = format!(
        "The organization's policy is now version `{newest}`, not `{seen}`. Read it again and base your change on that."
    );
    Err(Problem::new(Code::Conflict, detail).with("version", newest))
}

fn checked_reason(reason: &str) -> Result<String> {
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(Problem::invalid_at(
            "/reason",
            "REQUIRED",
            "A reason is required. The history shows it.",
        ));
    }
    if !plain::is_line(reason) {
        let detail = "The reason must be a single line without control characters.";
        return Err(Problem::invalid_at("/reason", "NOT_ALLOWED", detail));
    }
    Ok(reason.to_owned())
}

/// Blank text means no rules.
pub(super) fn non_blank(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}
