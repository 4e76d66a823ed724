//! Rows of conversations: finding and locking them, changing their state, and announcing changes.

use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, sea_query::Expr};

use super::{entity::conversations, queries, state::StatusEvent};
use crate::{
    base::{
        enums::{ChangeOp, ConversationStatus, RecordKind},
        ids::{AgentId, ConversationId, MessageId},
        problem::{Problem, Result},
    },
    core::{
        Event,
        access::Scope,
        store::{Tx, for_update},
    },
};

/// Whether the organization has this conversation.
pub async fn exists(tx: &Tx, id: ConversationId) -> Result<bool> {
    let found = tx.scope.find::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    Ok(found.count(tx.connection()).await? > 0)
}

/// Fails if the organization doesn't have this conversation. Runs outside a transaction.
pub(crate) async fn require(scope: &Scope, id: ConversationId) -> Result<()> {
    let found = scope.find::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    match found.count(scope.core.db.read()).await? {
        0 => Err(Problem::not_found("conversation", id)),
        _ => Ok(()),
    }
}

/// Records that the agent waits for a decision: the conversation is PENDING. An archived one stays archived.
pub async fn await_decision(tx: &Tx, id: ConversationId) -> Result<()> {
    transition(tx, id, StatusEvent::Asked).await
}

/// Records that a decision was made: the conversation is OPEN again, unless the agent waits for another. Call
/// it after the approval's own row has changed.
pub async fn mark_decided(tx: &Tx, id: ConversationId) -> Result<()> {
    if queries::awaits_decision(tx, id).await? {
        Ok(())
    } else {
        transition(tx, id, StatusEvent::Decided).await
    }
}

/// The status of a conversation that changes to `to`: one that opens while its agent waits for a decision is PENDING.
pub(super) async fn awaiting_or(
    tx: &Tx,
    conversation: &conversations::Model,
    to: ConversationStatus,
) -> Result<ConversationStatus> {
    use ConversationStatus::{Archived, Open, Pending, Resolved};
    let opens = to == Open && matches!(conversation.status, Resolved | Archived);
    let waits = opens && queries::awaits_decision(tx, conversation.id).await?;
    Ok(if waits { Pending } else { to })
}

/// Reopens a resolved conversation, as a message to the agent does.
///
/// # Errors
/// `ARCHIVED`.
pub async fn reopen(tx: &Tx, id: ConversationId) -> Result<()> {
    transition(tx, id, StatusEvent::Inbound).await
}

/// Notifies subscribers of a changed conversation of `agent`.
pub(super) fn announce(tx: &Tx, agent: AgentId, id: ConversationId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Conversation, id).with_parent(agent));
}

/// Notifies subscribers of a new message.
pub(super) fn announce_message(tx: &Tx, conversation: ConversationId, id: MessageId) {
    tx.announce(
        Event::new(tx.scope.org, ChangeOp::Created, RecordKind::Message, id).with_parent(conversation),
    );
}

/// Applies the state table to the conversation.
async fn transition(tx: &Tx, id: ConversationId, event: StatusEvent) -> Result<()> {
    let conversation = load(tx, id).await?;
    let status = awaiting_or(tx, &conversation, event.apply(conversation.status)?).await?;
    if status == conversation.status {
        return Ok(());
    }
    tx.scope
        .update::<conversations::Entity>()
        .filter(conversations::Column::Id.eq(id))
        .col_expr(conversations::Column::Status, Expr::value(status.as_str()))
        .col_expr(conversations::Column::ResolvedAt, Expr::value(None::<i64>))
        .col_expr(conversations::Column::UpdatedAt, Expr::value(tx.now.0))
        .exec(tx.connection())
        .await?;
    announce(tx, conversation.agent_id, id);
    Ok(())
}

/// Loads the conversation and locks it until the transaction ends.
pub(super) async fn load(tx: &Tx, id: ConversationId) -> Result<conversations::Model> {
    let found = tx.scope.find::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    let found = for_update(found).one(tx.connection()).await?;
    found.ok_or_else(|| Problem::not_found("conversation", id))
}
