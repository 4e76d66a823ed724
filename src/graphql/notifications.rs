//! Notifications in the GraphQL schema.

use async_graphql::{Context, InputObject, Object, SimpleObject};

use crate::{
    base::{enums::NotificationPace, ids::OrgId, permission::Permission},
    domain::notifications::{self, Choice, Paces},
    resolvers::{Answer, Enter, answer, permit::permit},
};

/// A person's notifications by mail in an organization.
#[derive(SimpleObject)]
pub struct Notifications {
    /// A new approval: for its assignee; else for those who watch its conversation; else for OWNER and ADMIN.
    pub approval_raised: NotificationPace,
    /// An approval that is about to expire. The same people are notified.
    pub approval_expiring: NotificationPace,
    /// An agent that has failed. By default OFF for OPERATOR and VIEWER.
    pub agent_failed: NotificationPace,
}

impl From<Paces> for Notifications {
    fn from(Paces { approval_raised, approval_expiring, agent_failed }: Paces) -> Self {
        Self { approval_raised, approval_expiring, agent_failed }
    }
}

/// Which notifications to send by mail. Fields left out, and null, keep their value.
#[derive(InputObject)]
pub struct NotificationsInput {
    /// A new approval.
    pub approval_raised: Option<NotificationPace>,
    /// An approval that is about to expire.
    pub approval_expiring: Option<NotificationPace>,
    /// An agent that has failed.
    pub agent_failed: Option<NotificationPace>,
}

#[derive(Default)]
pub struct NotificationQuery;

#[Object]
impl NotificationQuery {
    /// The caller's notifications by mail in this organization. For people only.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn notifications(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<Notifications> {
        answer(async { Ok(notifications::effective_paces(&ctx.enter(org_id).await?).await?.into()) }).await
    }
}

#[derive(Default)]
pub struct NotificationMutation;

#[Object]
impl NotificationMutation {
    /// Sets the caller's notifications by mail in this organization. For people only.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn set_notifications(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: NotificationsInput,
    ) -> Answer<Notifications> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let NotificationsInput { approval_raised, approval_expiring, agent_failed } = input;
            notifications::update_settings(
                &scope,
                Choice { approval_raised, approval_expiring, agent_failed },
            )
            .await?;
            Ok(notifications::effective_paces(&scope).await?.into())
        })
        .await
    }
}
