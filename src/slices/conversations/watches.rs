//! Who watches a conversation: they are told of what its agent asks there. Whoever starts one watches it.

use sea_orm::{ConnectionTrait, Statement};

use super::agent_of;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{ConversationId, UserId},
        problem::Result,
    },
    core::{access::Scope, events::Event, store::Tx},
};

/// SQL on the conversation `t`: whether the reader watches it. Null for a service token.
pub(in crate::slices::conversations) const WATCHING: &str = "CASE WHEN CAST(:viewer AS BIGINT) IS NULL THEN NULL ELSE EXISTS (SELECT 1 FROM conversation_watches w \
     WHERE w.organization_id = t.organization_id AND w.conversation_id = t.id AND w.user_id = :viewer) END";

/// Sets whether the caller watches a conversation.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token.
pub async fn watch(scope: &Scope, id: ConversationId, watches: bool) -> Result<()> {
    let person = scope.person()?.id;
    let tx = scope.begin().await?;
    let agent = agent_of(&tx, id).await?;
    let changes = if watches { add(&tx, id, person).await? } else { remove(&tx, id, person).await? };
    if !changes {
        return Ok(());
    }
    // Nobody else's business.
    let watched = Event::new(scope.org, ChangeOp::Updated, RecordKind::Conversation, id);
    tx.announce(watched.of(agent).only(person));
    tx.commit().await
}

/// Lets a member watch a conversation. Returns whether they didn't.
pub(super) async fn add(tx: &Tx, id: ConversationId, user: UserId) -> Result<bool> {
    let sql = "INSERT INTO conversation_watches (organization_id, conversation_id, user_id, created_at) \
               VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let values = [tx.scope.org.into(), id.into(), user.into(), tx.now.into()];
    let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    Ok(tx.connection().execute_raw(statement).await?.rows_affected() > 0)
}

async fn remove(tx: &Tx, id: ConversationId, user: UserId) -> Result<bool> {
    let sql = "DELETE FROM conversation_watches WHERE organization_id = $1 AND conversation_id = $2 AND user_id = $3";
    let values = [tx.scope.org.into(), id.into(), user.into()];
    let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    Ok(tx.connection().execute_raw(statement).await?.rows_affected() > 0)
}
