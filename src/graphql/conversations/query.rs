//! Queries for conversations.

use async_graphql::{Context, Object};

use super::{
    Attachment, Conversation, Hits, Message, MessageSearch,
    list::{self, FeedFilter, Filter},
    page::{self, Cursor},
};
use crate::{
    base::{
        enums::{ConversationSort, ConversationStatus, SortOrder},
        ids::{AgentId, AttachmentId, ChannelId, ContactId, ConversationId, MessageId, OrgId},
        permission::Permission,
        time::Timestamp,
    },
    core::access::Scope,
    domain::conversations::search::{self, MessagesFound},
    read::{Feed, List, OffsetPage, One, Rows, Stretch},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, items, length, range},
        permit::permit,
    },
};

#[derive(Default)]
pub struct ConversationQuery;

#[Object]
impl ConversationQuery {
    /// The organization's conversations across all agents, filtered and sorted.
    #[graphql(directive = permit::apply(Permission::ConversationView))]
    #[expect(clippy::too_many_arguments, reason = "the filters of operation 11")]
    async fn conversations(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Only the conversation with this id.")] id: Option<ConversationId>,
        #[graphql(desc = "Only conversations of this agent.")] agent_id: Option<AgentId>,
        #[graphql(desc = "Only conversations with this contact.")] contact_id: Option<ContactId>,
        #[graphql(desc = "Only conversations through this channel.")] channel_id: Option<ChannelId>,
        #[graphql(desc = "Only conversations over this transport.", directive = bounds::apply(length(1, 32)))]
        transport: Option<String>,
        #[graphql(desc = "Only conversations with this status.")] status: Option<ConversationStatus>,
        #[graphql(desc = "Only conversations last seen with this model.", directive = bounds::apply(length(1, 120)))]
        model: Option<String>,
        #[graphql(
            name = "ref",
            desc = "Only the conversation with this short code. Case doesn't matter.",
            directive = bounds::apply(length(1, 40))
        )]
        reference: Option<String>,
        #[graphql(
            desc = "Only conversations whose contact's and channel's names contain every word. Case and accents don't matter.",
            directive = bounds::apply(length(1, 200))
        )]
        search: Option<String>,
        #[graphql(
            desc = "What to sort by. Missing values come last.",
            default_with = "Some(ConversationSort::Activity)"
        )]
        sort: Option<ConversationSort>,
        #[graphql(desc = "The sort direction.", default_with = "Some(SortOrder::Desc)")] order: Option<
            SortOrder,
        >,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(50)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
        #[graphql(desc = "The number to skip.", default_with = "Some(0)", directive = bounds::apply(at_least(0)))]
        offset: Option<i64>,
    ) -> Answer<OffsetPage<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let filter =
                Filter { id, agent_id, contact_id, channel_id, transport, status, model, reference, search };
            let sort = sort.unwrap_or(ConversationSort::Activity);
            let rows = list::rows(&scope, filter, sort, order.unwrap_or(SortOrder::Desc));
            Ok(OffsetPage::at(rows, limit.unwrap_or(50), offset.unwrap_or(0)))
        })
        .await
    }

    /// An agent's conversations, most recent activity first. At most 1,000; `conversations` returns all of them
    /// in pages.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn agent_conversations(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
    ) -> Answer<List<Conversation>> {
        answer(async { Ok(List::first(of_agent(&ctx.enter(org_id).await?, agent_id), 1_000)) }).await
    }

    /// Conversations, with filters, in pages that do not shift. The latest activity comes first.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn conversation_feed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The start of the page: `next` of the previous page.", directive = bounds::apply(length(1, 10_000)))]
        after: Option<String>,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(50)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
        #[graphql(desc = "Only conversations with one of these statuses.", directive = bounds::apply(items(4)))]
        status: Option<Vec<ConversationStatus>>,
        #[graphql(desc = "Only conversations of this agent.")] agent_id: Option<AgentId>,
        #[graphql(desc = "Only conversations with this contact.")] contact_id: Option<ContactId>,
        #[graphql(desc = "Only conversations through this channel.")] channel_id: Option<ChannelId>,
        #[graphql(desc = "Only conversations whose last activity is at or after this time.")] from: Option<
            Timestamp,
        >,
        #[graphql(desc = "Only conversations whose last activity is before this time.")] to: Option<
            Timestamp,
        >,
        #[graphql(desc = "Only those that the caller has not read to the end.")] unread: Option<bool>,
        #[graphql(desc = "Only those that the caller started, watches, or has taken over.")] mine: Option<
            bool,
        >,
        #[graphql(desc = "Only those in which a person answers instead of the agent.")] taken_over: Option<
            bool,
        >,
        #[graphql(desc = "Only those whose agent waits for a decision.")] waiting: Option<bool>,
        #[graphql(desc = "Only those with a message that could not be delivered in the last seven days.")]
        undelivered: Option<bool>,
        #[graphql(
            desc = "Only conversations whose title, contact's and channel's names contain every word, or that have the word as short code. Case and accents don't matter.",
            directive = bounds::apply(length(1, 200))
        )]
        search: Option<String>,
        #[graphql(desc = "The direction: `desc` unless given.")] order: Option<SortOrder>,
    ) -> Answer<Feed<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let filter = FeedFilter {
                status,
                agent_id,
                contact_id,
                channel_id,
                from,
                to,
                unread,
                mine,
                taken_over,
                waiting,
                undelivered,
                search,
            };
            let rows = list::feed(&scope, &filter);
            Feed::after(rows, list::keys(order), after.as_deref(), limit.unwrap_or(50))
        })
        .await
    }

    /// One conversation.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn conversation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ConversationId,
    ) -> Answer<One<Conversation>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// One message.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn message(&self, ctx: &Context<'_>, org_id: OrgId, id: MessageId) -> Answer<One<Message>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// One attachment. Its bytes are at its `url`.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn attachment(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AttachmentId,
    ) -> Answer<One<Attachment>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// Messages of a conversation, oldest first: the newest ones, those before a seq, or those after a seq.
    /// `total` counts the whole conversation.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    #[expect(clippy::too_many_arguments, reason = "the parameters of operation 9")]
    async fn messages(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The conversation's agent. With another, the conversation is not found.")]
        agent_id: Option<AgentId>,
        conversation_id: ConversationId,
        #[graphql(
            desc = "Only the newest messages before this seq, a decimal integer.",
            directive = bounds::apply(at_least(0))
        )]
        before_seq: Option<i64>,
        #[graphql(
            desc = "Only the oldest messages after this seq, a decimal integer.",
            directive = bounds::apply(at_least(0))
        )]
        after_seq: Option<i64>,
        #[graphql(
            desc = "Only the messages around this seq, a decimal integer: half of them before it, where there are as many.",
            directive = bounds::apply(at_least(0))
        )]
        around_seq: Option<i64>,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(50)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
    ) -> Answer<Stretch<Message>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let cursor = Cursor::read(before_seq, after_seq, around_seq)?;
            let rows = page::rows(&scope, agent_id, conversation_id, cursor, limit.unwrap_or(50));
            Ok(Stretch::parts(rows, cursor.ends()))
        })
        .await
    }

    /// The messages of a conversation that contain every word of `q`, ignoring case and accents: the newest
    /// 1,000, oldest first. Searches the whole history.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn search_messages(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
        conversation_id: ConversationId,
        #[graphql(
            desc = "The words to find. There is no query syntax. Text without any word finds nothing.",
            directive = bounds::apply(length(0, 500))
        )]
        q: Option<String>,
    ) -> Answer<MessageSearch> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let data =
                search::find(&scope, agent_id, conversation_id, q.as_deref().unwrap_or_default()).await?;
            Ok(MessageSearch { total: data.len().cast_signed() as i64, data: Hits(data) })
        })
        .await
    }

    /// The messages of all conversations that contain every word of `q`, ignoring case and accents, newest first.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn find_messages(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(
            desc = "The words to find. There is no query syntax. Text without any word finds nothing.",
            directive = bounds::apply(length(0, 500))
        )]
        q: String,
        #[graphql(desc = "Only messages of this agent's conversations.")] agent_id: Option<AgentId>,
        #[graphql(desc = "The start of the page: `next` of the previous page.", directive = bounds::apply(length(1, 40)))]
        after: Option<String>,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(50)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
    ) -> Answer<MessagesFound> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            search::find_everywhere(&scope, agent_id, &q, after.as_deref(), limit.unwrap_or(50)).await
        })
        .await
    }
}

/// An agent's conversations, including those of a deleted agent, which are kept.
fn of_agent(scope: &Scope, agent: AgentId) -> Rows<Conversation> {
    Rows::of(scope)
        .parts_of(
            "agent",
            agent.0,
            "SELECT 1 FROM agents a WHERE a.organization_id = $1 AND a.id = ?",
            [agent.0.into()],
        )
        .filter("t.agent_id = ?", [agent.0.into()])
        .order_by("t.last_activity_at DESC, t.id DESC")
}
