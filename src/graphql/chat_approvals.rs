//! Linked chats in the GraphQL schema.

use async_graphql::{Context, Object, SimpleObject};

use crate::{
    base::{
        ids::{ChannelId, OrgId},
        permission::Permission,
        secret::shown_once,
        time::Timestamp,
    },
    domain::chat_approvals::{self, Linked},
    resolvers::{Answer, Enter, answer, permit::permit},
};

/// A chat that the caller has linked, in which they receive and answer agents' requests.
#[derive(SimpleObject)]
pub struct LinkedChat {
    /// The channel.
    pub channel_id: ChannelId,
    /// The vendor's id of the caller in this chat.
    pub origin_id: String,
    /// The vendor's name of the caller in this chat.
    pub origin_name: Option<String>,
    /// When the chat was linked.
    pub linked_at: Timestamp,
}

/// A code that links a chat, to be sent once to the channel's bot in a private chat.
#[derive(SimpleObject)]
pub struct ChatCode {
    /// The code. It works once.
    #[graphql(directive = shown_once::apply())]
    pub code: String,
    /// When it stops working.
    pub expires_at: Timestamp,
}

#[derive(Default)]
pub struct LinkedChatQuery;

#[Object]
impl LinkedChatQuery {
    /// The chats that the caller has linked, in this organization. For people only.
    #[graphql(directive = permit::apply(Permission::ApprovalResolve))]
    async fn linked_chats(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<Vec<LinkedChat>> {
        answer(async {
            let links = chat_approvals::list_linked(&ctx.enter(org_id).await?).await?;
            let show = |link: Linked| LinkedChat {
                channel_id: link.channel,
                origin_id: link.origin,
                origin_name: link.origin_name,
                linked_at: link.at,
            };
            Ok(links.into_iter().map(show).collect())
        })
        .await
    }
}

#[derive(Default)]
pub struct LinkedChatMutation;

#[Object]
impl LinkedChatMutation {
    /// Creates a code by which the caller links their chat with a channel's bot. Sent to the bot in a private chat
    /// within ten minutes, it links that chat: from then on the caller also receives requests there. For people only.
    #[graphql(directive = permit::apply(Permission::ApprovalResolve))]
    async fn link_chat(&self, ctx: &Context<'_>, org_id: OrgId, channel_id: ChannelId) -> Answer<ChatCode> {
        answer(async {
            let code = chat_approvals::create_code(&ctx.enter(org_id).await?, channel_id).await?;
            Ok(ChatCode { code: code.text, expires_at: code.expires_at })
        })
        .await
    }

    /// Ends the caller's link with a channel's bot. Returns the channel's id. For people only.
    #[graphql(directive = permit::apply(Permission::ApprovalResolve))]
    async fn unlink_chat(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        channel_id: ChannelId,
    ) -> Answer<ChannelId> {
        answer(async {
            chat_approvals::unlink(&ctx.enter(org_id).await?, channel_id).await?;
            Ok(channel_id)
        })
        .await
    }
}
