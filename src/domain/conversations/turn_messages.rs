//! Conversations as turns need them: the session, and the messages to the agent with their state.

use sea_orm::{ColumnTrait, Condition, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use super::{
    entity::{attachment_blobs, attachments, conversations, messages},
    queries,
    rows::{announce, load},
    tokenizer::text_of,
};
use crate::{
    base::{
        enums::{ChangeOp, ConversationStatus, MessageRole, MessageStatus, RecordKind},
        ids::{AgentId, AttachmentId, ChannelId, ConversationId, MessageId, TurnId},
        problem::{Problem, Result},
    },
    core::{Event, store::Tx},
};

/// The part of a conversation that turns need.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The position of its last message.
    pub last_seq: i64,
    /// The agent's name for its session.
    pub session: Option<String>,
    /// Whether a person answers instead of the agent.
    pub is_taken_over: bool,
    pub is_archived: bool,
    /// None for a conversation in the panel.
    pub channel: Option<ChannelId>,
}

/// A message to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptMessage {
    pub message: MessageId,
    pub seq: i64,
    pub author: Option<String>,
    /// The address of a mail's sender.
    pub address: Option<String>,
    /// The text as people read it.
    pub text: String,
    /// Whether the sender of a mail is not proven.
    pub is_unproven: bool,
    pub files: Vec<PromptFile>,
}

/// A file of a message to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptFile {
    pub id: AttachmentId,
    pub filename: String,
    pub mime_type: String,
    /// The size.
    pub bytes: usize,
    /// None until it is loaded.
    pub content: Option<Vec<u8>>,
}

/// The conversation's agent, which never changes. Locks nothing.
pub async fn agent_of(tx: &Tx, id: ConversationId) -> Result<AgentId> {
    let found = tx.scope.find::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    let found = found.one(tx.connection()).await?;
    Ok(found.ok_or_else(|| Problem::not_found("conversation", id))?.agent_id)
}

/// Fails unless this is the conversation's agent.
pub async fn require_agent(tx: &Tx, id: ConversationId, agent: AgentId) -> Result<()> {
    if agent_of(tx, id).await? == agent { Ok(()) } else { Err(Problem::not_found("conversation", id)) }
}

/// Loads the conversation and locks it until the transaction ends.
pub async fn load_thread(tx: &Tx, id: ConversationId) -> Result<Thread> {
    let conversation = load(tx, id).await?;
    Ok(Thread {
        last_seq: conversation.last_seq,
        session: conversation.session,
        is_taken_over: conversation.taken_over_by.is_some(),
        is_archived: conversation.status == ConversationStatus::Archived,
        channel: conversation.channel_id,
    })
}

/// Stores the agent's name for the conversation's session. Without one, the next turn starts a new session.
pub async fn remember_session(tx: &Tx, id: ConversationId, session: Option<String>) -> Result<()> {
    let changed = tx.scope.update::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    changed.col_expr(conversations::Column::Session, Expr::value(session)).exec(tx.connection()).await?;
    Ok(())
}

/// Forgets the sessions of an agent that moves to another server or image, where they don't exist.
pub async fn forget_sessions(tx: &Tx, agent: AgentId) -> Result<()> {
    let changed = tx.scope.update::<conversations::Entity>();
    let changed = changed.filter(conversations::Column::AgentId.eq(agent));
    let changed = changed.filter(conversations::Column::Session.is_not_null());
    changed
        .col_expr(conversations::Column::Session, Expr::value(None::<String>))
        .exec(tx.connection())
        .await?;
    Ok(())
}

/// Records the last model used, and the tokens in the session's context. None keeps the value.
pub async fn record_measurement(
    tx: &Tx,
    id: ConversationId,
    model: Option<String>,
    context_tokens: Option<i64>,
) -> Result<()> {
    if model.is_none() && context_tokens.is_none() {
        return Ok(());
    }
    let mut changed = tx.scope.update::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    changed = changed.col_expr(conversations::Column::UpdatedAt, Expr::value(tx.now));
    if let Some(model) = model {
        changed = changed.col_expr(conversations::Column::Model, Expr::value(model));
    }
    if let Some(tokens) = context_tokens {
        changed = changed.col_expr(conversations::Column::ContextTokens, Expr::value(tokens));
    }
    changed.exec(tx.connection()).await?;
    let agent = agent_of(tx, id).await?;
    announce(tx, agent, id);
    Ok(())
}

/// The messages that a turn gives to the agent: those to it, and a person's answers in its place.
fn for_agent() -> Condition {
    Condition::any().add(messages::Column::Role.eq(MessageRole::User)).add(written_by_person())
}

fn written_by_person() -> Condition {
    Condition::all()
        .add(messages::Column::Role.eq(MessageRole::Assistant))
        .add(messages::Column::AuthorUserId.is_not_null())
}

/// Marks a person's answer in the agent's place, which is not a message to it.
fn mark_in_place(role: MessageRole, text: String) -> String {
    if role == MessageRole::Assistant { format!("(said in your place) {text}") } else { text }
}

/// A mail's text below its subject, unless the text repeats the subject.
fn under_subject(content: &serde_json::Value, text: String) -> String {
    match content["subject"].as_str() {
        Some(subject) if subject == text => format!("Subject: {subject}"),
        Some(subject) => format!("Subject: {subject}\n\n{text}"),
        None => text,
    }
}

/// The turn's messages for the agent up to `through`, oldest first. Files come without their bytes.
pub async fn load_messages_for_agent(tx: &Tx, turn: TurnId, through: i64) -> Result<Vec<PromptMessage>> {
    let found = tx
        .scope
        .find::<messages::Entity>()
        .filter(messages::Column::TurnId.eq(turn))
        .filter(for_agent())
        .filter(messages::Column::Seq.lte(through))
        .order_by_asc(messages::Column::Seq);
    let found = found.all(tx.connection()).await?;
    let files = tx.scope.find::<attachments::Entity>();
    let files = files.filter(attachments::Column::MessageId.is_in(found.iter().map(|message| message.id)));
    let files = files.order_by_asc(attachments::Column::Position).order_by_asc(attachments::Column::Id);
    let files = files.all(tx.connection()).await?;
    let mails = found.iter().filter(|message| message.via_identity_id.is_some()).map(|message| message.id.0);
    let addresses = queries::sender_addresses(tx, mails.collect()).await?;
    let mut said: Vec<PromptMessage> = found
        .into_iter()
        .map(|message| PromptMessage {
            message: message.id,
            seq: message.seq,
            author: message.author_name,
            address: addresses.get(&message.id).cloned(),
            text: mark_in_place(
                message.role,
                under_subject(&message.content, text_of(message.kind, &message.content)),
            ),
            is_unproven: message.unproven,
            files: Vec::new(),
        })
        .collect();
    for file in files {
        if let Some(said) = said.iter_mut().find(|said| Some(said.message) == file.message_id) {
            let (id, filename, mime_type) = (file.id, file.filename, file.mime_type);
            let bytes = usize::try_from(file.size_bytes).unwrap_or(usize::MAX);
            said.files.push(PromptFile { id, filename, mime_type, bytes, content: None });
        }
    }
    Ok(said)
}

/// Whether several people write in a conversation: in the turn's messages, or before its last one.
pub async fn is_shared(tx: &Tx, conversation: ConversationId, said: &[PromptMessage]) -> Result<bool> {
    let mut named = said.iter().filter(|said| said.author.is_some());
    let Some(last) = named.next_back() else { return Ok(false) };
    let is_other = |said: &PromptMessage| said.author != last.author || said.address != last.address;
    Ok(named.any(is_other) || queries::has_another_author(tx, conversation, last.message).await?)
}

/// Loads the bytes of these files into the messages.
pub async fn load_files(tx: &Tx, said: &mut [PromptMessage], ids: &[AttachmentId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let blobs = tx.scope.find::<attachment_blobs::Entity>();
    let blobs = blobs.filter(attachment_blobs::Column::AttachmentId.is_in(ids.iter().copied()));
    for blob in blobs.all(tx.connection()).await? {
        let file = said.iter_mut().flat_map(|said| &mut said.files);
        if let Some(file) = file.into_iter().find(|file| file.id == blob.attachment_id) {
            file.content = Some(blob.content);
        }
    }
    Ok(())
}

/// Sets the status of the turn's pending messages to the agent.
pub async fn settle_messages(
    tx: &Tx,
    conversation: ConversationId,
    turn: TurnId,
    status: MessageStatus,
) -> Result<()> {
    let waiting = tx.scope.update::<messages::Entity>().filter(messages::Column::TurnId.eq(turn));
    let waiting = waiting
        .filter(messages::Column::Role.eq(MessageRole::User))
        .filter(messages::Column::Status.eq(MessageStatus::Pending));
    let settled = waiting.col_expr(messages::Column::Status, Expr::value(status.as_str()));
    for message in settled.exec_with_returning(tx.connection()).await? {
        announce_changed(tx, conversation, message.id);
    }
    Ok(())
}

/// Moves a turn's messages for the agent up to `through` to another turn. Returns how many.
pub async fn move_messages(tx: &Tx, from: TurnId, to: TurnId, through: i64) -> Result<u64> {
    let moved = tx.scope.update::<messages::Entity>().filter(messages::Column::TurnId.eq(from));
    let moved = moved.filter(for_agent()).filter(messages::Column::Seq.lte(through));
    let moved = moved.col_expr(messages::Column::TurnId, Expr::value(to)).exec(tx.connection()).await?;
    Ok(moved.rows_affected)
}

/// Moves the messages of a failed turn to the turn that retries it. Those that did not reach the agent are pending again.
pub async fn resend_messages(tx: &Tx, conversation: ConversationId, from: TurnId, to: TurnId) -> Result<()> {
    let failed = tx.scope.update::<messages::Entity>().filter(messages::Column::TurnId.eq(from));
    let failed = failed
        .filter(messages::Column::Role.eq(MessageRole::User))
        .filter(messages::Column::Status.eq(MessageStatus::Failed))
        .col_expr(messages::Column::Status, Expr::value(MessageStatus::Pending.as_str()));
    failed.exec(tx.connection()).await?;
    let moved = tx.scope.update::<messages::Entity>().filter(messages::Column::TurnId.eq(from));
    let moved = moved.filter(for_agent()).col_expr(messages::Column::TurnId, Expr::value(to));
    for message in moved.exec_with_returning(tx.connection()).await? {
        announce_changed(tx, conversation, message.id);
    }
    Ok(())
}

/// A person's answers in the agent's place in this turn, and their positions, oldest first.
pub async fn load_messages_by_person(tx: &Tx, turn: TurnId) -> Result<Vec<(MessageId, i64)>> {
    let found = tx.scope.find::<messages::Entity>().filter(messages::Column::TurnId.eq(turn));
    let found = found.filter(written_by_person()).order_by_asc(messages::Column::Seq).select_only();
    let found = found.column(messages::Column::Id).column(messages::Column::Seq);
    Ok(found.into_tuple().all(tx.connection()).await?)
}

/// Makes a message part of a turn. Returns its conversation and position.
pub async fn assign_to_turn(tx: &Tx, message: MessageId, turn: TurnId) -> Result<(ConversationId, i64)> {
    let found = tx.scope.update::<messages::Entity>().filter(messages::Column::Id.eq(message));
    let found = found.col_expr(messages::Column::TurnId, Expr::value(turn));
    let found = found.exec_with_returning(tx.connection()).await?;
    let found = found.first().ok_or_else(|| Problem::not_found("message", message))?;
    Ok((found.conversation_id, found.seq))
}

/// Records that a message has reached the agent.
pub async fn mark_delivered(tx: &Tx, message: MessageId) -> Result<()> {
    let found = tx.scope.update::<messages::Entity>().filter(messages::Column::Id.eq(message));
    let found = found.col_expr(messages::Column::Status, Expr::value(MessageStatus::Delivered.as_str()));
    for message in found.exec_with_returning(tx.connection()).await? {
        announce_changed(tx, message.conversation_id, message.id);
    }
    Ok(())
}

pub(super) fn announce_changed(tx: &Tx, conversation: ConversationId, id: MessageId) {
    tx.announce(
        Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Message, id).with_parent(conversation),
    );
}
