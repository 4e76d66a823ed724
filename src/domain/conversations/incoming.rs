//! Messages that came in through channels: which conversation they belong to, and the turn that they make.
//!
//! Each finds its conversation, or begins one, and stores its files; then all are written together (`append.rs`).

use std::{collections::HashSet, mem, slice, time::Duration};

use bytes::Bytes;
use muster_channels::Thread;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, QueryOrder, QuerySelect, Set,
};
use serde_json::{Value, json};

use super::{
    append::{NewMessage, add_all},
    attachments::{self, Upload},
    entity::{conversations, messages},
    panel::free_reference,
    queries,
    sources::{self, Source},
    storage::of_readers,
    turns,
    updates::joined,
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
        plain::bounded,
        problem::{Code, Result},
    },
    core::{
        Event,
        handlers::{Question, ask},
        store::{Tx, held},
    },
    domain::agents::LockedAgent,
};

/// The conversation of what was sent through a channel, and has this id at its vendor.
#[derive(Debug)]
pub struct ConversationOf {
    /// The channel.
    pub channel: ChannelId,
    /// The id.
    pub vendor_id: String,
}

impl Question for ConversationOf {
    type Answer = Option<ConversationId>;
}

/// How many addresses may join a conversation because its mails went to them: a sender chooses how many these are.
const READERS: usize = 500;

/// How many messages of one program are answered in an hour, in a conversation: two robots would talk forever.
const ANSWERED_HERE: i64 = 3;
/// And in all conversations of its channel.
const ANSWERED: i64 = 30;

/// A message that came in.
pub struct Incoming<'a> {
    /// The channel.
    pub channel: ChannelId,
    /// Its transport.
    pub transport: Transport,
    /// Who wrote it.
    pub contact: ContactId,
    /// Their address.
    pub identity: IdentityId,
    /// Their name.
    pub author: Option<String>,
    /// Unique in the channel: a [`word`].
    pub key: Option<String>,
    /// Its id at the vendor.
    pub vendor_id: Option<String>,
    /// What it is a part of there.
    pub album: Option<String>,
    /// Whether it is a later version of the message with this id.
    pub is_edit: bool,
    /// The conversation, as the vendor has it.
    pub thread: &'a Thread,
    /// Words of others that stand above its own.
    pub context: &'a str,
    /// What it says.
    pub text: String,
    /// What came with it.
    pub files: Vec<&'a Upload>,
    /// As it came, if that is kept.
    pub source: Option<&'a Source>,
    /// Whether the agent answers it.
    pub is_answered: bool,
    /// Whether a program wrote it.
    pub is_automatic: bool,
    /// Whether no one vouches for who wrote it.
    pub is_unproven: bool,
}

impl Incoming<'_> {
    /// What it says, with what stands above that.
    pub(super) fn said(&self) -> String {
        let apart = if self.context.is_empty() || self.text.is_empty() { "" } else { "\n\n" };
        format!("{}{apart}{}", self.context, self.text)
    }
}

/// Those of the keys whose messages came in through the channel before.
pub async fn stored(tx: &Tx, channel: ChannelId, keys: &[String]) -> Result<HashSet<String>> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(queries::stored_keys(tx, channel, keys).await?.into_iter().collect())
}

/// Stores messages and makes their turns, unless they may be part of a loop. Returns where each is. The
/// caller sends the turns.
///
/// # Errors
/// `CONFLICT`: one was stored in the same moment. The database is unreachable.
pub async fn receive(
    tx: &Tx,
    agent: &LockedAgent,
    incoming: Vec<Incoming<'_>>,
) -> Result<Vec<(ConversationId, MessageId)>> {
    let (mut batch, mut stored) = (Batch::default(), Vec::with_capacity(incoming.len()));
    for mut incoming in incoming {
        if batch.is_asked_for(&incoming) {
            stored.extend(mem::take(&mut batch).write(tx).await?);
        }
        match joined(tx, &mut incoming).await? {
            Some(place) => stored.push(place),
            None => batch.add(tx, agent, incoming).await?,
        }
    }
    stored.extend(batch.write(tx).await?);
    Ok(stored)
}

/// Messages that are not written yet, though their conversations and files are.
#[derive(Default)]
struct Batch<'a> {
    /// Their conversations, locked, each as it is without them.
    conversations: Vec<conversations::Model>,
    new: Vec<NewMessage<'a>>,
    /// What each came with.
    files: Vec<Vec<AttachmentId>>,
    /// Those that are kept as they came, each with what stands below what it says.
    sources: Vec<Option<(Bytes, String)>>,
}

impl<'a> Batch<'a> {
    /// Whether these must be written before a message is added, because it is judged by them: by the one that it refers to or is a
    /// part or version of; or, if a program wrote it, by how many are answered.
    fn is_asked_for(&self, incoming: &Incoming<'_>) -> bool {
        let refs: HashSet<_> = incoming.thread.refs.iter().map(|id| word(id)).collect();
        let is_one = |new: &NewMessage<'_>| new.vendor_id.as_ref().is_some_and(|id| refs.contains(id));
        incoming.is_automatic || incoming.album.is_some() || incoming.is_edit || self.new.iter().any(is_one)
    }

    async fn add(&mut self, tx: &Tx, agent: &'a LockedAgent, incoming: Incoming<'_>) -> Result<()> {
        let conversation = match find(tx, &incoming).await? {
            Some(found) => moved(tx, found, &incoming).await?,
            None => begin(tx, agent.id, &incoming).await?,
        };
        let id = conversation.id;
        match self.conversations.iter_mut().find(|known| known.id == id) {
            Some(known) => *known = conversation,
            None => self.conversations.push(conversation),
        }
        let is_answered =
            incoming.is_answered && !(incoming.is_automatic && is_enough(tx, id, &incoming).await?);
        let cause = turns::Cause { kind: TurnCause::Channel, user: None, token: None };
        let (files, text) = keep(tx, &incoming).await?;
        let source = incoming.source.map(|source| source.with_notes_of(&text));
        let files_said = incoming.files.iter().map(|file| file.filename.as_str());
        let content = content_of(incoming.transport, incoming.thread.title.as_deref(), text, files_said);
        self.files.push(files);
        self.sources.push(source);
        self.new.push(NewMessage {
            author_name: incoming.author.as_deref().map(word),
            via_channel: Some(incoming.channel),
            via_identity: Some(incoming.identity),
            dedupe_key: incoming.key,
            vendor_id: incoming.vendor_id.as_deref().map(word),
            // A version of a part is none.
            album: incoming.album.as_deref().map(word).filter(|_| !incoming.is_edit),
            is_unproven: incoming.is_unproven,
            status: if is_answered { MessageStatus::Pending } else { MessageStatus::Delivered },
            cause: is_answered.then_some((cause, agent)),
            // An edit that is not answered changes nothing about a resolved conversation.
            reopens: is_answered || !incoming.is_edit,
            ..NewMessage::new(id, MessageRole::User, MessageKind::Text, content)
        });
        Ok(())
    }

    /// Writes them. Returns where each is.
    async fn write(self, tx: &Tx) -> Result<Vec<(ConversationId, MessageId)>> {
        let places: Vec<_> = self.new.iter().map(|new| new.conversation).collect();
        let added = add_all(tx, &self.conversations, self.new).await?;
        let stored: Vec<_> = places.into_iter().zip(added.into_iter().map(|(message, _)| message)).collect();
        for (((_, message), files), source) in stored.iter().zip(self.files).zip(self.sources) {
            for file in files {
                attachments::attach(tx, *message, file).await?;
            }
            if let Some((bytes, notes)) = source {
                sources::keep(tx, *message, bytes, &notes).await?;
            }
        }
        Ok(stored)
    }
}

/// What stands in a message instead of a file.
pub(crate) fn unread(name: &str, why: &str) -> String {
    format!("\n\n[A file came with this message and was not kept: {name} ({})]", why.trim_end_matches('.'))
}

/// A text as it is kept.
pub(super) fn written(text: &str) -> String {
    bounded(text, bounds::MESSAGE)
}

/// Stores the files. Returns them, and the text, which names those that there was no room for.
pub(super) async fn keep(tx: &Tx, incoming: &Incoming<'_>) -> Result<(Vec<AttachmentId>, String)> {
    let (mut kept, mut text) = (Vec::with_capacity(incoming.files.len()), incoming.said());
    for file in &incoming.files {
        match attachments::of_sender(tx, (*file).clone()).await {
            Ok(id) => kept.push(id),
            Err(problem) if problem.code == Code::PlanLimitReached => {
                text.push_str(&unread(&file.filename, "the organization's storage is full"));
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok((kept, text))
}

/// The content of a message that says this, or names its files if it says nothing. A mail has its subject, too, which is what
/// it says if there is nothing else, and is not Markdown: `>` ends with its line, and `# 4711` is no heading.
pub(super) fn content_of<'a>(
    transport: Transport,
    title: Option<&str>,
    text: String,
    files: impl Iterator<Item = &'a str>,
) -> Value {
    let text = if text.trim().is_empty() { files.collect::<Vec<_>>().join(", ") } else { text };
    if transport != Transport::Email {
        return json!({ "text": written(&text), "format": TextFormat::Markdown });
    }
    let subject = title.map(word).filter(|subject| !subject.trim().is_empty());
    let text = if text.is_empty() { subject.clone().unwrap_or_default() } else { written(&text) };
    let mut content = json!({ "text": text, "format": TextFormat::Plain });
    if let Some(subject) = subject {
        content["subject"] = subject.into();
    }
    content
}

/// Whether a program's origin was answered enough: two robots that don't know each other would talk forever. One that names no
/// thread begins a conversation each time, so there is a limit for the whole channel, too.
async fn is_enough(tx: &Tx, conversation: ConversationId, incoming: &Incoming<'_>) -> Result<bool> {
    let place = (incoming.identity, incoming.channel, conversation);
    let answered = queries::answered(tx, place, tx.now.minus(Duration::from_hours(1))).await?;
    Ok(answered.is_some_and(|answered| answered.here >= ANSWERED_HERE || answered.anywhere >= ANSWERED))
}

/// The conversation that a message belongs to, locked: the one of the newest message that it refers to, else the one with its
/// key. An archived one is over: a message to it begins another. A mail thread's key is the id of its first mail, which later
/// ones refer to: it still leads there when the mails themselves were removed.
///
/// Ids of mails are no secrets: a mail that refers to others' joins their conversation only if its sender takes part in it.
/// Ours hold a secret word, so whoever names one has it.
async fn find(tx: &Tx, incoming: &Incoming<'_>) -> Result<Option<conversations::Model>> {
    let open = || {
        let open = held(tx.scope.find::<conversations::Entity>());
        let open = open.filter(conversations::Column::ChannelId.eq(incoming.channel));
        open.filter(conversations::Column::Status.ne(ConversationStatus::Archived))
    };
    for vendor_id in &incoming.thread.refs {
        let Some((id, is_ours)) = referred(tx, incoming.channel, vendor_id).await? else { continue };
        let found = open().filter(conversations::Column::Id.eq(id)).one(tx.connection()).await?;
        if let Some(found) = found
            && (is_ours || takes_part(tx, &found, incoming).await?)
        {
            return Ok(Some(found));
        }
    }
    let Thread { key, refs, .. } = incoming.thread;
    let refs = if incoming.transport == Transport::Email { refs.as_slice() } else { &[] };
    let keys = refs.iter().chain(slice::from_ref(key)).map(|key| word(key));
    let same = open().filter(conversations::Column::ThreadKey.is_in(keys));
    let same = same.order_by_desc(conversations::Column::Id).one(tx.connection()).await?;
    match same {
        Some(found) if takes_part(tx, &found, incoming).await? => Ok(Some(found)),
        _ => Ok(None),
    }
}

/// Whether a sender may refer to others' mails of a conversation: its contact, who has written in it, and who got a mail of it.
/// Other vendors know themselves who is in a thread.
async fn takes_part(tx: &Tx, conversation: &conversations::Model, incoming: &Incoming<'_>) -> Result<bool> {
    if incoming.transport != Transport::Email
        || conversation.contact_id == Some(incoming.contact)
        || texts(&conversation.readers).contains(&bounded(&incoming.thread.target, bounds::NAME))
    {
        return Ok(true);
    }
    let written = tx.scope.find::<messages::Entity>();
    let written = written.filter(messages::Column::ConversationId.eq(conversation.id));
    let written = written.filter(messages::Column::ViaIdentityId.eq(incoming.identity)).limit(1);
    let written = written.select_only().column(messages::Column::Id).into_tuple::<MessageId>();
    Ok(written.one(tx.connection()).await?.is_some())
}

/// The conversation of a message that the vendor knows by this id, and whether the message is ours. Ours comes first: whoever got
/// a mail of ours could give its id to their own, to get the answers of others into their conversation.
async fn referred(tx: &Tx, channel: ChannelId, vendor_id: &str) -> Result<Option<(ConversationId, bool)>> {
    if let Some(id) = ask(tx, ConversationOf { channel, vendor_id: word(vendor_id) }).await? {
        return Ok(Some((id, true)));
    }
    let theirs = tx.scope.find::<messages::Entity>().filter(messages::Column::ViaChannelId.eq(channel));
    let theirs = theirs.filter(messages::Column::VendorId.eq(word(vendor_id))).limit(1);
    let theirs = theirs.select_only().column(messages::Column::ConversationId);
    Ok(theirs.into_tuple::<ConversationId>().one(tx.connection()).await?.map(|id| (id, false)))
}

/// The conversation, with answers going where its people write from now, and with those who got this message.
async fn moved(
    tx: &Tx,
    conversation: conversations::Model,
    incoming: &Incoming<'_>,
) -> Result<conversations::Model> {
    let target = &incoming.thread.target;
    let readers = with_readers(texts(&conversation.readers), incoming);
    let is_same = conversation.target.as_ref() == Some(target) && texts(&conversation.readers) == readers;
    if is_same {
        return Ok(conversation);
    }
    let readers = json!(readers);
    let more = of_readers(&readers) - of_readers(&conversation.readers);
    let stored_bytes = Set(conversation.stored_bytes + more);
    let mut changed = conversation.into_active_model();
    changed.target = Set(Some(target.clone()));
    changed.readers = Set(readers);
    changed.stored_bytes = stored_bytes;
    Ok(changed.update(tx.connection()).await?)
}

/// The addresses that got a conversation's mails, with those of this one.
fn with_readers(mut readers: Vec<String>, incoming: &Incoming<'_>) -> Vec<String> {
    for reader in &incoming.thread.readers {
        let reader = bounded(reader, bounds::NAME);
        if readers.len() < READERS && !readers.contains(&reader) {
            readers.push(reader);
        }
    }
    readers
}

async fn begin(tx: &Tx, agent: AgentId, incoming: &Incoming<'_>) -> Result<conversations::Model> {
    let title = incoming.thread.title.as_deref().map(word).filter(|title| !title.trim().is_empty());
    let readers = json!(with_readers(Vec::new(), incoming));
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
        thread_key: Set(Some(word(&incoming.thread.key))),
        target: Set(Some(bounded(&incoming.thread.target, bounds::NAME))),
        stored_bytes: Set(of_readers(&readers)),
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

/// An id, name or title of a vendor's, as it is kept.
pub fn word(text: &str) -> String {
    bounded(text, bounds::NAME)
}
