//! Mutations and subscriptions for conversations.

use async_graphql::{Context, InputObject, MaybeUndefined, Object, Subscription};
use base64::Engine;
use futures::{Stream, StreamExt};

use super::{Attachment, Conversation, Message};
use crate::{
    base::{
        enums::{ConversationStatus, RecordKind, TextFormat},
        ids::{AgentId, AttachmentId, ConversationId, OrgId},
        permission::Permission,
        problem::{Problem, Result},
    },
    core::access::Scope,
    domain::conversations::{self, ConversationEdit, NewConversation, Post, Upload},
    read::One,
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, free_text, items, length, name, not_null},
        permit::permit,
        subscribe_to_kind,
    },
};

/// A conversation to start from the panel.
#[derive(InputObject)]
pub struct StartConversationInput {
    /// The agent.
    pub agent_id: AgentId,
    /// The subject.
    #[graphql(directive = bounds::apply(name(200)))]
    pub title: Option<String>,
    /// The first message. Without one, the agent isn't contacted yet.
    #[graphql(directive = bounds::apply(free_text(65_536)))]
    pub text: Option<String>,
}

/// A message from the panel.
#[derive(InputObject)]
pub struct PostMessageInput {
    /// The text.
    #[graphql(directive = bounds::apply(free_text(65_536)))]
    pub text: String,
    /// The format of the text. Defaults to markdown.
    pub format: Option<TextFormat>,
    /// Files the caller has uploaded, at most 20.
    #[graphql(directive = bounds::apply(items(20)))]
    pub attachment_ids: Option<Vec<AttachmentId>>,
}

/// Changes to a conversation. Fields left out keep their value; null clears an optional field.
#[derive(InputObject)]
pub struct UpdateConversationInput {
    /// The new status: OPEN, RESOLVED, or ARCHIVED. PENDING can't be set.
    #[graphql(directive = bounds::apply(not_null()))]
    pub status: MaybeUndefined<ConversationStatus>,
    /// The subject.
    #[graphql(directive = bounds::apply(name(200)))]
    pub title: MaybeUndefined<String>,
}

/// A file to post with a message.
#[derive(InputObject)]
pub struct UploadAttachmentInput {
    /// Its name.
    #[graphql(directive = bounds::apply(length(1, 255)))]
    pub filename: String,
    /// Its media type. Defaults to `application/octet-stream`.
    #[graphql(directive = bounds::apply(length(1, 255)))]
    pub mime_type: Option<String>,
    /// The content in base64.
    pub content_base64: String,
}

#[derive(Default)]
pub struct ConversationMutation;

#[Object]
impl ConversationMutation {
    /// Starts a conversation with an agent from the panel.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn start_conversation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: StartConversationInput,
    ) -> Answer<One<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let new = NewConversation { agent: input.agent_id, title: input.title, text: input.text };
            let id = conversations::start(&scope, new).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Posts a message to a conversation. The agent gets a turn, unless the caller has taken the conversation over:
    /// then the message is sent in the agent's place.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn post_message(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        conversation_id: ConversationId,
        input: PostMessageInput,
    ) -> Answer<One<Message>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let post = Post {
                text: input.text,
                format: input.format.unwrap_or(TextFormat::Markdown),
                attachments: input.attachment_ids.unwrap_or_default(),
            };
            let id = conversations::post(&scope, conversation_id, post).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Starts answering instead of the agent: its turn is cancelled, none starts. Ends by itself 60 minutes after the last
    /// word.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn take_over_conversation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ConversationId,
    ) -> Answer<One<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            conversations::take_over(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Lets the agent answer again. Its next turn contains all messages since the takeover.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn hand_back_conversation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ConversationId,
    ) -> Answer<One<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            conversations::hand_back(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Records that the caller has read a conversation up to this seq. It never moves back.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn mark_read(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        conversation_id: ConversationId,
        #[graphql(desc = "The seq of the last message that was read.", directive = bounds::apply(at_least(0)))]
        seq: i64,
    ) -> Answer<One<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            conversations::mark_read(&scope, conversation_id, seq).await?;
            Ok(One::by_id(&scope, conversation_id))
        })
        .await
    }

    /// Edits a conversation: resolves, reopens, archives, or renames it.
    #[graphql(directive = permit::apply(Permission::ConversationEdit))]
    async fn update_conversation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ConversationId,
        input: UpdateConversationInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edit = ConversationEdit { status: input.status, title: input.title };
            let edited = scope.if_revision(RecordKind::Conversation, id, if_revision);
            let done = conversations::update(&edited, id, edit).await;
            One::after(&scope, id, Permission::AgentOutputView, done)
        })
        .await
    }

    /// Sets whether the caller is notified of approvals in a conversation. Members who start one are, until they change it. For
    /// people only.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn watch_conversation(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ConversationId,
        watch: bool,
    ) -> Answer<One<Conversation>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            conversations::watch(&scope, id, watch).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Uploads a small file, to be posted with a message. If the file is too large for a GraphQL request, send
    /// its bytes to `POST /v1/org/{org_id}/attachment?filename=…` instead.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn upload_attachment(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: UploadAttachmentInput,
    ) -> Answer<One<Attachment>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let content = base64::engine::general_purpose::STANDARD.decode(input.content_base64);
            let content = content.map_err(|_| {
                Problem::invalid_at("/content_base64", "WRONG_TYPE", "`content_base64` is not valid base64.")
            })?;
            let upload = Upload { filename: input.filename, mime_type: input.mime_type, content };
            let taken = conversations::upload(&scope, upload).await?;
            Ok(One::by_id(&scope, taken.id))
        })
        .await
    }
}

#[derive(Default)]
pub struct ConversationSubscription;

#[Subscription]
impl ConversationSubscription {
    /// Sends a conversation's record each time one begins or changes. Without `agentId`, sends those of every
    /// agent.
    #[graphql(directive = permit::apply(Permission::ConversationView))]
    async fn conversation_changed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Only conversations of this agent.")] agent_id: Option<AgentId>,
    ) -> Result<impl Stream<Item = Result<One<Conversation>>> + use<>> {
        changed(&ctx.enter(org_id).await?, Permission::ConversationView, agent_id)
    }

    /// Sends the record of an agent's conversation each time one begins or changes.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn agent_conversation_changed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
    ) -> Result<impl Stream<Item = Result<One<Conversation>>> + use<>> {
        changed(&ctx.enter(org_id).await?, Permission::AgentOutputView, Some(agent_id))
    }

    /// Sends each message that is added to a conversation or changes in it.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn message_added(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        conversation_id: ConversationId,
    ) -> Result<impl Stream<Item = Result<One<Message>>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        conversations::require(&scope, conversation_id).await?;
        let changes =
            subscribe_to_kind(&scope, Permission::AgentOutputView, RecordKind::Message, move |event| {
                event.of == Some(conversation_id.0)
            })?;
        Ok(changes.map(|change| change.map(|(scope, id)| One::by_id(&scope, id))))
    }
}

/// Conversations that change, of one agent or of all.
fn changed(
    scope: &Scope,
    permission: Permission,
    agent: Option<AgentId>,
) -> Result<impl Stream<Item = Result<One<Conversation>>> + use<>> {
    let changes = subscribe_to_kind(scope, permission, RecordKind::Conversation, move |event| {
        agent.is_none_or(|agent| event.of == Some(agent.0))
    })?;
    Ok(changes.map(|change| change.map(|(scope, id)| One::by_id(&scope, id))))
}
