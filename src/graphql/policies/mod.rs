//! Policies in the GraphQL schema: read, explain, simulate, edit, revert.
//!
//! The policy in force isn't a stored record: this process holds it. The history is stored, and is a record like any
//! other.

mod explained;
mod objects;
mod permissions;

use async_graphql::{Context, Object};

use self::objects::{
    EditPolicyInput, MAX_TEXT, OrganizationPolicy, PolicyLineInput, PolicyProposal, PolicyVersion,
    RevertPolicyInput, ViewerPermission, in_force, viewer_permission,
};
pub use self::permissions::PermissionQuery;
use crate::{
    base::{
        ids::{OrgId, PolicyVersionId, UserId},
        permission::{Permission, Role},
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        policy::{Explanation, Subject},
    },
    domain::{
        people,
        policies::{self, Edit, Simulation},
    },
    read::{One, Page, Rows},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, items, length, range},
        permit::permit,
    },
};

#[derive(Default)]
pub struct PolicyQuery;

#[Object]
impl PolicyQuery {
    /// The policy in force in the organization, with the texts it comes from.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn policy(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<OrganizationPolicy> {
        answer(async { Ok(in_force(&ctx.enter(org_id).await?)) }).await
    }

    /// Whether a role or a member has a permission in the organization and by which line, or why not and what would
    /// allow it. Without either, the answer is about the most that a service token can be permitted.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn explain_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        permission: Permission,
        #[graphql(desc = "The role to ask about.")] role: Option<Role>,
        #[graphql(desc = "The member to ask about, instead of a role.")] user_id: Option<UserId>,
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

    /// The effect of another text for the organization's own rules. Nothing is changed.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn propose_policy(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The complete text. Blank means no rules of its own.", directive = bounds::apply(length(0, MAX_TEXT)))]
        text: String,
    ) -> Answer<PolicyProposal> {
        answer(async { Ok(policies::propose(&ctx.enter(org_id).await?, text).await?.into()) }).await
    }

    /// The calls of recent days that another text of the organization's own rules decides differently.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn simulate_policy(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The complete text. Blank means no rules of its own.", directive = bounds::apply(length(0, MAX_TEXT)))]
        text: String,
        #[graphql(desc = "The number of days, including today.", directive = bounds::apply(range(1, 90)))]
        days: i64,
    ) -> Answer<Simulation> {
        answer(async { policies::try_out(&ctx.enter(org_id).await?, text, days).await }).await
    }

    /// The versions of the organization's own rules, newest first. Rules in the operator's files have no
    /// versions.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn policy_history(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<PolicyVersion>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).order_by("t.id DESC");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// One version of the organization's own rules.
    #[graphql(directive = permit::apply(Permission::PolicyView))]
    async fn policy_version(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: PolicyVersionId,
    ) -> Answer<One<PolicyVersion>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// The caller's permissions in the organization, with reasons. They are the same for each of its records.
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

#[derive(Default)]
pub struct PolicyMutation;

#[Object]
impl PolicyMutation {
    /// Replaces the text of the organization's own rules, if the edit is based on the current version.
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
            policies::edit(&scope, Edit { version: Some(version), text, reason }).await?;
            Ok(in_force(&scope))
        })
        .await
    }

    /// Allows a role something in this organization, with one line. Roles above it are then allowed too.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn allow_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: PolicyLineInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async { set(&ctx.enter(org_id).await?, input, Some(true)).await }).await
    }

    /// Denies a role something in this organization, with one line. Roles below it are then denied too.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn deny_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: PolicyLineInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async { set(&ctx.enter(org_id).await?, input, Some(false)).await }).await
    }

    /// Removes the organization's own line about a role and a permission, so that the general rule applies
    /// again.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn reset_permission(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: PolicyLineInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async { set(&ctx.enter(org_id).await?, input, None).await }).await
    }

    /// Restores an earlier text as a new version, if the change is based on the current version.
    #[graphql(directive = permit::apply(Permission::PolicyEdit))]
    async fn revert_policy(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: RevertPolicyInput,
    ) -> Answer<OrganizationPolicy> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            policies::revert(&scope, Some(&input.version), input.version_id, &input.reason).await?;
            Ok(in_force(&scope))
        })
        .await
    }
}

async fn set(scope: &Scope, input: PolicyLineInput, allow: Option<bool>) -> Result<OrganizationPolicy> {
    policies::set_permission(scope, input.role, input.permission, allow, &input.reason).await?;
    Ok(in_force(scope))
}
