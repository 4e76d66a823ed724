//! The text of messages while agents write them.

use async_graphql::{Context, SimpleObject, Subscription};
use futures::{Stream, stream};

use crate::{
    base::{
        ids::{ConversationId, OrgId},
        permission::Permission,
        problem::Result,
    },
    domain::conversations,
    resolvers::{Enter, permit::permit, while_permitted},
};

/// A piece of a message that an agent is writing.
#[derive(SimpleObject)]
pub struct MessageDelta {
    /// Identifies the message in its conversation: the `hostKey` of the message that follows when it is complete.
    pub message: String,
    /// Where the text begins in the message, in bytes of UTF-8.
    pub offset: i64,
    /// The text.
    pub text: String,
    /// Whether it is a thought.
    pub thinking: bool,
}

#[derive(Default)]
pub struct DeltaSubscription;

#[Subscription]
impl DeltaSubscription {
    /// Sends the text of a conversation's messages while the agent writes them. Pieces may be missing: if an `offset`
    /// does not follow, wait for the message, which `messageAdded` sends when it is complete.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn message_deltas(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        conversation_id: ConversationId,
    ) -> Result<impl Stream<Item = Result<MessageDelta>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        conversations::require(&scope, conversation_id).await?;
        let watching = scope.core.events.deltas.watch(org_id, conversation_id);
        let deltas = stream::unfold(watching, |mut watching| async move {
            let delta = watching.next().await?;
            let (message, text) = (delta.message.clone(), delta.text.clone());
            Some((MessageDelta { message, offset: delta.offset, text, thinking: delta.thinking }, watching))
        });
        while_permitted(&scope, Permission::AgentOutputView, deltas)
    }
}
