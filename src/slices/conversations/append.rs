//! The only way to add a message: its position in the conversation, its row, its words in the search index, the
//! conversation's summary, and the events, all in the caller's transaction.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbBackend, NotSet, QueryFilter, Set, Statement, Value,
    sea_query::Expr,
};

use super::{
    entity::{conversations, messages},
    load,
    state::Happening,
    words::{conversation_token, text_of, tokens},
};
use crate::{
    base::{
        enums::{DeliveryStatus, MessageKind, MessageRole, MessageStatus},
        ids::{ChannelId, ConversationId, IdentityId, MessageId, TurnId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    slices::turns,
};

/// How many characters of a message its conversation shows.
const PREVIEW: usize = 160;

/// A message's delivery through a channel.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The state of the delivery.
    pub status: DeliveryStatus,
    /// The number of attempts.
    pub attempts: i64,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When the vendor accepted it.
    pub sent_at: Option<Timestamp>,
}

/// A message to add.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The conversation to add it to.
    pub conversation: ConversationId,
    /// The author's role. A USER's message counts as inbound.
    pub role: MessageRole,
    /// The kind of content.
    pub kind: MessageKind,
    /// An object whose shape depends on the kind.
    pub content: serde_json::Value,
    /// The member who wrote it, if any.
    pub author_user: Option<UserId>,
    /// The author's display name.
    pub author_name: Option<String>,
    /// The channel it came in or goes out through.
    pub via_channel: Option<ChannelId>,
    /// The address on that channel.
    pub via_identity: Option<IdentityId>,
    /// Whether it has reached the agent or the conversation.
    pub status: MessageStatus,
    /// Its delivery through a channel, if it is sent outside.
    pub delivery: Option<Delivery>,
    /// When it was written. Defaults to now.
    pub created_at: Option<Timestamp>,
    /// The turn that it causes or belongs to.
    pub turn: Option<TurnId>,
    /// What the agent's host calls it; unique in the conversation.
    pub host_key: Option<String>,
    /// Whether a USER's message opens the conversation again. If not, it can also be added to an archived one.
    pub reopens: bool,
}

impl NewMessage {
    /// A message without an author that isn't sent outside.
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
            status: MessageStatus::Delivered,
            delivery: None,
            created_at: None,
            turn: None,
            host_key: None,
            reopens: true,
        }
    }
}

/// Appends a message to its conversation. An inbound one reopens a resolved or waiting conversation.
///
/// # Errors
/// `NOT_FOUND`; `ARCHIVED` for an inbound message to an archived conversation, which must start a new one.
pub async fn append(tx: &mut Tx, new: NewMessage) -> Result<MessageId> {
    Ok(add(tx, new).await?.0)
}

/// [`append`], which also returns the message's position in the conversation.
///
/// # Errors
/// See [`append`].
pub async fn add(tx: &mut Tx, new: NewMessage) -> Result<(MessageId, i64)> {
    let conversation = load(tx, new.conversation).await?;
    let agent = conversation.agent_id;
    let is_inbound = new.role == MessageRole::User && new.reopens;
    let happening = if is_inbound { Happening::Inbound } else { Happening::Outbound };
    let status = happening.apply(conversation.status)?;
    let seq = conversation.last_seq + 1;
    let text = text_of(new.kind, &new.content);
    let (conversation_id, at) = (new.conversation, new.created_at.unwrap_or(tx.now));
    let turn = new.turn;
    let preview = preview(&text);
    summarize(tx, &conversation, seq, (&new, at, preview), status).await?;
    let id = insert(tx, new, seq, at).await?;
    index(tx, id, conversation_id, seq, tokens(&text)).await?;
    super::announce_message(tx, conversation_id, id);
    super::announce(tx, agent, conversation_id);
    if let Some(turn) = turn {
        turns::reaches(tx, turn, seq).await?;
    }
    Ok((id, seq))
}

/// Updates the conversation's summary. The row is locked, so the next seq is ours.
async fn summarize(
    tx: &Tx,
    conversation: &conversations::Model,
    seq: i64,
    (new, at, preview): (&NewMessage, Timestamp, String),
    status: crate::base::enums::ConversationStatus,
) -> Result<()> {
    use conversations::Column;
    let reopened = status != conversation.status;
    let mut update = tx
        .scope
        .update::<conversations::Entity>()
        .filter(Column::Id.eq(conversation.id))
        .col_expr(Column::MessageCount, Expr::value(conversation.message_count + 1))
        .col_expr(Column::LastSeq, Expr::value(seq))
        .col_expr(Column::LastMessageSeq, Expr::value(seq))
        .col_expr(Column::LastMessageRole, Expr::value(new.role.as_str()))
        .col_expr(Column::LastMessageKind, Expr::value(new.kind.as_str()))
        .col_expr(Column::LastMessagePreview, Expr::value(preview))
        .col_expr(Column::LastMessageCreatedAt, Expr::value(at.0))
        // A late message must not move the last activity back.
        .col_expr(Column::LastActivityAt, Expr::value(at.0.max(conversation.last_activity_at.0)))
        .col_expr(Column::UpdatedAt, Expr::value(tx.now.0));
    if reopened {
        update = update
            .col_expr(Column::Status, Expr::value(status.as_str()))
            .col_expr(Column::ResolvedAt, Expr::value(None::<i64>));
    }
    update.exec(tx.connection()).await?;
    Ok(())
}

async fn insert(tx: &Tx, new: NewMessage, seq: i64, at: Timestamp) -> Result<MessageId> {
    let delivery = new.delivery;
    let row = messages::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        conversation_id: Set(new.conversation),
        seq: Set(seq),
        turn_id: Set(new.turn),
        host_key: Set(new.host_key),
        role: Set(new.role),
        kind: Set(new.kind),
        via_channel_id: Set(new.via_channel),
        via_identity_id: Set(new.via_identity),
        author_user_id: Set(new.author_user),
        author_name: Set(new.author_name),
        status: Set(new.status),
        delivery_status: Set(delivery.as_ref().map(|delivery| delivery.status)),
        delivery_attempts: Set(delivery.as_ref().map_or(0, |delivery| delivery.attempts)),
        delivery_error: Set(delivery.as_ref().and_then(|delivery| delivery.error.clone())),
        delivery_sent_at: Set(delivery.and_then(|delivery| delivery.sent_at)),
        content: Set(new.content),
        created_at: Set(at),
    };
    Ok(row.insert(tx.connection()).await?.id)
}

/// Adds the message's words to the search index (`migrations/README.md`).
async fn index(
    tx: &Tx,
    id: MessageId,
    conversation: ConversationId,
    seq: i64,
    mut tokens: Vec<String>,
) -> Result<()> {
    tokens.push(conversation_token(conversation));
    let backend = tx.connection().get_database_backend();
    let statement = match backend {
        DbBackend::Postgres => Statement::from_sql_and_values(
            backend,
            "INSERT INTO message_search (organization_id, message_id, conversation_id, seq, tokens) \
             VALUES ($1, $2, $3, $4, array_to_tsvector($5))",
            [tx.scope.org.0.into(), id.0.into(), conversation.0.into(), seq.into(), Value::from(tokens)],
        ),
        _ => Statement::from_sql_and_values(
            backend,
            "INSERT INTO messages_fts (rowid, tokens) VALUES ($1, $2)",
            [id.0.into(), tokens.join(" ").into()],
        ),
    };
    tx.connection().execute_raw(statement).await?;
    Ok(())
}

/// The beginning of a message, on one line.
pub(crate) fn preview(text: &str) -> String {
    let mut words = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
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
