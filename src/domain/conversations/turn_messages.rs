//! What turns need of a conversation: its session, its messages to the agent, and how far those have come.

use sea_orm::{ColumnTrait, Condition, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use super::{
    entity::{attachment_blobs, attachments, conversations, messages},
    queries,
    rows::{announce, load},
    tokenizer::text_of,
};
use crate::{
    base::{
        enums::{ChangeOp, MessageRole, MessageStatus, RecordKind},
        ids::{AgentId, AttachmentId, ChannelId, ConversationId, MessageId, TurnId},
        problem::{Problem, Result},
    },
    core::{Event, store::Tx},
};

/// A conversation, as turns see it.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its last message.
    pub last_seq: i64,
    /// The agent's name for its session.
    pub session: Option<String>,
    /// Whether a person answers instead of the agent.
    pub is_taken_over: bool,
    /// The channel that people write through.
    pub channel: Option<ChannelId>,
}

/// A message to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The message.
    pub message: MessageId,
    /// Its position in the conversation.
    pub seq: i64,
    /// Who wrote it.
    pub author: Option<String>,
    /// The address that a mail came from.
    pub address: Option<String>,
    /// What people read.
    pub text: String,
    /// Whether anybody could have written it in its author's name.
    pub is_unproven: bool,
    /// The attached files.
    pub files: Vec<SaidFile>,
}

/// A file of a message to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidFile {
    /// Identifies it.
    pub id: AttachmentId,
    /// Its name.
    pub filename: String,
    /// Its type.
    pub mime_type: String,
    /// Its size.
    pub bytes: usize,
    /// Its bytes, once they are loaded.
    pub content: Option<Vec<u8>>,
}

/// The agent that the conversation is with. Locks nothing: it never changes.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn agent_of(tx: &Tx, id: ConversationId) -> Result<AgentId> {
    let found = tx.scope.find::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    let found = found.one(tx.connection()).await?;
    Ok(found.ok_or_else(|| Problem::not_found("conversation", id))?.agent_id)
}

/// Fails unless the conversation is with this agent.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn require_of(tx: &Tx, id: ConversationId, agent: AgentId) -> Result<()> {
    if agent_of(tx, id).await? == agent { Ok(()) } else { Err(Problem::not_found("conversation", id)) }
}

/// The conversation, locked until the transaction ends.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn thread(tx: &Tx, id: ConversationId) -> Result<Thread> {
    let conversation = load(tx, id).await?;
    Ok(Thread {
        last_seq: conversation.last_seq,
        session: conversation.session,
        is_taken_over: conversation.taken_over_by.is_some(),
        channel: conversation.channel_id,
    })
}

/// Keeps the agent's name for the conversation's session. Without one, the next turn begins a new session.
pub async fn remember_session(tx: &Tx, id: ConversationId, session: Option<String>) -> Result<()> {
    let changed = tx.scope.update::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    changed.col_expr(conversations::Column::Session, Expr::value(session)).exec(tx.connection()).await?;
    Ok(())
}

/// Forgets the sessions of an agent that moves to another server or image, where no one knows them.
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

/// Records the model that was used last, and how full the session is. What is not known stays.
pub async fn measured(
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

/// What a turn tells the agent: messages to it, and what a person said in its place.
fn for_agent() -> Condition {
    Condition::any().add(messages::Column::Role.eq(MessageRole::User)).add(in_its_place())
}

fn in_its_place() -> Condition {
    Condition::all()
        .add(messages::Column::Role.eq(MessageRole::Assistant))
        .add(messages::Column::AuthorUserId.is_not_null())
}

/// A text as the agent is told: what a person said in its place is not a message to it.
fn in_place(role: MessageRole, text: String) -> String {
    if role == MessageRole::Assistant { format!("(said in your place) {text}") } else { text }
}

/// A mail's text below its subject, unless the subject is all that it says.
fn under_subject(content: &serde_json::Value, text: String) -> String {
    match content["subject"].as_str() {
        Some(subject) if subject == text => format!("Subject: {subject}"),
        Some(subject) => format!("Subject: {subject}\n\n{text}"),
        None => text,
    }
}

/// The messages to the agent that belong to this turn, up to `through`, oldest first. Files come without their bytes.
pub async fn said(tx: &Tx, turn: TurnId, through: i64) -> Result<Vec<Said>> {
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
    let addresses = queries::addresses(tx, mails.collect()).await?;
    let mut said: Vec<Said> = found
        .into_iter()
        .map(|message| Said {
            message: message.id,
            seq: message.seq,
            author: message.author_name,
            address: addresses.get(&message.id).cloned(),
            text: in_place(
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
            said.files.push(SaidFile { id, filename, mime_type, bytes, content: None });
        }
    }
    Ok(said)
}

/// Whether several people write in a conversation: in the messages of a turn, or one of them and another before.
pub async fn is_shared(tx: &Tx, conversation: ConversationId, said: &[Said]) -> Result<bool> {
    let mut named = said.iter().filter(|said| said.author.is_some());
    let Some(last) = named.next_back() else { return Ok(false) };
    let is_other = |said: &Said| said.author != last.author || said.address != last.address;
    Ok(named.any(is_other) || queries::has_another_author(tx, conversation, last.message).await?)
}

/// Loads the bytes of these files.
pub async fn load_files(tx: &Tx, said: &mut [Said], ids: &[AttachmentId]) -> Result<()> {
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

/// Records what became of the turn's messages to the agent.
pub async fn settle(
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

/// Gives the messages to the agent of one turn, up to `through`, to another. Returns how many.
pub async fn hand_on(tx: &Tx, from: TurnId, to: TurnId, through: i64) -> Result<u64> {
    let moved = tx.scope.update::<messages::Entity>().filter(messages::Column::TurnId.eq(from));
    let moved = moved.filter(for_agent()).filter(messages::Column::Seq.lte(through));
    let moved = moved.col_expr(messages::Column::TurnId, Expr::value(to)).exec(tx.connection()).await?;
    Ok(moved.rows_affected)
}

/// What a person said in the agent's place in this turn: the messages and their places, oldest first.
pub async fn said_in_its_place(tx: &Tx, turn: TurnId) -> Result<Vec<(MessageId, i64)>> {
    let found = tx.scope.find::<messages::Entity>().filter(messages::Column::TurnId.eq(turn));
    let found = found.filter(in_its_place()).order_by_asc(messages::Column::Seq).select_only();
    let found = found.column(messages::Column::Id).column(messages::Column::Seq);
    Ok(found.into_tuple().all(tx.connection()).await?)
}

/// Makes a message part of a turn. Returns its place.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn assign(tx: &Tx, message: MessageId, turn: TurnId) -> Result<(ConversationId, i64)> {
    let found = tx.scope.update::<messages::Entity>().filter(messages::Column::Id.eq(message));
    let found = found.col_expr(messages::Column::TurnId, Expr::value(turn));
    let found = found.exec_with_returning(tx.connection()).await?;
    let found = found.first().ok_or_else(|| Problem::not_found("message", message))?;
    Ok((found.conversation_id, found.seq))
}

/// Records that a message has reached the agent.
pub async fn deliver(tx: &Tx, message: MessageId) -> Result<()> {
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
