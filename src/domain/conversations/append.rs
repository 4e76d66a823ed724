//! The only code that adds messages or changes their content, always in the caller's transaction. First, for each
//! conversation: positions, the turn, the summary. Then for all messages together: rows, and words in the search index.
//! Events follow the commit.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
};

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, NotSet, QueryFilter, QueryTrait, Set,
    sea_query::{Expr, Query},
};
use serde_json::{Value as Json, json};

use super::{
    entity::{conversations, messages},
    rows::{awaiting_or, load},
    search_queries::{Words, delete_words, insert_words},
    state::StatusEvent,
    title::{self, title_of},
    tokenizer::{place_tokens, text_of, tokens},
    turn_messages::announce_changed,
    turns,
};
use crate::{
    base::{
        bounds,
        enums::{ConversationStatus, DeliveryStatus, MessageKind, MessageRole, MessageStatus, TextFormat},
        folding,
        ids::{AgentId, ChannelId, ConversationId, IdentityId, MessageId, TurnId, UserId},
        plain::is_control_or_bidi,
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{agents::LockedAgent, channels},
};

/// The length of a message's preview, in characters.
const PREVIEW: usize = 160;

/// The bytes that a message takes besides its content: its row, its turn, its words in the index. Without it, senders
/// could fill the disk with short messages that no plan counts.
pub(super) const MESSAGE_OVERHEAD: i64 = 512;

/// A message's delivery through a channel.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub status: DeliveryStatus,
    pub attempts: i64,
    /// The failure of the last attempt.
    pub error: Option<String>,
    /// When the vendor accepted it.
    pub sent_at: Option<Timestamp>,
}

/// Messages to the people on the other side of a channel were added.
#[derive(Debug)]
pub struct OutgoingAdded {
    pub channel: ChannelId,
    pub conversation: ConversationId,
    /// PENDING, or SKIPPED if they are not sent.
    pub status: DeliveryStatus,
    pub messages: Vec<Outgoing>,
}

impl DomainEvent for OutgoingAdded {}

/// Messages of people and agents were added: texts, files and voice messages.
#[derive(Debug)]
pub struct Added {
    pub messages: Vec<AddedMessage>,
}

impl DomainEvent for Added {}

/// A message that was added.
#[derive(Clone, Copy, Debug)]
pub struct AddedMessage {
    pub agent: AgentId,
    pub conversation: ConversationId,
    pub id: MessageId,
    pub seq: i64,
}

/// A message to the people on the other side of a channel.
#[derive(Debug)]
pub struct Outgoing {
    pub id: MessageId,
    /// An action at the vendor, instead of a message.
    pub action: Option<String>,
    /// May be empty if there are files. The arguments of an action.
    pub text: String,
    pub format: TextFormat,
    /// The number of attached files.
    pub files: usize,
}

/// An action at the vendor of a conversation's channel.
#[derive(Clone, Debug)]
pub struct VendorAction {
    pub name: String,
    /// As JSON.
    pub arguments: String,
}

/// A message to add.
#[derive(Clone, Debug)]
pub struct NewMessage<'a> {
    pub conversation: ConversationId,
    /// A USER's message counts as inbound.
    pub role: MessageRole,
    pub kind: MessageKind,
    /// An object whose shape depends on the kind.
    pub content: serde_json::Value,
    /// The member who wrote it, if any.
    pub author_user: Option<UserId>,
    pub author_name: Option<String>,
    /// The channel it arrived or is sent through.
    pub via_channel: Option<ChannelId>,
    /// The address on that channel.
    pub via_identity: Option<IdentityId>,
    /// Unique in its channel: messages with the same key are the same message.
    pub dedupe_key: Option<String>,
    /// For an incoming message.
    pub vendor_id: Option<String>,
    /// The vendor's id of the album that it is a part of.
    pub album: Option<String>,
    /// Whether the sender of an incoming message is not proven.
    pub is_unproven: bool,
    pub status: MessageStatus,
    /// None if it is not sent through a channel.
    pub delivery: Option<Delivery>,
    /// When it was written. Defaults to now.
    pub created_at: Option<Timestamp>,
    /// The turn that it belongs to.
    pub turn: Option<TurnId>,
    /// The cause of its turn. Such a message joins the queued turn or creates one.
    pub cause: Option<(turns::Cause, &'a LockedAgent)>,
    /// The host's key, unique in the conversation.
    pub host_key: Option<String>,
    /// The number of files attached in the same transaction.
    pub files: usize,
    /// The action that the message shows.
    pub action: Option<VendorAction>,
    /// Whether a USER's message reopens the conversation. If not, even an archived conversation accepts it.
    pub reopens: bool,
}

impl NewMessage<'_> {
    /// A message without an author or a delivery.
    #[must_use]
    pub fn new(
        conversation: ConversationId,
        role: MessageRole,
        kind: MessageKind,
        content: serde_json::Value,
    ) -> Self {
        Self {
            conversation,
            role,
            kind,
            content,
            author_user: None,
            author_name: None,
            via_channel: None,
            via_identity: None,
            dedupe_key: None,
            vendor_id: None,
            album: None,
            is_unproven: false,
            status: MessageStatus::Delivered,
            delivery: None,
            created_at: None,
            turn: None,
            cause: None,
            host_key: None,
            files: 0,
            action: None,
            reopens: true,
        }
    }
}

/// Appends a message to its conversation. An inbound one reopens a resolved conversation.
///
/// # Errors
/// `NOT_FOUND`; `ARCHIVED` for an inbound message to an archived conversation: it must start a new one.
pub async fn append(tx: &Tx, new: NewMessage<'_>) -> Result<MessageId> {
    Ok(append_with_seq(tx, new).await?.0)
}

/// Like [`append`]. Also returns the message's position in the conversation.
pub async fn append_with_seq(tx: &Tx, new: NewMessage<'_>) -> Result<(MessageId, i64)> {
    let conversation = load(tx, new.conversation).await?;
    let added = append_all(tx, &[conversation], vec![new]).await?;
    added.into_iter().next().ok_or_else(|| Problem::internal(anyhow::anyhow!("a message without a row")))
}

/// Appends messages to `conversations`, which must be locked, in this order. Rows and words take one statement each for
/// any number of messages; each conversation takes a few. Returns ids and positions, in the same order.
///
/// # Errors
/// See [`append`].
pub(super) async fn append_all(
    tx: &Tx,
    conversations: &[conversations::Model],
    new: Vec<NewMessage<'_>>,
) -> Result<Vec<(MessageId, i64)>> {
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let mut placed = assign_positions(tx, conversations, new)?;
    let mut sent = Vec::new();
    for conversation in conversations {
        let own = placed.iter_mut().filter(|message| message.new.conversation == conversation.id);
        let mut own: Vec<_> = own.collect();
        let status = awaiting_or(tx, conversation, status_after(conversation.status, &own)?).await?;
        join_turns(tx, conversation, &mut own).await?;
        sent.extend(mark_outgoing(tx, conversation, &mut own).await?);
        summarize(tx, conversation, &own, status).await?;
    }
    let mut added = Vec::with_capacity(placed.len());
    for placed in placed.chunks_mut(bounds::ROWS as usize) {
        let ids = insert_rows(tx, placed).await?;
        index_messages(tx, placed, &ids).await?;
        added.extend(ids.into_iter().zip(placed.iter().map(|message| message.seq)));
    }
    for mut sent in sent {
        let own = placed.iter_mut().zip(&added);
        let own = own.filter(|(message, _)| message.is_sent && message.new.conversation == sent.conversation);
        let own = own.map(|(message, (id, _))| {
            let (action, text) = match message.new.action.take() {
                Some(VendorAction { name, arguments }) => (Some(name), arguments),
                None => (None, mem::take(&mut message.text)),
            };
            Outgoing { id: *id, action, text, format: message.format, files: message.new.files }
        });
        sent.messages.extend(own);
        emit(tx, sent).await?;
    }
    for (message, (id, _)) in placed.iter().zip(&added) {
        super::rows::announce_message(tx, message.new.conversation, *id);
    }
    for conversation in conversations {
        super::rows::announce(tx, conversation.agent_id, conversation.id);
    }
    let said = placed.iter().zip(&added).filter(|(message, _)| is_utterance(message.new.kind));
    let messages: Vec<_> = said
        .map(|(message, (id, seq))| AddedMessage {
            agent: message.agent,
            conversation: message.new.conversation,
            id: *id,
            seq: *seq,
        })
        .collect();
    emit(tx, Added { messages }).await?;
    Ok(added)
}

/// Whether a message says something, rather than showing an agent's work.
pub(super) const fn is_utterance(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Text | MessageKind::File | MessageKind::Voice)
}

/// A message with its position.
struct PlacedMessage<'a> {
    new: NewMessage<'a>,
    /// The conversation's agent.
    agent: AgentId,
    seq: i64,
    at: Timestamp,
    /// The text as people read it.
    text: String,
    format: TextFormat,
    /// Whether it is sent through the conversation's channel.
    is_sent: bool,
}

/// Gives messages the next positions in their conversations.
fn assign_positions<'a>(
    tx: &Tx,
    conversations: &[conversations::Model],
    new: Vec<NewMessage<'a>>,
) -> Result<Vec<PlacedMessage<'a>>> {
    let ends = conversations.iter().map(|one| (one.id, (one.agent_id, one.last_seq)));
    let mut ends: HashMap<_, _> = ends.collect();
    let placed = new.into_iter().map(|new| {
        let unknown = || Problem::not_found("conversation", new.conversation);
        let (agent, last) = ends.get_mut(&new.conversation).ok_or_else(unknown)?;
        *last += 1;
        let (at, text) = (new.created_at.unwrap_or(tx.now), text_of(new.kind, &new.content));
        let is_plain = new.content["format"] == TextFormat::Plain.as_str();
        let format = if is_plain { TextFormat::Plain } else { TextFormat::Markdown };
        Ok(PlacedMessage { new, agent: *agent, seq: *last, at, text, format, is_sent: false })
    });
    placed.collect()
}

/// A conversation's status after its messages.
fn status_after(before: ConversationStatus, own: &[&mut PlacedMessage<'_>]) -> Result<ConversationStatus> {
    let mut status = before;
    for PlacedMessage { new, .. } in own {
        let is_inbound = new.role == MessageRole::User && new.reopens;
        let event = if is_inbound { StatusEvent::Inbound } else { StatusEvent::Outbound };
        status = event.apply(status)?;
    }
    Ok(status)
}

/// Queues the turn of messages with a cause, and extends the turns of the others.
async fn join_turns(
    tx: &Tx,
    conversation: &conversations::Model,
    own: &mut [&mut PlacedMessage<'_>],
) -> Result<()> {
    let mut reached: BTreeMap<TurnId, (i64, i64)> = BTreeMap::new();
    let mut caused = None;
    for PlacedMessage { new, seq, .. } in &*own {
        if let Some(cause) = new.cause {
            caused.get_or_insert((cause, *seq, *seq)).2 = *seq;
        } else if let Some(turn) = new.turn {
            reached.entry(turn).or_insert((*seq, *seq)).1 = *seq;
        }
    }
    if let Some(((cause, agent), first, last)) = caused {
        let turn = turns::queue_turn(tx, agent, conversation.id, cause, Some((first, last))).await?;
        for message in own.iter_mut().filter(|message| message.new.cause.is_some()) {
            message.new.turn = Some(turn);
        }
    }
    for (turn, seqs) in reached {
        turns::extend_turn(tx, conversation.id, turn, seqs).await?;
    }
    Ok(())
}

/// Marks the messages to the people on the other side of a channel: texts and files of the agent or of a person in its
/// place, and actions.
async fn mark_outgoing(
    tx: &Tx,
    conversation: &conversations::Model,
    own: &mut [&mut PlacedMessage<'_>],
) -> Result<Option<OutgoingAdded>> {
    let Some(channel) = conversation.channel_id else { return Ok(None) };
    // The texts of some stay here.
    let has_texts = channels::kind_of(conversation.transport)
        .is_none_or(|kind| muster_channels::traits(kind).longest.count > 0);
    let is_said = |message: &&mut PlacedMessage<'_>| {
        let new = &message.new;
        let is_text = has_texts
            && new.role == MessageRole::Assistant
            && matches!(new.kind, MessageKind::Text | MessageKind::File)
            && new.delivery.is_none()
            && (new.files > 0 || !message.text.trim().is_empty());
        is_text || new.action.is_some()
    };
    if conversation.target.is_none() || !own.iter().any(is_said) {
        return Ok(None);
    }
    let Some(is_open) = channels::sends_out(tx, channel).await? else { return Ok(None) };
    let status = if is_open { DeliveryStatus::Pending } else { DeliveryStatus::Skipped };
    for message in own.iter_mut().filter(|message| is_said(message)) {
        message.is_sent = true;
        message.new.via_channel = Some(channel);
        message.new.delivery = Some(Delivery { status, attempts: 0, error: None, sent_at: None });
    }
    Ok(Some(OutgoingAdded { channel, conversation: conversation.id, status, messages: Vec::new() }))
}

/// Appends an error message of the service, about a turn or a request.
pub async fn append_error(
    tx: &Tx,
    conversation: ConversationId,
    turn: Option<TurnId>,
    code: &str,
    text: &str,
) -> Result<MessageId> {
    let content = json!({ "code": code, "text": text });
    let new = NewMessage::new(conversation, MessageRole::System, MessageKind::Error, content);
    append(tx, NewMessage { turn, ..new }).await
}

/// The storage that messages take: their content, and a copy for the delivery. `retention_queries.rs` has the same in
/// SQL.
fn stored_bytes(backend: DbBackend, own: &[&mut PlacedMessage<'_>]) -> i64 {
    let bytes = own.iter().map(|message| {
        let times = if message.new.delivery.is_some() { 2 } else { 1 };
        MESSAGE_OVERHEAD + times * content_bytes(backend, &message.new.content)
    });
    bytes.sum()
}

/// The storage that a message's content takes.
fn content_bytes(backend: DbBackend, content: &Json) -> i64 {
    // PostgreSQL writes a space after each colon and comma.
    let spaces = if backend == DbBackend::Postgres { separators(content) } else { 0 };
    (content.to_string().len() + spaces).cast_signed() as i64
}

/// The number of colons and commas between the values of JSON.
fn separators(json: &Json) -> usize {
    match json {
        Json::Array(items) => items.len().saturating_sub(1) + items.iter().map(separators).sum::<usize>(),
        Json::Object(fields) => {
            (2 * fields.len()).saturating_sub(1) + fields.values().map(separators).sum::<usize>()
        }
        _ => 0,
    }
}

/// Updates the conversation's summary, once for all messages. The row is locked, so no other message takes the next
/// positions.
async fn summarize(
    tx: &Tx,
    conversation: &conversations::Model,
    own: &[&mut PlacedMessage<'_>],
    status: ConversationStatus,
) -> Result<()> {
    use conversations::Column;
    let Some(last) = own.last() else { return Ok(()) };
    let latest = own.iter().map(|message| message.at.0).max().unwrap_or_default();
    let reopened = status != conversation.status;
    let stored = stored_bytes(tx.scope.core.db.backend(), own);
    let mut update = tx
        .scope
        .update::<conversations::Entity>()
        .filter(Column::Id.eq(conversation.id))
        .col_expr(
            Column::MessageCount,
            Expr::value(conversation.message_count + own.len().cast_signed() as i64),
        )
        .col_expr(Column::LastSeq, Expr::value(last.seq))
        .col_expr(Column::StoredBytes, Expr::value(conversation.stored_bytes + stored))
        .col_expr(Column::LastMessageSeq, Expr::value(last.seq))
        .col_expr(Column::LastMessageRole, Expr::value(last.new.role.as_str()))
        .col_expr(Column::LastMessageKind, Expr::value(last.new.kind.as_str()))
        .col_expr(Column::LastMessagePreview, Expr::value(preview(&last.text)))
        .col_expr(Column::LastMessageCreatedAt, Expr::value(last.at.0))
        // A late message must not move the last activity back.
        .col_expr(Column::LastActivityAt, Expr::value(latest.max(conversation.last_activity_at.0)))
        .col_expr(Column::UpdatedAt, Expr::value(tx.now.0));
    let titles = || own.iter().filter_map(|message| title_of(message.new.kind, &message.new.content));
    if title::takes_title(conversation)
        && let Some(title) = titles().next()
    {
        update = update
            .col_expr(Column::TitleFolded, Expr::value(folding::name(&title)))
            .col_expr(Column::Title, Expr::value(title))
            .col_expr(Column::TitledByMessage, Expr::value(true));
    }
    if reopened {
        update = update
            .col_expr(Column::Status, Expr::value(status.as_str()))
            .col_expr(Column::ResolvedAt, Expr::value(None::<i64>));
    }
    update.exec(tx.connection()).await?;
    Ok(())
}

/// Inserts the rows, moving the content out of the messages. Returns their ids, in this order.
async fn insert_rows(tx: &Tx, placed: &mut [PlacedMessage<'_>]) -> Result<Vec<MessageId>> {
    use messages::Column;
    let rows: Vec<_> = placed.iter_mut().map(|message| to_row(tx, message)).collect();
    let mut insert = messages::Entity::insert_many(rows).into_query();
    insert.returning(Query::returning().columns([Column::ConversationId, Column::Seq, Column::Id]));
    // No database guarantees the order of returned rows.
    let mut ids: HashMap<(ConversationId, i64), MessageId> = HashMap::with_capacity(placed.len());
    for row in tx.connection().query_all(&insert).await? {
        let place = (row.try_get_by("conversation_id")?, row.try_get_by("seq")?);
        ids.insert(place, row.try_get_by("id")?);
    }
    let id = |message: &PlacedMessage<'_>| ids.get(&(message.new.conversation, message.seq)).copied();
    let ids: Option<Vec<_>> = placed.iter().map(id).collect();
    ids.ok_or_else(|| Problem::internal(anyhow::anyhow!("a message without a row")))
}

fn to_row(tx: &Tx, message: &mut PlacedMessage<'_>) -> messages::ActiveModel {
    let PlacedMessage { new, seq, at, .. } = message;
    let delivery = new.delivery.take();
    messages::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        conversation_id: Set(new.conversation),
        seq: Set(*seq),
        turn_id: Set(new.turn),
        host_key: Set(new.host_key.take()),
        role: Set(new.role),
        kind: Set(new.kind),
        via_channel_id: Set(new.via_channel),
        via_identity_id: Set(new.via_identity),
        dedupe_key: Set(new.dedupe_key.take()),
        vendor_id: Set(new.vendor_id.take()),
        album: Set(new.album.take()),
        album_keys: Set(json!([])),
        unproven: Set(new.is_unproven),
        author_user_id: Set(new.author_user),
        author_name: Set(new.author_name.take()),
        status: Set(new.status),
        delivery_status: Set(delivery.as_ref().map(|delivery| delivery.status)),
        delivery_attempts: Set(delivery.as_ref().map_or(0, |delivery| delivery.attempts)),
        delivery_error: Set(delivery.as_ref().and_then(|delivery| delivery.error.clone())),
        delivery_sent_at: Set(delivery.and_then(|delivery| delivery.sent_at)),
        content: Set(new.content.take()),
        created_at: Set(*at),
    }
}

/// Adds the messages' words to the search index (`migrations/README.md`). `ids`: in the same order.
async fn index_messages(tx: &Tx, placed: &[PlacedMessage<'_>], ids: &[MessageId]) -> Result<()> {
    let said = placed.iter().zip(ids);
    let said = said.map(|(PlacedMessage { new, agent, seq, text, .. }, id)| IndexedMessage {
        message: *id,
        conversation: new.conversation,
        agent: *agent,
        seq: *seq,
        text,
    });
    index_words(tx, said).await
}

/// A message in the search index.
struct IndexedMessage<'a> {
    message: MessageId,
    conversation: ConversationId,
    /// The conversation's agent.
    agent: AgentId,
    seq: i64,
    /// The text as people read it.
    text: &'a str,
}

/// Replaces a message's content, its words in the search index, its share of the storage, and the preview if it is the
/// last message. The conversation must be locked.
pub(super) async fn rewrite(
    tx: &Tx,
    conversation: &mut conversations::Model,
    message: &messages::Model,
    content: Json,
) -> Result<()> {
    use conversations::Column;
    let text = text_of(message.kind, &content);
    let (of, agent) = (conversation.id, conversation.agent_id);
    reindex(
        tx,
        IndexedMessage { message: message.id, conversation: of, agent, seq: message.seq, text: &text },
    )
    .await?;
    let backend = tx.scope.core.db.backend();
    conversation.stored_bytes += content_bytes(backend, &content) - content_bytes(backend, &message.content);
    if conversation.last_message_seq == Some(message.seq) {
        conversation.last_message_preview = Some(preview(&text));
    }
    let row = tx.scope.update::<conversations::Entity>().filter(Column::Id.eq(of));
    let row = row
        .col_expr(Column::StoredBytes, Expr::value(conversation.stored_bytes))
        .col_expr(Column::LastMessagePreview, Expr::value(conversation.last_message_preview.clone()));
    row.exec(tx.connection()).await?;
    let row = tx.scope.update::<messages::Entity>().filter(messages::Column::Id.eq(message.id));
    row.col_expr(messages::Column::Content, Expr::value(content)).exec(tx.connection()).await?;
    announce_changed(tx, of, message.id);
    Ok(())
}

/// Replaces a message's words in the search index.
async fn reindex(tx: &Tx, said: IndexedMessage<'_>) -> Result<()> {
    delete_words(tx, said.message).await?;
    index_words(tx, std::iter::once(said)).await
}

async fn index_words(tx: &Tx, messages: impl Iterator<Item = IndexedMessage<'_>>) -> Result<()> {
    let words = messages.map(|IndexedMessage { message, conversation, agent, seq, text }| {
        let mut tokens = tokens(text);
        tokens.extend(place_tokens(tx.scope.org, agent, conversation));
        Words { message, conversation, seq, tokens }
    });
    insert_words(tx, words).await
}

/// The beginning of a message, on one line.
pub(crate) fn preview(text: &str) -> String {
    let mut words = String::new();
    let between = |letter: char| letter.is_whitespace() || is_control_or_bidi(letter);
    for word in text.split(between).filter(|word| !word.is_empty()) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() > PREVIEW * 4 {
            break;
        }
    }
    match words.char_indices().nth(PREVIEW) {
        Some((end, _)) => format!("{}…", words[..end].trim_end()),
        None => words,
    }
}
