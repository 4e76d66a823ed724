//! Editing an organization's own file: against a version, checked like a saved file, never into a lock-out.

use std::sync::Arc;

use super::{
    lines, place, sync,
    versions::{self, Author, NO_FILE, version_of},
};
use crate::{
    base::{
        enums::{ChangeOp, PolicyAuthor, RecordKind},
        ids::{OrgId, PolicyVersionId},
        permission::{Permission, Role},
        plain,
        problem::{Code, Problem, Result, Violation},
    },
    core::{
        Core,
        access::Scope,
        audit,
        policy::{Candidate, LintProblem, Subject, org_file},
        store::Tx,
    },
    slices::{orgs, people},
};

/// An edit of the organization's own file.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The version that the editor has seen; another one refuses the edit. None: whatever it is.
    pub version: Option<String>,
    /// The whole text; blank removes the file.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// Where a caller has said what is refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum In {
    /// Under this pointer in the field's input.
    Input(&'static str),
    /// In this argument of the field.
    Argument(&'static str),
}

/// Puts another text in force: whether it is another than the one that was.
///
/// # Errors
/// `CONFLICT` for an edit of another version than the newest; `VALIDATION_FAILED` with everything that is wrong with the
/// text; `POLICY_LOCKS_OUT`; `POLICY_NOT_WRITABLE`. Nothing is changed then.
pub async fn edit(scope: &Scope, edit: Edit) -> Result<bool> {
    let reason = checked_reason(&edit.reason)?;
    change(scope, ("editPolicy", In::Input("/text")), reason, move |_, newest| {
        if let Some(seen) = edit.version.filter(|seen| *seen != newest.version) {
            return Err(stale(&seen, &newest.version));
        }
        Ok(New { text: some(edit.text), reverts_to: None })
    })
    .await
}

/// Says that a role may, or may not, do something in the organization: one line is put in or takes another's place;
/// without an effect, the line about it is taken out. Whether that has changed anything.
///
/// # Errors
/// As [`edit`]; `CONFLICT` if the line does not come to what was asked for, saying why.
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
    let org = scope.org;
    change(scope, (operation, In::Input("/permission")), reason, move |scope, newest| {
        let before = newest.text.unwrap_or_default();
        let text = some(lines::set(&before, org, role, permission, allow));
        if let Some(allow) = allow {
            let candidate = candidate(&scope.core, org, text.as_deref(), In::Input("/permission"))?;
            let comes_to = candidate.explain(Some(org), Subject::Role(role), permission);
            if comes_to.allowed != allow {
                let detail = format!("That line would change nothing. {}", comes_to.reason);
                return Err(Problem::new(Code::Conflict, detail));
            }
        }
        Ok(New { text, reverts_to: None })
    })
    .await
}

/// Makes an earlier text the newest again: a new version, checked like any edit. Whether it was not the newest.
///
/// # Errors
/// `NOT_FOUND` for a version that this organization's file never had; otherwise as [`edit`].
pub async fn revert(scope: &Scope, to: PolicyVersionId, reason: &str) -> Result<bool> {
    let reason = checked_reason(reason)?;
    let tx = scope.begin().await?;
    let earlier = versions::load(&tx, to).await?;
    tx.rollback().await?;
    change(scope, ("revertPolicy", In::Input("/version_id")), reason, |_, _| {
        Ok(New { text: earlier.text, reverts_to: Some(to) })
    })
    .await
}

/// Gives one of the operator's own files the text that it had in an earlier version: whether it had another one.
///
/// # Errors
/// `NOT_FOUND`; `VALIDATION_FAILED` if the policy with that text would be refused, or is built in.
pub async fn revert_operators(core: &Arc<Core>, to: PolicyVersionId, reason: &str) -> Result<bool> {
    let reason = checked_reason(reason)?;
    sync::now(core).await?;
    let earlier = versions::load_operators(core, to).await?;
    let (worker, file, text) = (Arc::clone(core), earlier.file.clone(), earlier.text.clone());
    let put = tokio::task::spawn_blocking(move || worker.policy.put_operators(&file, text.as_deref()));
    put.await.map_err(Problem::internal)?.map_err(|problems| refused(&problems, In::Input("/version_id")))?;
    let author = Author {
        kind: PolicyAuthor::Operator,
        id: None,
        name: Some("system".to_owned()),
        reason: Some(reason),
        reverts_to: Some(to),
    };
    versions::add_operators(core, &earlier.file, earlier.text, author).await
}

/// The newest text, as the step that makes the next one sees it.
struct Newest {
    version: String,
    text: Option<String>,
}

struct New {
    text: Option<String>,
    reverts_to: Option<PolicyVersionId>,
}

/// Makes the next text of the newest one: whether it is another.
async fn change(
    scope: &Scope,
    (operation, said): (&'static str, In),
    reason: String,
    next: impl FnOnce(&Scope, Newest) -> Result<New> + Send,
) -> Result<bool> {
    let core = &scope.core;
    // What was edited by hand a moment ago is a version too.
    sync::now(core).await?;
    require_whole(core)?;
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let newest = versions::newest(&tx).await?;
    let before = newest.and_then(|newest| newest.text);
    let was = version_of(before.as_deref());
    let new = next(scope, Newest { version: was.clone(), text: before.clone() })?;
    if was == version_of(new.text.as_deref()) {
        tx.rollback().await?;
        return Ok(false);
    }
    let candidate = checked(core, scope.org, new.text.clone(), said).await?;
    require_editor(&tx, &candidate).await?;
    // A folder that can't be written refuses the edit before anything is said in the database.
    let prepared = place::prepare(core, scope.org, new.text.clone()).await?;
    let author = Author { reverts_to: new.reverts_to, ..Author::caller(scope, &reason) };
    let row = versions::add(&tx, new.text.clone(), author).await?;
    let mut changes = versions::difference(before.as_deref(), new.text.as_deref());
    changes["reason"] = reason.into();
    if let Some(to) = new.reverts_to {
        changes["reverts_to"] = to.0.into();
    }
    let target_id = row.id.0;
    audit::record(
        &tx,
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Policy, id: target_id, changes },
    );
    tx.commit().await?;
    place::publish(core, prepared).await;
    Ok(true)
}

/// What the policy would be with this text; everything that is wrong with it otherwise.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub(super) async fn checked(
    core: &Arc<Core>,
    org: OrgId,
    text: Option<String>,
    said: In,
) -> Result<Candidate> {
    let worker = Arc::clone(core);
    let checked = tokio::task::spawn_blocking(move || candidate(&worker, org, text.as_deref(), said));
    checked.await.map_err(Problem::internal)?
}

fn candidate(core: &Core, org: OrgId, text: Option<&str>, said: In) -> Result<Candidate> {
    core.policy.with_org(org, text).map_err(|problems| refused(&problems, said))
}

fn refused(problems: &[LintProblem], said: In) -> Problem {
    let violation = |problem: &LintProblem| match said {
        In::Input(pointer) => Violation::at(pointer, "POLICY_REFUSED", problem.to_string()),
        In::Argument(name) => Violation::parameter(name, "POLICY_REFUSED", problem.to_string()),
    };
    let errors = problems.iter().take(100).map(violation).collect();
    Problem::invalid(errors).with(
        "problems",
        serde_json::to_value(problems.iter().take(100).collect::<Vec<_>>()).unwrap_or_default(),
    )
}

/// Somebody has to be able to take it back: a member who can sign in, and who may edit the policy under the candidate.
async fn require_editor(tx: &Tx, candidate: &Candidate) -> Result<()> {
    let editors: Vec<Role> = candidate.roles(tx.scope.org, Permission::PolicyEdit).collect();
    if people::has_member_with(tx, &editors).await? {
        return Ok(());
    }
    let detail = "After this edit no member of the organization could edit its policy.";
    Err(Problem::new(Code::PolicyLocksOut, detail))
}

/// A folder that is refused as it is takes no edit: it would be written, and not be in force.
fn require_whole(core: &Core) -> Result<()> {
    if core.policy.status().problems.is_empty() {
        return Ok(());
    }
    // Which file it is may tell of another organization; /health and the log say it to the operator.
    let detail = "The policy files are not good as they are saved now; the operator has to mend them first.";
    Err(Problem::new(Code::Conflict, detail))
}

fn stale(seen: &str, newest: &str) -> Problem {
    let detail = format!(
        "The organization's policy file is version `{newest}` by now, not `{seen}`: read it again, and make the change to that."
    );
    Problem::new(Code::Conflict, detail).with("version", newest)
}

fn checked_reason(reason: &str) -> Result<String> {
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(Problem::invalid_at("/reason", "REQUIRED", "Say why: the history shows it."));
    }
    if !plain::is_line(reason) {
        let detail = "A reason is one line, without control characters.";
        return Err(Problem::invalid_at("/reason", "NOT_ALLOWED", detail));
    }
    Ok(reason.to_owned())
}

fn some(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}

/// The organization's own file as it is now: its name, its version and its text.
pub(super) fn present(core: &Core, org: OrgId) -> (String, String, Option<String>) {
    let text = core.policy.org_text(org);
    let version = text.as_deref().map_or_else(|| NO_FILE.to_owned(), |text| version_of(Some(text)));
    (org_file(org), version, text)
}
