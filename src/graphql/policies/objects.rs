//! The policy's objects in the schema, and its input objects.

use std::sync::LazyLock;

use async_graphql::{InputObject, SimpleObject};

use crate::{
    base::{
        enums::PolicyAuthor,
        ids::{OrgId, PolicyVersionId, UserId},
        permission::{Permission, Role},
        time::Timestamp,
    },
    core::{
        access::Scope,
        policy::{CellChange, LintProblem, OwnExpectation, PolicyLine, Remedy, org_file},
    },
    domain::policies::{Proposal, version_of},
    read::{Record, Spec},
    resolvers::bounds::{bounds, length, name},
};

/// The longest text of an organization's own rules, which every replica compiles: its admins could hold up all others.
/// 38 permissions for four roles take a tenth of it, without comments.
pub(super) const MAX_TEXT: i64 = 100_000;

pub struct PolicyVersion;

impl Record for PolicyVersion {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A version of the organization's own rules.";
            Spec::new("PolicyVersion", "policy_versions t", about)
                .permission(Permission::PolicyView)
                .column::<PolicyVersionId>("id", "Identifies the version, for `revertPolicy`.")
                .column::<OrgId>("organization_id", "The organization.")
                .column::<Option<String>>("text", "The text. Null means no rules of its own.")
                .column::<String>("version", "Identifies the text. An edit names the version it is based on.")
                .column::<PolicyAuthor>("author_kind", "Whether a member or the operator wrote it.")
                .column::<Option<UserId>>("author_id", "The member who wrote it.")
                .column::<Option<String>>("author_name", "The author's name at the time.")
                .column::<String>("reason", "Why it was changed.")
                .column::<Option<PolicyVersionId>>(
                    "reverts_to",
                    "The earlier version whose text this one restores.",
                )
                .column::<Timestamp>("at", "When it was created.")
        });
        &SPEC
    }
}

/// A text of the policy.
#[derive(SimpleObject)]
pub struct PolicyFile {
    /// Its path in the policy folder. The organization's own rules have a path even if they are stored in the database.
    pub file: String,
    /// Identifies the text; `none` without one.
    pub version: String,
    /// The text, if there is one.
    pub text: Option<String>,
    /// Whether the organization may edit it. While its own rules are in a file, only the operator may.
    pub editable: bool,
}

/// The policy in force in an organization.
#[derive(SimpleObject)]
pub struct OrganizationPolicy {
    /// The organization.
    pub organization_id: OrgId,
    /// Identifies the organization's own rules. An edit names the version it is based on.
    pub version: String,
    /// The text of the organization's own rules, if it has any.
    pub text: Option<String>,
    /// All texts that apply in the organization, its own rules first.
    pub files: Vec<PolicyFile>,
    /// What each role may do.
    pub roles: Vec<RolePermissions>,
    /// The most that a service token can be permitted.
    pub token_cap: Vec<Permission>,
    /// Since when this policy has been in force.
    pub in_force_since: Timestamp,
    /// Problems in the current texts. While an operator's text has problems, the last good one stays in force; for the
    /// organization's own rules, the last good file, or else only their denials.
    pub problems: Vec<PolicyProblem>,
    /// The expectations of the organization's own rules. Those that the operator's rules prevent stay unmet, and the
    /// rules stay in force; but the next edit must meet or remove them.
    pub expectations: Vec<OwnExpectation>,
}

/// What a role may do.
#[derive(SimpleObject)]
pub struct RolePermissions {
    /// The role.
    pub role: Role,
    /// Its permissions.
    pub permissions: Vec<Permission>,
}

/// A problem in a policy file.
#[derive(SimpleObject)]
pub struct PolicyProblem {
    /// The file's path in the policy folder.
    pub file: String,
    /// The line number, starting at 1. Null if the problem concerns the whole file.
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

/// The effect that an edit would have.
#[derive(SimpleObject)]
pub struct PolicyProposal {
    /// Whether the edit would be accepted.
    pub ok: bool,
    /// Everything that is wrong with it.
    pub problems: Vec<PolicyProblem>,
    /// The cells of the permission matrix that it changes: who gains or loses what. Empty if there are problems other
    /// than unmet expectations of the text itself.
    pub changes: Vec<CellChange>,
    /// The expectations in the text. Empty if there are problems other than those that are unmet.
    pub expectations: Vec<OwnExpectation>,
    /// The lines that it changes, as a diff: `-` for removed, `+` for added.
    pub lines: Vec<String>,
    /// The version it was compared with. An edit must be based on it.
    pub version: String,
}

impl From<Proposal> for PolicyProposal {
    fn from(Proposal { problems, changes, expectations, lines, version }: Proposal) -> Self {
        let problems: Vec<_> = problems.into_iter().map(PolicyProblem::from).collect();
        Self { ok: problems.is_empty(), problems, changes, expectations, lines, version }
    }
}

/// Whether the caller has a permission, and why.
#[derive(SimpleObject)]
pub struct ViewerPermission {
    /// The permission.
    pub permission: Permission,
    /// Whether the caller has it here.
    pub allowed: bool,
    /// The reason, in one sentence.
    pub reason: String,
    /// The line that decides. Null for callers who may not see the policy.
    pub decided_by: Option<PolicyLine>,
    /// What would allow it. Null for callers who may not see the policy.
    pub remedy: Option<Remedy>,
}

/// A new text of the organization's own rules.
#[derive(InputObject)]
pub struct EditPolicyInput {
    /// The version the edit is based on. The edit fails if it isn't the current one.
    #[graphql(directive = bounds::apply(length(1, 64)))]
    pub version: String,
    /// The complete text, including comments. Blank means no rules of its own.
    #[graphql(directive = bounds::apply(length(0, MAX_TEXT)))]
    pub text: String,
    /// The reason, shown in the history.
    #[graphql(directive = bounds::apply(name(1_000)))]
    pub reason: String,
}

/// One line of the organization's own rules.
#[derive(InputObject)]
pub struct PolicyLineInput {
    /// The role it concerns.
    pub role: Role,
    /// The permission to allow, deny, or reset.
    pub permission: Permission,
    /// The reason, shown in the history.
    #[graphql(directive = bounds::apply(name(1_000)))]
    pub reason: String,
}

/// An earlier version to restore.
#[derive(InputObject)]
pub struct RevertPolicyInput {
    /// The version the change is based on. It fails if that isn't the current one.
    #[graphql(directive = bounds::apply(length(1, 64)))]
    pub version: String,
    /// The version whose text to restore.
    pub version_id: PolicyVersionId,
    /// The reason, shown in the history.
    #[graphql(directive = bounds::apply(name(1_000)))]
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
        expectations: policy.now().expectations(org),
    }
}

/// The expectations without the lines that name other organizations, and without the comments above those: a comment
/// stays only with the line that it stands above.
fn concerning(org: OrgId, text: &str) -> String {
    let (mut kept, mut pending) = (String::new(), String::new());
    for line in text.lines() {
        pending.push_str(line);
        pending.push('\n');
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let place = line.split(',').nth(1).and_then(|place| place.trim().parse::<i64>().ok());
        if place.is_none_or(|place| place == org.0) {
            kept.push_str(&pending);
        }
        pending.clear();
    }
    kept
}

/// Problems in the organization's own rules. For the operator's files only says that there are some, because
/// they may name other organizations.
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

/// Whether the caller has a permission, and why.
pub(super) fn viewer_permission(scope: &Scope, permission: Permission) -> ViewerPermission {
    let allowed = scope.may(permission);
    let why = scope.explain(permission);
    let reason = scope.explain_in_words(permission, why.as_ref());
    let why = why.filter(|_| scope.may(Permission::PolicyView));
    let (decided_by, remedy) = why.map_or((None, None), |why| (why.decided_by, why.remedy));
    ViewerPermission { permission, allowed, reason, decided_by, remedy }
}
