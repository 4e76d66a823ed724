//! Reading conversations.

use async_graphql::{Context, Object};

use super::{Attachment, Conversation, Hits, Message, MessageSearch};
use crate::{
    base::{
        enums::{ConversationSort, ConversationStatus, SortOrder},
        ids::{AgentId, AttachmentId, ChannelId, ContactId, ConversationId, OrgId},
        permission::Permission,
    },
    core::access::Scope,
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, digits, from, length, range},
        permit::permit,
    },
    read::{Counted, List, OffsetPage, One, Rows},
    slices::conversations::{
        list::{self, Filter},
        page::{self, Cursor},
        search,
    },
};

/// How many records a page holds if nobody says. The arguments with defaults may be null as well: a variable that is not
/// given counts as null here.
const PAGE: i64 = 50;

/// Reading conversations.
#[derive(Default)]
pub struct ConversationQuery;

#[Object]
impl ConversationQuery {
    /// The organization's conversations: of all agents, filtered, sorted.
    #[graphql(directive = permit::apply(Permission::ConversationView))]
    #[expect(clippy::too_many_arguments, reason = "the filters of operation 11")]
    async fn conversations(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Exactly this one.")] id: Option<ConversationId>,
        #[graphql(desc = "Those of an agent.")] agent_id: Option<AgentId>,
        #[graphql(desc = "Those with a contact.")] contact_id: Option<ContactId>,
        #[graphql(desc = "Those through a channel.")] channel_id: Option<ChannelId>,
        #[graphql(desc = "Those over a transport.", directive = bounds::apply(length(1, 32)))]
        transport: Option<String>,
        #[graphql(desc = "Those in a state.")] status: Option<ConversationStatus>,
        #[graphql(desc = "Those whose model was last this one.", directive = bounds::apply(length(1, 120)))]
        model: Option<String>,
        #[graphql(
            name = "ref",
            desc = "The one with this reference, in upper or lower case.",
            directive = bounds::apply(length(1, 40))
        )]
        reference: Option<String>,
        #[graphql(
            desc = "Those whose contact's and channel's names hold every word, in upper or lower case.",
            directive = bounds::apply(length(1, 200))
        )]
        search: Option<String>,
        #[graphql(
            desc = "The order; missing values come last.",
            default_with = "Some(ConversationSort::Activity)"
        )]
        sort: Option<ConversationSort>,
        #[graphql(desc = "Its direction.", default_with = "Some(SortOrder::Desc)")] order: Option<SortOrder>,
        #[graphql(desc = "How many.", default_with = "Some(PAGE)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
        #[graphql(desc = "How many are skipped.", default_with = "Some(0)", directive = bounds::apply(from(0)))]
        offset: Option<i64>,
    ) -> Answer<OffsetPage<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let filter =
                Filter { id, agent_id, contact_id, channel_id, transport, status, model, reference, search };
            let sort = sort.unwrap_or(ConversationSort::Activity);
            let rows = list::rows(&scope, filter, sort, order.unwrap_or(SortOrder::Desc));
            Ok(OffsetPage::at(rows, limit.unwrap_or(PAGE), offset.unwrap_or(0)))
        })
        .await
    }

    /// An agent's conversations, those with the newest activity first. At most 1,000; `conversations` has them all, in pages.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn agent_conversations(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
    ) -> Answer<List<Conversation>> {
        answer(async { Ok(List::first(of_agent(&ctx.enter(org_id).await?, agent_id), 1_000)) }).await
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

    /// One attachment; its bytes are at its `url`.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn attachment(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AttachmentId,
    ) -> Answer<One<Attachment>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// Messages of a conversation, oldest first: the newest ones, those before a seq, or those after one. `total` counts
    /// the whole conversation.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    #[expect(clippy::too_many_arguments, reason = "the parameters of operation 9")]
    async fn messages(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
        conversation_id: ConversationId,
        #[graphql(
            desc = "Only messages before this seq, the newest of them: a decimal integer.",
            directive = bounds::apply(digits(40))
        )]
        before_seq: Option<String>,
        #[graphql(
            desc = "Only messages after this seq, the oldest of them: a decimal integer.",
            directive = bounds::apply(digits(40))
        )]
        after_seq: Option<String>,
        #[graphql(desc = "How many.", default_with = "Some(PAGE)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
    ) -> Answer<Counted<Message>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let cursor = Cursor::read(before_seq.as_deref(), after_seq.as_deref())?;
            Ok(Counted::parts(page::rows(&scope, agent_id, conversation_id, cursor, limit.unwrap_or(PAGE))))
        })
        .await
    }

    /// The messages of a conversation that hold every word of `q`, in whatever case and with or without accents: the newest
    /// thousand, oldest first. The whole history is searched.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn search_messages(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
        conversation_id: ConversationId,
        #[graphql(
            desc = "The words. It is text and no query language; without a word nothing is found.",
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
}

/// An agent's conversations; also those of an agent that was deleted, which are kept.
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
