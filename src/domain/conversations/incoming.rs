//! Messages from channels: finding their conversation, and queueing their turn.
//!
//! Each message finds or starts its conversation and stores its files; then all are written together (`append.rs`).

use std::{collections::HashSet, mem, slice, time::Duration};

use bytes::Bytes;
use muster_channels::Thread;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, QueryOrder, QuerySelect, Set,
};
use serde_json::{Value, json};

use super::{
    append::{NewMessage, append_all},
    attachments::{self, Upload},
    entity::{conversations, messages},
    panel::free_reference,
    queries,
    sources::{self, Source},
    storage::readers_bytes,
    turns,
    updates::join_earlier,
};
use crate::{
    base::{
        bounds,
        enums::{
            ChangeOp, ConversationStatus, MessageKind, MessageRole, MessageStatus, RecordKind, TextFormat,
            Transport, TurnCause,
        },
        ids::{AgentId, AttachmentId, ChannelId, ContactId, ConversationId, IdentityId, MessageId},
        json::texts,
        plain::truncated,
        problem::{Code, Result},
    },
    core::{
        Event,
        handlers::{Question, ask},
        store::{Tx, for_update},
    },
    domain::agents::LockedAgent,
};

/// Asks for the conversation of a message that was sent through a channel and has this vendor id.
#[derive(Debug)]
pub struct ConversationOf {
    pub channel: ChannelId,
    pub vendor_id: String,
}

impl Question for ConversationOf {
    type Answer = Option<ConversationId>;
}

/// How many addresses may join a conversation as recipients of its mails. A sender can choose any number.
const READERS: usize = 500;

/// How many messages of one program are answered within an hour in a conversation. Without a limit, two programs could
/// talk to each other forever.
const ANSWERED_HERE: i64 = 3;
/// The same limit across all conversations of the channel.
const ANSWERED: i64 = 30;

/// A message from a channel.
pub struct Incoming<'a> {
    pub channel: ChannelId,
    pub transport: Transport,
    /// The sender.
    pub contact: ContactId,
    /// The sender's address.
    pub identity: IdentityId,
    /// The sender's name.
    pub author: Option<String>,
    /// Unique in the channel: a [`bounded_name`].
    pub key: Option<String>,
    pub vendor_id: Option<String>,
    /// The vendor's id of the album that it is a part of.
    pub album: Option<String>,
    /// Whether it is a later version of the message with this vendor id.
    pub is_edit: bool,
    /// The vendor's conversation.
    pub thread: &'a Thread,
    /// Other people's words, shown above the message.
    pub context: &'a str,
    pub text: String,
    pub files: Vec<&'a Upload>,
    /// The original, if it is to be stored.
    pub source: Option<&'a Source>,
    /// Whether it gets a turn.
    pub is_answered: bool,
    /// Whether a program wrote it.
    pub is_automatic: bool,
    /// Whether the sender is not proven.
    pub is_unproven: bool,
}

impl Incoming<'_> {
    /// The text below its context.
    pub(super) fn full_text(&self) -> String {
        let apart = if self.context.is_empty() || self.text.is_empty() { "" } else { "\n\n" };
        format!("{}{apart}{}", self.context, self.text)
    }
}

/// Returns those of the keys that stored messages of the channel have.
pub async fn find_stored_keys(tx: &Tx, channel: ChannelId, keys: &[String]) -> Result<HashSet<String>> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(queries::stored_keys(tx, channel, keys).await?.into_iter().collect())
}

/// Stores messages and queues their turns, unless they may be part of a loop. Returns each message and its
/// conversation. The caller sends the turns.
///
/// # Errors
/// `CONFLICT`: another transaction has stored one of them.
pub async fn receive(
    tx: &Tx,
    agent: &LockedAgent,
    incoming: Vec<Incoming<'_>>,
) -> Result<Vec<(ConversationId, MessageId)>> {
    let (mut batch, mut stored) = (Batch::default(), Vec::with_capacity(incoming.len()));
    for mut incoming in incoming {
        if batch.must_precede(&incoming) {
            stored.extend(mem::take(&mut batch).write(tx).await?);
        }
        match join_earlier(tx, &mut incoming).await? {
            Some(place) => stored.push(place),
            None => batch.add(tx, agent, incoming).await?,
        }
    }
    stored.extend(batch.write(tx).await?);
    Ok(stored)
}

/// Messages still to be written. Their conversations and files are already in the database.
#[derive(Default)]
struct Batch<'a> {
    /// The locked conversations, in their state before these messages.
    conversations: Vec<conversations::Model>,
    new: Vec<NewMessage<'a>>,
    files: Vec<Vec<AttachmentId>>,
    /// The originals to store, each with the notes added below its text.
    sources: Vec<Option<(Bytes, String)>>,
}

impl<'a> Batch<'a> {
    /// Whether the batch must be written before `incoming` can be handled: it may refer to a message of the batch, or
    /// be a part or a version of one; and the limit for programs only counts written messages.
    fn must_precede(&self, incoming: &Incoming<'_>) -> bool {
        let refs: HashSet<_> = incoming.thread.refs.iter().map(|id| bounded_name(id)).collect();
        let is_one = |new: &NewMessage<'_>| new.vendor_id.as_ref().is_some_and(|id| refs.contains(id));
        incoming.is_automatic || incoming.album.is_some() || incoming.is_edit || self.new.iter().any(is_one)
    }

    async fn add(&mut self, tx: &Tx, agent: &'a LockedAgent, incoming: Incoming<'_>) -> Result<()> {
        let conversation = match find_conversation(tx, &incoming).await? {
            Some(found) => update_target(tx, found, &incoming).await?,
            None => insert_conversation(tx, agent.id, &incoming).await?,
        };
        let id = conversation.id;
        match self.conversations.iter_mut().find(|known| known.id == id) {
            Some(known) => *known = conversation,
            None => self.conversations.push(conversation),
        }
        let is_answered =
            incoming.is_answered && !(incoming.is_automatic && is_answered_enough(tx, id, &incoming).await?);
        let cause = turns::Cause { kind: TurnCause::Channel, user: None, token: None };
        let (files, text) = store_files(tx, &incoming).await?;
        let source = incoming.source.map(|source| source.with_notes_of(&text));
        let files_said = incoming.files.iter().map(|file| file.filename.as_str());
        let content = content_of(incoming.transport, incoming.thread.title.as_deref(), text, files_said);
        self.files.push(files);
        self.sources.push(source);
        self.new.push(NewMessage {
            author_name: incoming.author.as_deref().map(bounded_name),
            via_channel: Some(incoming.channel),
            via_identity: Some(incoming.identity),
            dedupe_key: incoming.key,
            vendor_id: incoming.vendor_id.as_deref().map(bounded_name),
            // A version of a part is not a part.
            album: incoming.album.as_deref().map(bounded_name).filter(|_| !incoming.is_edit),
            is_unproven: incoming.is_unproven,
            status: if is_answered { MessageStatus::Pending } else { MessageStatus::Delivered },
            cause: is_answered.then_some((cause, agent)),
            // An edit without an answer doesn't reopen a resolved conversation.
            reopens: is_answered || !incoming.is_edit,
            ..NewMessage::new(id, MessageRole::User, MessageKind::Text, content)
        });
        Ok(())
    }

    /// Writes the messages. Returns each message and its conversation.
    async fn write(self, tx: &Tx) -> Result<Vec<(ConversationId, MessageId)>> {
        let places: Vec<_> = self.new.iter().map(|new| new.conversation).collect();
        let added = append_all(tx, &self.conversations, self.new).await?;
        let stored: Vec<_> = places.into_iter().zip(added.into_iter().map(|(message, _)| message)).collect();
        for (((_, message), files), source) in stored.iter().zip(self.files).zip(self.sources) {
            for file in files {
                attachments::attach(tx, *message, file).await?;
            }
            if let Some((bytes, notes)) = source {
                sources::store_source(tx, *message, bytes, &notes).await?;
            }
        }
        Ok(stored)
    }
}

/// The note in a message about a file that was not stored.
pub(crate) fn missing_file_note(name: &str, why: &str) -> String {
    format!("\n\n[A file came with this message and was not stored: {name} ({})]", why.trim_end_matches('.'))
}

pub(super) fn bounded_text(text: &str) -> String {
    truncated(text, bounds::MESSAGE)
}

/// Stores the files. Returns them, and the text with notes about files for which there was no room.
pub(super) async fn store_files(tx: &Tx, incoming: &Incoming<'_>) -> Result<(Vec<AttachmentId>, String)> {
    let (mut kept, mut text) = (Vec::with_capacity(incoming.files.len()), incoming.full_text());
    for file in &incoming.files {
        match attachments::store_from_sender(tx, (*file).clone()).await {
            Ok(id) => kept.push(id),
            Err(problem) if problem.code == Code::PlanLimitReached => {
                text.push_str(&missing_file_note(&file.filename, "the organization's storage is full"));
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok((kept, text))
}

/// The content of a message: its text, or the names of its files if it has none. A mail also has its subject, which
/// replaces missing text, and is plain text: in Markdown, `>` would quote following lines, and `# 4711` would become a
/// heading.
pub(super) fn content_of<'a>(
    transport: Transport,
    title: Option<&str>,
    text: String,
    files: impl Iterator<Item = &'a str>,
) -> Value {
    let text = if text.trim().is_empty() { files.collect::<Vec<_>>().join(", ") } else { text };
    if transport != Transport::Email {
        return json!({ "text": bounded_text(&text), "format": TextFormat::Markdown });
    }
    let subject = title.map(bounded_name).filter(|subject| !subject.trim().is_empty());
    let text = if text.is_empty() { subject.clone().unwrap_or_default() } else { bounded_text(&text) };
    let mut content = json!({ "text": text, "format": TextFormat::Plain });
    if let Some(subject) = subject {
        content["subject"] = subject.into();
    }
    content
}

/// Whether a program has had enough answers for now. A program that names no thread starts a conversation each time, so
/// there is also a limit for the channel.
async fn is_answered_enough(tx: &Tx, conversation: ConversationId, incoming: &Incoming<'_>) -> Result<bool> {
    let place = (incoming.identity, incoming.channel, conversation);
    let answered = queries::count_answered(tx, place, tx.now.minus(Duration::from_hours(1))).await?;
    Ok(answered.is_some_and(|answered| answered.here >= ANSWERED_HERE || answered.anywhere >= ANSWERED))
}

/// Finds and locks the conversation of a message: the one of the newest message that it refers to, or else the one with
/// its key. A message to an archived conversation starts a new one. The key of a mail thread is the id of its first
/// mail, which later mails refer to, so it works even after the mails were removed.
///
/// Ids of mails are not secret: a mail that refers to other people's mails joins their conversation only if its sender
/// takes part in it. Ids of Muster's mails contain a secret, so a sender who knows one has received the mail.
async fn find_conversation(tx: &Tx, incoming: &Incoming<'_>) -> Result<Option<conversations::Model>> {
    let open = || {
        let open = for_update(tx.scope.find::<conversations::Entity>());
        let open = open.filter(conversations::Column::ChannelId.eq(incoming.channel));
        open.filter(conversations::Column::Status.ne(ConversationStatus::Archived))
    };
    for vendor_id in &incoming.thread.refs {
        let Some((id, is_ours)) = find_referred(tx, incoming.channel, vendor_id).await? else { continue };
        let found = open().filter(conversations::Column::Id.eq(id)).one(tx.connection()).await?;
        if let Some(found) = found
            && (is_ours || takes_part(tx, &found, incoming).await?)
        {
            return Ok(Some(found));
        }
    }
    let Thread { key, refs, .. } = incoming.thread;
    let refs = if incoming.transport == Transport::Email { refs.as_slice() } else { &[] };
    let keys = refs.iter().chain(slice::from_ref(key)).map(|key| bounded_name(key));
    let same = open().filter(conversations::Column::ThreadKey.is_in(keys));
    let same = same.order_by_desc(conversations::Column::Id).one(tx.connection()).await?;
    match same {
        Some(found) if takes_part(tx, &found, incoming).await? => Ok(Some(found)),
        _ => Ok(None),
    }
}

/// Whether a sender may refer to other people's mails in a conversation: as its contact, as an author in it, or as a
/// recipient of its mails. Vendors other than mail control access to their threads.
async fn takes_part(tx: &Tx, conversation: &conversations::Model, incoming: &Incoming<'_>) -> Result<bool> {
    if incoming.transport != Transport::Email
        || conversation.contact_id == Some(incoming.contact)
        || texts(&conversation.readers).contains(&truncated(&incoming.thread.target, bounds::NAME))
    {
        return Ok(true);
    }
    let written = tx.scope.find::<messages::Entity>();
    let written = written.filter(messages::Column::ConversationId.eq(conversation.id));
    let written = written.filter(messages::Column::ViaIdentityId.eq(incoming.identity)).limit(1);
    let written = written.select_only().column(messages::Column::Id).into_tuple::<MessageId>();
    Ok(written.one(tx.connection()).await?.is_some())
}

/// The conversation of the message with this vendor id, and whether Muster sent that message. Muster's messages take
/// precedence: a recipient could reuse the id of Muster's mail to divert other people's replies into another
/// conversation.
async fn find_referred(
    tx: &Tx,
    channel: ChannelId,
    vendor_id: &str,
) -> Result<Option<(ConversationId, bool)>> {
    if let Some(id) = ask(tx, ConversationOf { channel, vendor_id: bounded_name(vendor_id) }).await? {
        return Ok(Some((id, true)));
    }
    let theirs = tx.scope.find::<messages::Entity>().filter(messages::Column::ViaChannelId.eq(channel));
    let theirs = theirs.filter(messages::Column::VendorId.eq(bounded_name(vendor_id))).limit(1);
    let theirs = theirs.select_only().column(messages::Column::ConversationId);
    Ok(theirs.into_tuple::<ConversationId>().one(tx.connection()).await?.map(|id| (id, false)))
}

/// Updates the target of answers to the thread of this message, and adds the recipients of this message to the readers.
async fn update_target(
    tx: &Tx,
    conversation: conversations::Model,
    incoming: &Incoming<'_>,
) -> Result<conversations::Model> {
    let target = &incoming.thread.target;
    let readers = add_readers(texts(&conversation.readers), incoming);
    let is_same = conversation.target.as_ref() == Some(target) && texts(&conversation.readers) == readers;
    if is_same {
        return Ok(conversation);
    }
    let readers = json!(readers);
    let more = readers_bytes(&readers) - readers_bytes(&conversation.readers);
    let stored_bytes = Set(conversation.stored_bytes + more);
    let mut changed = conversation.into_active_model();
    changed.target = Set(Some(target.clone()));
    changed.readers = Set(readers);
    changed.stored_bytes = stored_bytes;
    Ok(changed.update(tx.connection()).await?)
}

/// Adds the recipients of a message to the readers of its conversation.
fn add_readers(mut readers: Vec<String>, incoming: &Incoming<'_>) -> Vec<String> {
    for reader in &incoming.thread.readers {
        let reader = truncated(reader, bounds::NAME);
        if readers.len() < READERS && !readers.contains(&reader) {
            readers.push(reader);
        }
    }
    readers
}

async fn insert_conversation(
    tx: &Tx,
    agent: AgentId,
    incoming: &Incoming<'_>,
) -> Result<conversations::Model> {
    let title = incoming.thread.title.as_deref().map(bounded_name).filter(|title| !title.trim().is_empty());
    let readers = json!(add_readers(Vec::new(), incoming));
    let conversation = conversations::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        r#ref: Set(free_reference(tx).await?),
        title: Set(title),
        status: Set(ConversationStatus::Open),
        agent_id: Set(agent),
        contact_id: Set(Some(incoming.contact)),
        channel_id: Set(Some(incoming.channel)),
        transport: Set(incoming.transport),
        thread_key: Set(Some(bounded_name(&incoming.thread.key))),
        target: Set(Some(truncated(&incoming.thread.target, bounds::NAME))),
        stored_bytes: Set(readers_bytes(&readers)),
        readers: Set(readers),
        message_count: Set(0),
        last_seq: Set(0),
        opened_at: Set(tx.now),
        last_activity_at: Set(tx.now),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    };
    let begun = conversation.insert(tx.connection()).await?;
    tx.announce(
        Event::new(tx.scope.org, ChangeOp::Created, RecordKind::Conversation, begun.id).with_parent(agent),
    );
    Ok(begun)
}

/// Bounds a vendor's id, name or title for storage.
pub fn bounded_name(text: &str) -> String {
    truncated(text, bounds::NAME)
}
