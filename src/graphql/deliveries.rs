//! Deliveries in the GraphQL schema.

use async_graphql::{Context, Object};

use super::conversations::Message;
use crate::{
    base::{
        ids::{MessageId, OrgId},
        permission::Permission,
    },
    domain::deliveries,
    read::One,
    resolvers::{Answer, Enter, answer, permit::permit},
};

#[derive(Default)]
pub struct DeliveryMutation;

#[Object]
impl DeliveryMutation {
    /// Resends the failed parts of a message. A part whose outcome is unknown may arrive twice.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn retry_delivery(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        message_id: MessageId,
    ) -> Answer<One<Message>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            deliveries::retry(&scope, message_id).await?;
            Ok(One::by_id(&scope, message_id))
        })
        .await
    }
}
