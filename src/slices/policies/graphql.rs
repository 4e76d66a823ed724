//! Policies in the schema: reading, asking why, trying, editing, taking back.
//!
//! What a panel shows of the policy in force is no stored record but what the process decides by; the history is stored,
//! and is a record like any other.

use std::sync::{Arc, LazyLock};

use async_graphql::{Context, InputObject, Object, SimpleObject};

use super::{Edit, Simulation, edit, simulate, versions::version_of};
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
        policy::{
            Candidate, CellChange, Explanation, Line, LintProblem, Remedy, Subject, changed_lines, org_file,
        },
    },
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, from, items, length, name, range},
        permit::permit,
    },
    read::{One, Page, Record, Rows, Spec},
    slices::people,
};

/// The longest text of an organization's own file: 38 permissions by four roles take a tenth of it, comments aside.
const MAX_TEXT: i64 = 100_000;
/// The longest reason.
const MAX_REASON: i64 = 1_000;

/// A text that the organization's own policy file has had.
pub struct PolicyVersion;

impl Record for PolicyVersion {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A text that the organization's own policy file has had.";
            Spec::new("PolicyVersion", "policy_versions t", about)
                .permission(Permission::PolicyView)
                .column::<PolicyVersionId>("id", "Identifies the version: what `revertPolicy` takes.")
                .column::<Option<OrgId>>("organization_id", "The organization.")
                .column::<String>("file", "The file, from the policy folder on.")
                .column::<Option<String>>("text", "The text; null if there was no file.")
                .column::<String>("version", "Identifies the text: what an edit is made against.")
                .column::<PolicyAuthor>(
                    "author_kind",
                    "Whether a member wrote it, the operator, or whoever edits files.",
                )
                .column::<Option<UserId>>("author_id", "The member.")
                .column::<Option<String>>("author_name", "The author's name at that time.")
                .column::<Option<String>>("reason", "Why it was changed.")
                .column::<Option<PolicyVersionId>>(
                    "reverts_to",
                    "The earlier version whose text this is again.",
                )
                .column::<Timestamp>("at", "Since when.")
        });
        &SPEC
    }
}

/// A file of the policy.
#[derive(SimpleObject)]
pub struct PolicyFile {
    /// The file, from the policy folder on.
    pub file: String,
    /// Identifies the text; `none` if there is no such file.
    pub version: String,
    /// The text; null if there is no such file.
    pub text: Option<String>,
    /// Whether the organization may edit it; the others are the operator's.
    pub editable: bool,
}

/// The policy that is in force in an organization.
#[derive(SimpleObject)]
pub struct OrganizationPolicy {
    /// The organization.
    pub organization_id: OrgId,
    /// Identifies the organization's own file: what an edit is made against.
    pub version: String,
    /// The text of the organization's own file; null if it has none.
    pub text: Option<String>,
    /// Every file that has a say in the organization, its own one first.
    pub files: Vec<PolicyFile>,
    /// What each role may do.
    pub roles: Vec<RolePermissions>,
    /// What a service token may carry at most.
    pub token_cap: Vec<Permission>,
    /// Since when the policy files are in force as they are.
    pub in_force_since: Timestamp,
    /// What is wrong with the policy files as they are saved now; then the last good ones are in force.
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

/// A new text of the organization's own policy file.
#[derive(InputObject)]
pub struct EditPolicyInput {
    /// The version that the edit is made against; another one is refused.
    #[graphql(directive = bounds::apply(length(1, 64)))]
    pub version: String,
    /// The whole text, comments and all; blank removes the file.
    #[graphql(directive = bounds::apply(length(0, MAX_TEXT)))]
    pub text: String,
    /// Why: the history shows it.
    #[graphql(directive = bounds::apply(name(MAX_REASON)))]
    pub reason: String,
}

/// One line of the organization's own policy file.
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

/// Reading the policy.
#[derive(Default)]
pub struct PolicyQuery;

#[Object]
impl PolicyQuery {
    /// The policy that is in force in the organization, with the files that it comes of.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn policy(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<OrganizationPolicy> {
        answer(async { Ok(in_force(&ctx.enter(org_id).await?)) }).await
    }

    /// Who may do something in the organization, and through which line; why not, and what would allow it. About a
    /// role, about a member, or, without either, about what a service token may carry at most.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn explain_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        permission: Permission,
        #[graphql(desc = "The role in question.")] role: Option<Role>,
        #[graphql(desc = "The member in question, in place of a role.")] user_id: Option<UserId>,
    ) -> Answer<Explanation> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let subject = match (role, user_id) {
                (Some(_), Some(_)) => {
                    let detail = "Ask about a role or about a member, not about both.";
                    return Err(Problem::invalid_parameter("user_id", "NOT_ALLOWED", detail));
                }
                (Some(role), None) => Subject::Role(role),
                (None, Some(user)) => Subject::Role(
                    people::role_of(&scope, user).await?.ok_or_else(|| Problem::not_found("member", user))?,
                ),
                (None, None) => Subject::ServiceToken,
            };
            Ok(scope.core.policy.explain(Some(org_id), subject, permission))
        })
        .await
    }

    /// What another text of the organization's own file would come to. Nothing is changed.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn propose_policy(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The whole text; blank: no file.", directive = bounds::apply(length(0, MAX_TEXT)))]
        text: String,
    ) -> Answer<PolicyProposal> {
        answer(async { propose(&ctx.enter(org_id).await?, text).await }).await
    }

    /// What another text of the organization's own file would have changed in the calls of the last days.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn simulate_policy(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The whole text; blank: no file.", directive = bounds::apply(length(0, MAX_TEXT)))]
        text: String,
        #[graphql(desc = "How many days, this one included.", directive = bounds::apply(range(1, 90)))]
        days: i64,
    ) -> Answer<Simulation> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let candidate =
                edit::checked(&scope.core, org_id, some(text), edit::In::Argument("text")).await?;
            simulate(&scope.core, &candidate, Some(org_id), days).await
        })
        .await
    }

    /// The texts that the organization's own file has had, the newest first.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn policy_history(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<PolicyVersion>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).order_by("t.id DESC");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// One text that the organization's own file has had.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn policy_version(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: PolicyVersionId,
    ) -> Answer<One<PolicyVersion>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// What the caller may do in the organization, and why: the same for each of its records.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn viewer_can(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(items(100)))] permissions: Vec<Permission>,
    ) -> Answer<Vec<ViewerPermission>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Ok(permissions.into_iter().map(|permission| viewer_permission(&scope, permission)).collect())
        })
        .await
    }
}

/// Changing the policy.
#[derive(Default)]
pub struct PolicyMutation;

#[Object]
impl PolicyMutation {
    /// Gives the organization's own file another text, if it is still the version that the edit was made against.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn edit_policy(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: EditPolicyInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let EditPolicyInput { version, text, reason } = input;
            super::edit(&scope, Edit { version: Some(version), text, reason }).await?;
            Ok(in_force(&scope))
        })
        .await
    }

    /// Lets a role do something in this organization, by one line; what stands above the role may then do it as well.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn allow_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: PolicyLineInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async { set(&ctx.enter(org_id).await?, input, Some(true)).await }).await
    }

    /// Keeps a role from something in this organization, by one line, and with it what stands below the role.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn deny_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: PolicyLineInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async { set(&ctx.enter(org_id).await?, input, Some(false)).await }).await
    }

    /// Takes the organization's own line about a role and a permission out, so that what holds everywhere holds again.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn reset_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: PolicyLineInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async { set(&ctx.enter(org_id).await?, input, None).await }).await
    }

    /// Puts an earlier text in force again, as a new version.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn revert_policy(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: RevertPolicyInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::revert(&scope, input.version_id, &input.reason).await?;
            Ok(in_force(&scope))
        })
        .await
    }
}

async fn set(scope: &Scope, input: PolicyLineInput, allow: Option<bool>) -> Result<OrganizationPolicy> {
    super::set_permission(scope, input.role, input.permission, allow, &input.reason).await?;
    Ok(in_force(scope))
}

fn in_force(scope: &Scope) -> OrganizationPolicy {
    let (policy, org) = (&scope.core.policy, scope.org);
    let (file, version, text) = edit::present(&scope.core, org);
    let (base, expectations) = policy.base_texts();
    let operators = |file: &str, text: Option<String>| PolicyFile {
        file: file.to_owned(),
        version: version_of(text.as_deref()),
        text,
        editable: false,
    };
    let own = PolicyFile { file, version: version.clone(), text: text.clone(), editable: true };
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
        problems: own_problems(org, policy.without_folder(status.problems)),
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

/// What is wrong with the organization's own file; of everything else only that there is something, since it may tell
/// of other organizations.
fn own_problems(org: OrgId, problems: Vec<LintProblem>) -> Vec<PolicyProblem> {
    let own = org_file(org);
    let (own, others): (Vec<_>, Vec<_>) = problems.into_iter().partition(|problem| problem.file == own);
    let mut shown: Vec<PolicyProblem> = own.into_iter().map(PolicyProblem::from).collect();
    if !others.is_empty() {
        let reason = "a file of the operator's, or of another organization, has problems".to_owned();
        shown.push(PolicyProblem { file: "policy.csv".to_owned(), line: None, reason });
    }
    shown
}

async fn propose(scope: &Scope, text: String) -> Result<PolicyProposal> {
    let (_, version, before) = edit::present(&scope.core, scope.org);
    let after = some(text);
    let lines = changed_lines(before.as_deref().unwrap_or(""), after.as_deref().unwrap_or(""));
    let (core, org) = (Arc::clone(&scope.core), scope.org);
    let tried = tokio::task::spawn_blocking(move || core.policy.with_org(org, after.as_deref()));
    let (problems, changes) = match tried.await.map_err(Problem::internal)? {
        Ok(candidate) => (Vec::new(), changes(scope, &candidate)),
        Err(problems) => (problems, Vec::new()),
    };
    let problems: Vec<_> = problems.into_iter().map(PolicyProblem::from).collect();
    Ok(PolicyProposal { ok: problems.is_empty(), problems, changes, lines, version })
}

fn changes(scope: &Scope, candidate: &Candidate) -> Vec<CellChange> {
    let all = candidate.changes(&scope.core.policy).into_iter();
    all.filter(|change| change.organization_id == Some(scope.org)).collect()
}

fn some(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}

/// Whether the caller of a scope may do something, and why.
fn viewer_permission(scope: &Scope, permission: Permission) -> ViewerPermission {
    let allowed = scope.may(permission);
    let why = scope.why(permission).filter(|_| scope.may(Permission::PolicyView));
    let reason = scope.reason(permission);
    let (decided_by, remedy) = why.map_or((None, None), |why| (why.decided_by, why.remedy));
    ViewerPermission { permission, allowed, reason, decided_by, remedy }
}
