//! Watchers of a conversation, who are notified of its agent's questions. A person who starts a conversation watches
//! it.

use super::{
    agent_of,
    queries::{delete_watch, insert_watch},
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ConversationId,
        problem::Result,
    },
    core::{access::Scope, events::Event},
};

/// Sets whether the caller watches a conversation.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token.
pub async fn watch(scope: &Scope, id: ConversationId, watches: bool) -> Result<()> {
    let person = scope.person()?.id;
    let tx = scope.begin().await?;
    let agent = agent_of(&tx, id).await?;
    let changes =
        if watches { insert_watch(&tx, id, person).await? } else { delete_watch(&tx, id, person).await? };
    if !changes {
        return Ok(());
    }
    // Watching is private.
    let watched = Event::new(scope.org, ChangeOp::Updated, RecordKind::Conversation, id);
    tx.announce(watched.with_parent(agent).only(person));
    tx.commit().await
}
