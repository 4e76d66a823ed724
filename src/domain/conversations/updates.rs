//! Later parts and later versions of incoming messages: further photos of an album, edits and deletions.
//!
//! A part joins the first message of its album while that message's turn is queued; later it becomes a message without
//! a turn. A version is a separate message. It gets no turn if the first version was answered.

use std::{collections::HashSet, sync::Arc, time::Duration};

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Set};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    append::{preview, rewrite},
    attachments,
    entity::messages,
    incoming::{Incoming, bounded_name, bounded_text, store_files},
    queries, rows,
    turn_messages::announce_changed,
    turns,
};
use crate::{
    base::{
        bounds::LIST,
        enums::{ConversationStatus, TurnState},
        ids::{ChannelId, ConversationId, MessageId, OrgId},
        json::texts,
        problem::Result,
    },
    core::{Core, access::Scope, store::Tx},
};

/// Precedes a later version.
const EDITED: &str = "edited: ";

/// A message and its conversation.
type StoredMessage = (ConversationId, MessageId);

/// Whether this message is a part or a version of an earlier message of the channel, by its album or its vendor id.
pub async fn has_earlier(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    message: &muster_channels::Inbound,
) -> Result<bool> {
    let version_of = message.vendor_id.as_ref().filter(|_| message.is_edit);
    // PostgreSQL accepts no NUL in texts.
    let usable = |value: &&String| !value.contains('\0');
    let scope = Scope::system(core, org);
    if let Some(vendor_id) = version_of.filter(usable)
        && queries::has_vendor_id(&scope, channel, &bounded_name(vendor_id)).await?
    {
        return Ok(true);
    }
    match message.album.as_ref().filter(usable) {
        Some(album) => queries::has_album(&scope, channel, &bounded_name(album)).await,
        None => Ok(false),
    }
}

/// Whether the channel has a conversation of this thread, or of the one that it is part of.
pub async fn has_thread(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    thread: &muster_channels::Thread,
) -> Result<bool> {
    let keys = [thread.key.as_str(), muster_channels::thread_root(&thread.key)].map(bounded_name);
    queries::has_thread(&Scope::system(core, org), channel, keys).await
}

/// The newest album of a conversation, and the length of its parts' keys, which grows with each part.
pub async fn newest_album(tx: &Tx, conversation: ConversationId) -> Result<Option<(MessageId, i64)>> {
    let album = queries::newest_album(tx, conversation).await?;
    Ok(album.map(|album| (album.id, album.length)))
}

/// Handles a message that needs no row: a part joins the first message, and a repetition changes nothing. Returns the
/// stored message then. Otherwise adjusts the text of `incoming`, and whether it gets a turn.
pub(super) async fn join_earlier(tx: &Tx, incoming: &mut Incoming<'_>) -> Result<Option<StoredMessage>> {
    if incoming.is_edit {
        return apply_version(tx, incoming).await;
    }
    let Some(first) = load_first_of_album(tx, incoming).await? else { return Ok(None) };
    let place = (first.conversation_id, first.id);
    let key = incoming.key.clone().unwrap_or_default();
    if texts(&first.album_keys).contains(&key) {
        return Ok(Some(place));
    }
    let is_fresh = first.created_at >= tx.now.minus(Duration::from_secs(10));
    if is_fresh && load_turn_state(tx, &first).await? == Some(TurnState::Queued) {
        join_album(tx, first, key, incoming).await?;
        return Ok(Some(place));
    }
    incoming.is_answered = false;
    Ok(None)
}

/// The first message of an album.
async fn load_first_of_album(tx: &Tx, incoming: &Incoming<'_>) -> Result<Option<messages::Model>> {
    let Some(album) = &incoming.album else { return Ok(None) };
    let of_album =
        tx.scope.find::<messages::Entity>().filter(messages::Column::ViaChannelId.eq(incoming.channel));
    let of_album = of_album.filter(messages::Column::Album.eq(bounded_name(album)));
    Ok(of_album.order_by_asc(messages::Column::Id).one(tx.connection()).await?)
}

async fn load_turn_state(tx: &Tx, message: &messages::Model) -> Result<Option<TurnState>> {
    match message.turn_id {
        Some(turn) => turns::state_of(tx, turn).await,
        None => Ok(None),
    }
}

/// Adds a part's files and words to the first message.
async fn join_album(tx: &Tx, first: messages::Model, key: String, incoming: &Incoming<'_>) -> Result<()> {
    let (files, more) = store_files(tx, incoming).await?;
    for file in files {
        attachments::attach(tx, first.id, file).await?;
    }
    let (id, mut conversation) = (first.id, rows::load(tx, first.conversation_id).await?);
    let said = first.content["text"].as_str().unwrap_or_default().to_owned();
    let mut keys = texts(&first.album_keys);
    keys.push(key);
    // Each part of an album that answers a message repeats that message.
    let known: HashSet<&str> = said.split("\n\n").collect();
    let more =
        more.trim().split("\n\n").filter(|paragraph| !paragraph.is_empty() && !known.contains(paragraph));
    let more: Vec<&str> = more.collect();
    if more.is_empty() {
        announce_changed(tx, conversation.id, id);
    } else {
        let mut content = first.content.clone();
        content["text"] = json!(bounded_text(&format!("{said}\n\n{}", more.join("\n\n"))));
        rewrite(tx, &mut conversation, &first, content).await?;
    }
    let mut message = first.into_active_model();
    message.album_keys = Set(json!(keys));
    message.update(tx.connection()).await?;
    rows::announce(tx, conversation.agent_id, conversation.id);
    Ok(())
}

/// Adjusts the text and the turn of a later version. Returns the last version if this one is ignored: it has the same
/// text, or needs no answer in an archived conversation.
async fn apply_version(tx: &Tx, incoming: &mut Incoming<'_>) -> Result<Option<StoredMessage>> {
    let names = incoming.files.iter().map(|file| file.filename.as_str()).collect::<Vec<_>>().join(", ");
    if incoming.full_text().trim().is_empty() {
        incoming.text = names;
    }
    let now = incoming.full_text();
    incoming.text.insert_str(0, EDITED);
    let Some((first, last)) = load_versions(tx, incoming).await? else { return Ok(None) };
    let said = last.content["text"].as_str().unwrap_or_default();
    // It was answered, or gets no answer.
    let is_over = |state| matches!(state, None | Some(TurnState::Done));
    if is_over(load_turn_state(tx, &first).await?)
        || is_over(load_turn_state(tx, &last).await?)
        || now.is_empty()
    {
        incoming.is_answered = false;
    }
    let conversation = rows::load(tx, last.conversation_id).await?;
    if !incoming.is_answered && conversation.status == ConversationStatus::Archived {
        return Ok(Some((last.conversation_id, last.id)));
    }
    if now.is_empty() {
        incoming.text = format!("[This message was deleted: “{}”]", preview(said));
        return Ok(None);
    }
    let kept = attachments::digests(tx, &load_known_versions(tx, incoming, first.id).await?).await?;
    incoming.files.retain(|file| !kept.contains(Sha256::digest(&file.content).as_slice()));
    let is_same = said == bounded_text(&now) || said == bounded_text(&incoming.full_text());
    Ok((is_same && incoming.files.is_empty()).then_some((last.conversation_id, last.id)))
}

/// The versions of a message to compare files with: the first, and the newest hundred, since senders can edit without
/// limit.
async fn load_known_versions(tx: &Tx, incoming: &Incoming<'_>, first: MessageId) -> Result<Vec<MessageId>> {
    let newest = tx.scope.find::<messages::Entity>();
    let newest = newest.filter(messages::Column::ViaChannelId.eq(incoming.channel));
    let newest =
        newest.filter(messages::Column::VendorId.eq(incoming.vendor_id.as_deref().map(bounded_name)));
    let newest = newest.order_by_desc(messages::Column::Id).limit(LIST as u64).select_only();
    let newest = newest.column(messages::Column::Id).into_tuple::<MessageId>();
    let mut versions = newest.all(tx.connection()).await?;
    versions.push(first);
    // The files of parts belong to the album's first message.
    versions.extend(load_first_of_album(tx, incoming).await?.map(|album| album.id));
    Ok(versions)
}

/// The first version of a message, or of its album, and the last.
async fn load_versions(
    tx: &Tx,
    incoming: &Incoming<'_>,
) -> Result<Option<(messages::Model, messages::Model)>> {
    let Some(id) = &incoming.vendor_id else { return Ok(None) };
    let all = || {
        let all = tx.scope.find::<messages::Entity>();
        let all = all.filter(messages::Column::ViaChannelId.eq(incoming.channel));
        all.filter(messages::Column::VendorId.eq(bounded_name(id)))
    };
    let first = all().order_by_asc(messages::Column::Id).one(tx.connection()).await?;
    let last = all().order_by_desc(messages::Column::Id).one(tx.connection()).await?;
    Ok(match first.zip(last) {
        None => load_first_of_album(tx, incoming).await?.map(|first| (first.clone(), first)),
        both => both,
    })
}

/// Whether a message only reports that an earlier one was deleted.
#[must_use]
pub fn is_deletion(message: &muster_channels::Inbound) -> bool {
    message.is_edit && message.text.is_empty() && message.context.is_empty() && message.files.is_empty()
}
