//! The policy as the schema shows it, and what it takes.

use std::sync::{Arc, LazyLock};

use async_graphql::{InputObject, SimpleObject};

use super::{edit::some, versions::version_of};
use crate::{
    base::{
        enums::PolicyAuthor,
        ids::{OrgId, PolicyVersionId, UserId},
        permission::{Permission, Role},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        access::Scope,
        policy::{CellChange, Line, LintProblem, Remedy, changed_lines, org_file},
    },
    fields::bounds::{bounds, length, name},
    read::{Record, Spec},
};

/// The longest text of an organization's own rules: 38 permissions by four roles take a tenth of it, comments aside.
pub(super) const MAX_TEXT: i64 = 100_000;
/// The longest reason.
const MAX_REASON: i64 = 1_000;

/// A version of the organization's own rules.
pub struct PolicyVersion;

impl Record for PolicyVersion {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A version of the organization's own rules.";
            Spec::new("PolicyVersion", "policy_versions t", about)
                .permission(Permission::PolicyView)
                .column::<PolicyVersionId>("id", "Identifies the version: what `revertPolicy` takes.")
                .column::<OrgId>("organization_id", "The organization.")
                .column::<Option<String>>("text", "The text; null: no rules of its own.")
                .column::<String>("version", "Identifies the text: what an edit is made against.")
                .column::<PolicyAuthor>("author_kind", "Whether a member wrote it, or the operator.")
                .column::<Option<UserId>>("author_id", "The member.")
                .column::<Option<String>>("author_name", "The author's name at that time.")
                .column::<String>("reason", "Why it was changed.")
                .column::<Option<PolicyVersionId>>(
                    "reverts_to",
                    "The earlier version whose text this is again.",
                )
                .column::<Timestamp>("at", "Since when.")
        });
        &SPEC
    }
}

/// A text of the policy.
#[derive(SimpleObject)]
pub struct PolicyFile {
    /// Its name, from the policy folder on. The organization's own rules have this name also where they are not in a file.
    pub file: String,
    /// Identifies the text; `none` if there is none.
    pub version: String,
    /// The text; null if there is none.
    pub text: Option<String>,
    /// Whether the organization may edit it. Its own rules are the operator's as well while they are in a file.
    pub editable: bool,
}

/// The policy that is in force in an organization.
#[derive(SimpleObject)]
pub struct OrganizationPolicy {
    /// The organization.
    pub organization_id: OrgId,
    /// Identifies the organization's own rules: what an edit is made against.
    pub version: String,
    /// The text of the organization's own rules; null if it has none.
    pub text: Option<String>,
    /// Every text that has a say in the organization, its own rules first.
    pub files: Vec<PolicyFile>,
    /// What each role may do.
    pub roles: Vec<RolePermissions>,
    /// What a service token may carry at most.
    pub token_cap: Vec<Permission>,
    /// Since when the policy is in force as it is.
    pub in_force_since: Timestamp,
    /// What is wrong with the texts as they are now. Of the operator's, the last good ones are in force then; of the
    /// organization's own rules the last good file, or else only what they deny.
    pub problems: Vec<PolicyProblem>,
}

/// What a role may do.
#[derive(SimpleObject)]
pub struct RolePermissions {
    /// The role.
    pub role: Role,
    /// Its permissions.
    pub permissions: Vec<Permission>,
}

/// Something that is wrong with a policy file.
#[derive(SimpleObject)]
pub struct PolicyProblem {
    /// The file, from the policy folder on.
    pub file: String,
    /// The line, from 1 on; null if it is about the file as a whole.
    pub line: Option<i64>,
    /// What is wrong with it.
    pub reason: String,
}

impl From<LintProblem> for PolicyProblem {
    fn from(problem: LintProblem) -> Self {
        let line = problem.line.and_then(|line| i64::try_from(line).ok());
        Self { file: problem.file, line, reason: problem.reason }
    }
}

/// What an edit would come to.
#[derive(SimpleObject)]
pub struct PolicyProposal {
    /// Whether the edit would be taken.
    pub ok: bool,
    /// Everything that is wrong with it.
    pub problems: Vec<PolicyProblem>,
    /// The cells that it changes: who gains and loses what.
    pub changes: Vec<CellChange>,
    /// The lines that it changes: `-` before what goes, `+` before what comes.
    pub lines: Vec<String>,
    /// The version that it is compared with, and has to be made against.
    pub version: String,
}

/// Whether the caller may do something, and why.
#[derive(SimpleObject)]
pub struct ViewerPermission {
    /// The permission.
    pub permission: Permission,
    /// Whether the caller holds it here.
    pub allowed: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// The line that decides; null for callers who may not see the policy.
    pub decided_by: Option<Line>,
    /// What would allow it; null for callers who may not see the policy.
    pub remedy: Option<Remedy>,
}

/// A new text of the organization's own rules.
#[derive(InputObject)]
pub struct EditPolicyInput {
    /// The version that the edit is made against; another one is refused.
    #[graphql(directive = bounds::apply(length(1, 64)))]
    pub version: String,
    /// The whole text, comments and all; blank: no rules of its own.
    #[graphql(directive = bounds::apply(length(0, MAX_TEXT)))]
    pub text: String,
    /// Why: the history shows it.
    #[graphql(directive = bounds::apply(name(MAX_REASON)))]
    pub reason: String,
}

/// One line of the organization's own rules.
#[derive(InputObject)]
pub struct PolicyLineInput {
    /// The role that it is about.
    pub role: Role,
    /// What the role may or may not do.
    pub permission: Permission,
    /// Why: the history shows it.
    #[graphql(directive = bounds::apply(name(MAX_REASON)))]
    pub reason: String,
}

/// An earlier version to go back to.
#[derive(InputObject)]
pub struct RevertPolicyInput {
    /// The version whose text is to be in force again.
    pub version_id: PolicyVersionId,
    /// Why: the history shows it.
    #[graphql(directive = bounds::apply(name(MAX_REASON)))]
    pub reason: String,
}

pub(super) fn in_force(scope: &Scope) -> OrganizationPolicy {
    let (policy, org) = (&scope.core.policy, scope.org);
    let text = policy.now().org_text(org).map(|text| text.to_string());
    let version = version_of(text.as_deref());
    let (base, expectations) = policy.base_texts();
    let operators = |file: &str, text: Option<String>| PolicyFile {
        file: file.to_owned(),
        version: version_of(text.as_deref()),
        text,
        editable: false,
    };
    let own = PolicyFile {
        file: org_file(org),
        version: version.clone(),
        text: text.clone(),
        editable: !policy.has_file(org),
    };
    let roles = Role::ALL.into_iter().map(|role| RolePermissions {
        role,
        permissions: policy.role_permissions(org, role).iter().collect(),
    });
    let status = policy.status();
    OrganizationPolicy {
        organization_id: org,
        version,
        text,
        files: vec![
            own,
            operators("policy.csv", Some(base)),
            operators("expectations.csv", expectations.map(|text| concerning(org, &text))),
        ],
        roles: roles.collect(),
        token_cap: policy.token_cap().iter().collect(),
        in_force_since: status.loaded_at,
        problems: own_problems(org, status.problems),
    }
}

/// Expectations without the lines that name other organizations.
fn concerning(org: OrgId, text: &str) -> String {
    let others = |line: &&str| {
        let place = line.split(',').nth(1).and_then(|place| place.trim().parse::<i64>().ok());
        !line.trim_start().starts_with('#') && place.is_some_and(|place| place != org.0)
    };
    text.lines().filter(|line| !others(line)).map(|line| format!("{line}\n")).collect()
}

/// What is wrong with the organization's own rules; of the operator's files only that there is something, since those may
/// name other organizations.
fn own_problems(org: OrgId, problems: Vec<LintProblem>) -> Vec<PolicyProblem> {
    let is_refused = problems.iter().any(|problem| problem.org.is_none());
    let own = problems.into_iter().filter(|problem| problem.org == Some(org));
    let mut shown: Vec<PolicyProblem> = own.map(PolicyProblem::from).collect();
    if is_refused {
        let reason = "the operator's files have problems".to_owned();
        shown.push(PolicyProblem { file: "policy.csv".to_owned(), line: None, reason });
    }
    shown
}

pub(super) async fn propose(scope: &Scope, text: String) -> Result<PolicyProposal> {
    let (policy, org, after) = (scope.core.policy.now(), scope.org, some(text));
    let before = policy.org_text(org);
    let before = before.as_deref();
    let (lines, version) =
        (changed_lines(before.unwrap_or(""), after.as_deref().unwrap_or("")), version_of(before));
    let worker = Arc::clone(&policy);
    let tried = tokio::task::spawn_blocking(move || {
        let candidate = worker.with_org(org, after.as_deref())?;
        Ok::<_, Vec<LintProblem>>(candidate.changes(&worker))
    });
    let (problems, mut changes) = match tried.await.map_err(Problem::internal)? {
        Ok(changes) => (Vec::new(), changes),
        Err(problems) => (problems, Vec::new()),
    };
    changes.retain(|change| change.organization_id == Some(org));
    let problems: Vec<_> = problems.into_iter().map(PolicyProblem::from).collect();
    Ok(PolicyProposal { ok: problems.is_empty(), problems, changes, lines, version })
}

/// Whether the caller of a scope may do something, and why.
pub(super) fn viewer_permission(scope: &Scope, permission: Permission) -> ViewerPermission {
    let allowed = scope.may(permission);
    let why = scope.why(permission).filter(|_| scope.may(Permission::PolicyView));
    let reason = scope.reason(permission);
    let (decided_by, remedy) = why.map_or((None, None), |why| (why.decided_by, why.remedy));
    ViewerPermission { permission, allowed, reason, decided_by, remedy }
}
