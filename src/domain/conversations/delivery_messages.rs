//! Conversations as deliveries need them: the target of a message, and the result of its delivery.

use muster_channels::{NamedId, Participants};
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, sea_query::Expr};

use super::{
    append::Delivery,
    entity::{conversations, messages},
    queries,
    turn_messages::announce_changed,
};
use crate::{
    base::{
        enums::Transport,
        ids::{ChannelId, ConversationId, MessageId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{access::Scope, store::Tx},
};

/// The target of a message.
#[derive(Clone, Debug)]
pub struct DeliveryTarget {
    /// The conversation's short code.
    pub reference: String,
    /// The address, as the transport writes it.
    pub target: String,
    /// The conversation's.
    pub title: Option<String>,
    pub scene: Option<Participants>,
    /// The person who answers instead of the agent.
    pub speaker: Option<String>,
    /// Vendor ids of earlier messages, oldest first.
    pub refs: Vec<String>,
    /// Those of the incoming ones among them, newest first.
    pub received: Vec<String>,
    pub written_at: Timestamp,
}

/// The target of a message. `None`: it is not sent.
pub async fn load_delivery_target(scope: &Scope, message: MessageId) -> Result<Option<DeliveryTarget>> {
    let db = scope.core.db.read();
    let found = scope.find::<messages::Entity>().filter(messages::Column::Id.eq(message)).one(db).await?;
    let Some(message) = found else { return Ok(None) };
    let of = scope.find::<conversations::Entity>();
    let of = of.filter(conversations::Column::Id.eq(message.conversation_id)).one(db).await?;
    let Some(conversation) = of else { return Ok(None) };
    let Some(target) = conversation.target else { return Ok(None) };
    let scene = load_scene(scope, message.conversation_id, message.seq).await?;
    // Another sender may have written in the mail thread while the answer waited.
    let asker = scene.as_ref().and_then(|scene| scene.origin.clone());
    let target = if conversation.transport == Transport::Email { asker.unwrap_or(target) } else { target };
    let earlier = earlier_vendor_ids(scope, message.conversation_id, message.id).await?;
    let received = earlier.iter().rev().filter(|(_, is_theirs)| *is_theirs).map(|(id, _)| id.clone());
    let received = received.collect();
    Ok(Some(DeliveryTarget {
        reference: conversation.r#ref,
        target,
        title: conversation.title,
        scene,
        speaker: message.author_user_id.and(message.author_name),
        refs: earlier.into_iter().map(|(id, _)| id).collect(),
        received,
        written_at: message.created_at,
    }))
}

/// The target of a channel's conversation.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` if its answers have no target.
pub async fn target_in_channel(tx: &Tx, channel: ChannelId, id: ConversationId) -> Result<String> {
    use conversations::Column;
    let found = tx.scope.find::<conversations::Entity>().filter(Column::Id.eq(id));
    let found = found.filter(Column::ChannelId.eq(channel)).one(tx.connection()).await?;
    let missing = || Problem::new(Code::NotFound, format!("The channel has no conversation with id {id}."));
    let target = found.ok_or_else(missing)?.target;
    target.ok_or_else(|| Problem::new(Code::Conflict, "Nothing can be sent to this conversation."))
}

/// The parties of a conversation, and the last sender before this position.
async fn load_scene(
    scope: &Scope,
    conversation: ConversationId,
    before: i64,
) -> Result<Option<Participants>> {
    let Some(found) = queries::speakers(scope, conversation, before).await? else { return Ok(None) };
    Ok(Some(Participants {
        conversation: conversation.0,
        channel: NamedId { id: found.channel_id, name: found.channel_name },
        agent: NamedId { id: found.agent_id, name: found.agent_name },
        contact: found.contact_id.zip(found.contact_name).map(|(id, name)| NamedId { id, name }),
        origin: found.origin,
    }))
}

/// Vendor ids of earlier messages, oldest first, and whether each is of an incoming message.
async fn earlier_vendor_ids(
    scope: &Scope,
    conversation: ConversationId,
    before: MessageId,
) -> Result<Vec<(String, bool)>> {
    let newest = queries::earlier_vendor_ids(scope, conversation, before, 20).await?;
    Ok(newest.into_iter().rev().map(|earlier| (earlier.vendor_id, earlier.part == 0)).collect())
}

/// Records the state of a message's delivery.
pub async fn record_delivery(tx: &Tx, message: MessageId, delivery: Delivery) -> Result<()> {
    use messages::Column;
    let changed = tx.scope.update::<messages::Entity>().filter(Column::Id.eq(message));
    let changed = changed
        .col_expr(Column::DeliveryStatus, Expr::value(delivery.status.as_str()))
        .col_expr(Column::DeliveryAttempts, Expr::value(delivery.attempts))
        .col_expr(Column::DeliveryError, Expr::value(delivery.error))
        .col_expr(Column::DeliverySentAt, Expr::value(delivery.sent_at));
    for message in changed.exec_with_returning(tx.connection()).await? {
        announce_changed(tx, message.conversation_id, message.id);
    }
    Ok(())
}

/// Changes the target of a conversation's answers.
pub async fn retarget(tx: &Tx, id: ConversationId, target: String) -> Result<()> {
    let moved = tx.scope.update::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    moved.col_expr(conversations::Column::Target, Expr::value(target)).exec(tx.connection()).await?;
    Ok(())
}

/// Moves a chat's conversations to its new id.
pub async fn move_targets(tx: &Tx, channel: ChannelId, from: &str, to: &str) -> Result<()> {
    use conversations::Column;
    for column in [Column::Target, Column::ThreadKey] {
        let moved = tx.scope.update::<conversations::Entity>().filter(Column::ChannelId.eq(channel));
        moved.filter(column.eq(from)).col_expr(column, Expr::value(to)).exec(tx.connection()).await?;
    }
    Ok(())
}

/// Fails if the organization doesn't have this message.
pub async fn require_message(tx: &Tx, id: MessageId) -> Result<()> {
    let found = tx.scope.find::<messages::Entity>().filter(messages::Column::Id.eq(id));
    if found.count(tx.connection()).await? > 0 { Ok(()) } else { Err(Problem::not_found("message", id)) }
}
