//! Mutations that erase organizations, members and contacts.

use async_graphql::{Context, Object};

use super::orgs::Organization;
use crate::{
    base::{
        ids::{ContactId, ErasureId, OrgId, UserId},
        permission::Permission,
    },
    domain::rights,
    read::One,
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, name},
        permit::permit,
    },
};

#[derive(Default)]
pub struct ErasureMutation;

#[Object]
impl ErasureMutation {
    /// Schedules the deletion of the organization with everything in it. It begins after the installation's grace
    /// period (`erasure.grace_days`): members lose access, agents are stopped, then all records are deleted. All OWNERs
    /// get a mail. Scheduling it again changes nothing.
    #[graphql(directive = permit::apply(Permission::OrganizationErase))]
    async fn schedule_deletion(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The organization's name, to confirm the deletion.", directive = bounds::apply(name(80)))]
        name: String,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            rights::schedule_deletion(&scope, &name).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }

    /// Schedules the erasure of a member from the organization: after the grace period the membership ends, and their
    /// name is replaced in its records. The account itself stays.
    #[graphql(directive = permit::apply(Permission::OrganizationErase))]
    async fn erase_member(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        user_id: UserId,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            rights::schedule_member(&scope, user_id).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }

    /// Schedules the erasure of a contact: after the grace period their name and addresses are replaced, and their raw
    /// mails deleted. The contents of messages stay.
    #[graphql(directive = permit::apply(Permission::OrganizationErase))]
    async fn erase_contact(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        contact_id: ContactId,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            rights::schedule_contact(&scope, contact_id).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }

    /// Cancels an erasure that has not begun.
    #[graphql(directive = permit::apply(Permission::OrganizationErase))]
    async fn cancel_erasure(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        erasure_id: ErasureId,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            rights::cancel(&scope, erasure_id).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }
}
