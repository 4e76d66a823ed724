//! What messages take of their organization's storage, and what happens when that is full: nothing more comes in, people and
//! programs are refused, running turns are cancelled, and what agents say meanwhile is one EVENT. Retention makes room
//! (`retention.rs`), and a larger plan.
//!
//! A message's bytes are added to its conversation's row, which is written with it anyway, and summed each minute.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    append::{NewMessage, add_all, preview},
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

/// What is said instead of what agents say.
const FULL_TEXT: &str =
    "The organization's storage is full, so the agent's turn was cancelled, and what it says is not kept.";

/// Counts what organizations store, and cancels the turns of those that have no room left. Returns how many those are.
pub async fn count_stored(core: &Arc<Core>) -> Result<u64> {
    let mut filled = Tally::default();
    for org in orgs::count_stored(core).await? {
        filled.add(org, stop_turns(&Scope::system(core, org)).await);
    }
    filled.close()
}

/// Cancels the organization's turns, and says why in their conversations.
async fn stop_turns(scope: &Scope) -> Result<bool> {
    let tx = scope.begin().await?;
    let open = queries::with_running_turns(&tx).await?;
    let cancelled = turns::cancel_all(&tx, None).await?;
    for id in open {
        let conversation = load(&tx, id).await?;
        append_full_event(&tx, &conversation).await?;
    }
    tx.commit().await?;
    tracing::warn!(organization = scope.org.0, cancelled, "storage.full");
    Ok(true)
}

/// What the addresses take that got a conversation's mails: a stranger's mail names many, and they stay when the messages go.
pub(super) fn readers_bytes(readers: &Value) -> i64 {
    let is_empty = readers.as_array().is_none_or(Vec::is_empty);
    if is_empty { 0 } else { i64::try_from(readers.to_string().len()).unwrap_or(i64::MAX) }
}

/// Whether nothing more is kept of what agents and senders say.
pub(super) fn is_full(tx: &Tx) -> bool {
    tx.scope.core.full.has(tx.scope.org)
}

/// Says in a locked conversation that its messages are not kept, unless that was the last thing that was said.
pub(super) async fn append_full_event(tx: &Tx, conversation: &conversations::Model) -> Result<()> {
    let content = json!({ "event": "storage_full", "text": FULL_TEXT });
    let shown = preview(&text_of(MessageKind::Event, &content));
    let is_told = conversation.last_message_kind == Some(MessageKind::Event)
        && conversation.last_message_preview.as_deref() == Some(shown.as_str());
    if is_told {
        return Ok(());
    }
    let new = NewMessage::new(conversation.id, MessageRole::System, MessageKind::Event, content);
    add_all(tx, std::slice::from_ref(conversation), vec![new]).await?;
    Ok(())
}

/// Refuses what comes in through channels if the storage is full.
///
/// # Errors
/// `STORAGE_FULL`.
pub fn require_room(core: &Core, org: OrgId) -> Result<()> {
    if !core.full.has(org) {
        return Ok(());
    }
    let detail = "The organization's storage is full: nothing more comes in until there is room.";
    Err(Problem::new(Code::StorageFull, detail))
}
