//! Notices in a conversation about messages that came in elsewhere: events for people, each with a link.
//!
//! A notice starts no turn and is not sent through a channel, so it never causes another. It names the channel and the
//! conversation, and nothing that was said or by whom: its readers may not be allowed to read the other conversation.

use std::{collections::BTreeMap, slice, time::Duration};

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect};
use serde_json::{Value, json};

use super::{
    append::{NewMessage, append_all},
    entity::{conversations, messages},
    rows::load,
};
use crate::{
    base::{
        bounds::HISTORY,
        enums::{ConversationStatus, MessageKind, MessageRole},
        ids::ConversationId,
        problem::Result,
    },
    core::store::Tx,
};

/// How long a conversation is not named again, so that a lively one does not fill the thread with its notices.
const QUIET: Duration = Duration::from_mins(10);

/// Conversations in which messages came in, with the names of their channels.
pub type Sources = BTreeMap<ConversationId, String>;

/// Appends a notice of each source to a conversation, unless it is archived. Locks it until the transaction ends.
pub async fn append_notices(tx: &Tx, target: ConversationId, mut sources: Sources) -> Result<()> {
    sources.remove(&target);
    if sources.is_empty() {
        return Ok(());
    }
    let target = load(tx, target).await?;
    if target.status == ConversationStatus::Archived {
        return Ok(());
    }
    for named in load_named(tx, &target).await? {
        sources.remove(&named);
    }
    let named = tx.scope.find::<conversations::Entity>();
    let named = named.filter(conversations::Column::Id.is_in(sources.keys().copied()));
    let named = named.order_by_asc(conversations::Column::Id).select_only();
    let named = named.column(conversations::Column::Id).column(conversations::Column::Ref);
    let named: Vec<(ConversationId, String)> = named.into_tuple().all(tx.connection()).await?;
    let notices = named.into_iter().filter_map(|(source, reference)| {
        let text = format!("A message came in through {}: conversation {reference}.", sources.get(&source)?);
        let content = json!({ "event": "CHANNEL_MESSAGE", "text": text, "conversation_id": source });
        Some(NewMessage::new(target.id, MessageRole::System, MessageKind::Event, content))
    });
    append_all(tx, slice::from_ref(&target), notices.collect()).await?;
    Ok(())
}

/// The conversations named in the last ten minutes, among the last hundred messages.
async fn load_named(tx: &Tx, target: &conversations::Model) -> Result<Vec<ConversationId>> {
    use messages::Column;
    let recent = tx.scope.find::<messages::Entity>().filter(Column::ConversationId.eq(target.id));
    let recent = recent.filter(Column::Seq.gt(target.last_seq - HISTORY));
    let recent = recent.filter(Column::CreatedAt.gt(tx.now.minus(QUIET)));
    let recent = recent.filter(Column::Kind.eq(MessageKind::Event)).select_only().column(Column::Content);
    let contents: Vec<Value> = recent.into_tuple().all(tx.connection()).await?;
    let named = contents.iter().filter_map(|content| content["conversation_id"].as_i64());
    Ok(named.map(ConversationId).collect())
}
