//! The storage that messages take, and full storage: incoming messages, people and programs are refused, running turns
//! are cancelled, and one EVENT replaces agents' messages. Retention (`retention.rs`) or a larger plan makes room.
//!
//! A message's bytes are added to its conversation's row, which is written with it anyway, and summed each minute.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    append::{NewMessage, append_all, preview},
    entity::conversations,
    queries,
    rows::load,
    tokenizer::text_of,
    turns,
};
use crate::{
    base::{
        enums::{MessageKind, MessageRole},
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Scope, job_counts::Tally, store::Tx},
    domain::orgs,
};

/// Replaces agents' messages.
const FULL_TEXT: &str =
    "The organization's storage is full, so the agent's turn was cancelled, and its messages are not stored.";

/// Sums the storage of organizations, and cancels the turns of those without room. Returns the number of those.
pub async fn count_stored(core: &Arc<Core>) -> Result<u64> {
    let mut filled = Tally::default();
    for org in orgs::count_stored(core).await? {
        filled.add(org, stop_turns(&Scope::system(core, org)).await);
    }
    filled.close()
}

/// Cancels the organization's turns, with an event in their conversations.
async fn stop_turns(scope: &Scope) -> Result<bool> {
    let tx = scope.begin().await?;
    let open = queries::with_running_turns(&tx).await?;
    let cancelled = turns::cancel_all(&tx, None).await?;
    for id in open {
        let conversation = load(&tx, id).await?;
        append_full_event(&tx, &conversation).await?;
    }
    tx.commit().await?;
    tracing::warn!(org = scope.org.0, cancelled, "storage.full");
    Ok(true)
}

/// The bytes of a conversation's readers. A stranger's mail can name many, and they stay when messages are removed.
pub(super) fn readers_bytes(readers: &Value) -> i64 {
    let is_empty = readers.as_array().is_none_or(Vec::is_empty);
    if is_empty { 0 } else { i64::try_from(readers.to_string().len()).unwrap_or(i64::MAX) }
}

/// Whether the organization's storage is full.
pub(super) fn is_full(tx: &Tx) -> bool {
    tx.scope.core.full.has(tx.scope.org)
}

/// Appends the event about full storage to a locked conversation, unless it is the last message.
pub(super) async fn append_full_event(tx: &Tx, conversation: &conversations::Model) -> Result<()> {
    let content = json!({ "event": "storage_full", "text": FULL_TEXT });
    let shown = preview(&text_of(MessageKind::Event, &content));
    let is_last = conversation.last_message_kind == Some(MessageKind::Event)
        && conversation.last_message_preview.as_deref() == Some(shown.as_str());
    if is_last {
        return Ok(());
    }
    let new = NewMessage::new(conversation.id, MessageRole::System, MessageKind::Event, content);
    append_all(tx, std::slice::from_ref(conversation), vec![new]).await?;
    Ok(())
}

/// Refuses messages from channels if the storage is full.
///
/// # Errors
/// `STORAGE_FULL`.
pub fn require_room(core: &Core, org: OrgId) -> Result<()> {
    if !core.full.has(org) {
        return Ok(());
    }
    let detail = "The organization's storage is full: no messages are accepted until there is room.";
    Err(Problem::new(Code::StorageFull, detail))
}
