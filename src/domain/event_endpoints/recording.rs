//! Queues events for the endpoints that want them, in the transaction of what happened, so that neither exists without
//! the other.

use sea_orm::{EntityTrait, NotSet, Set};

use super::{entity::event_deliveries, page_link, payload::Event, queries};
use crate::{
    base::{
        bounds,
        enums::{ApprovalKind, EventDeliveryStatus},
        ids::{AgentId, ApprovalId, ConversationId},
        problem::Result,
    },
    core::{queue, store::Tx},
    domain::{
        approvals, channels,
        conversations::{self, AddedMessage, turns},
        launch,
    },
};

/// An agent has failed.
pub async fn agent_failed(tx: &Tx, failed: &launch::Failed) -> Result<()> {
    let (agent_id, organization_id) = (failed.agent.0, tx.scope.org.0);
    let url = link(tx, &format!("agents/{agent_id}"));
    enqueue(tx, &[Event::AgentFailed { organization_id, agent_id, url }]).await
}

/// An approval was raised. One about spending also says that a limit was reached.
pub async fn approval_raised(tx: &Tx, raised: &approvals::Raised) -> Result<()> {
    let (organization_id, approval_id) = (tx.scope.org.0, raised.approval.0);
    let (agent_id, conversation_id) = about(raised.agent, raised.conversation);
    let url = approval_link(tx, raised.approval);
    if raised.kind == ApprovalKind::CostGuard {
        let url = url.clone();
        let event = Event::SpendingReached { organization_id, agent_id, approval_id, url };
        enqueue(tx, &[event]).await?;
    }
    let event = Event::ApprovalRaised { organization_id, approval_id, agent_id, conversation_id, url };
    enqueue(tx, &[event]).await
}

/// An approval has ended.
pub async fn approval_decided(tx: &Tx, closed: &approvals::Closed) -> Result<()> {
    let (organization_id, approval_id) = (tx.scope.org.0, closed.approval.0);
    let (agent_id, conversation_id) = about(closed.agent, closed.conversation);
    let url = approval_link(tx, closed.approval);
    let event = Event::ApprovalDecided { organization_id, approval_id, agent_id, conversation_id, url };
    enqueue(tx, &[event]).await
}

/// Messages were added to conversations.
pub async fn messages_added(tx: &Tx, added: &conversations::Added) -> Result<()> {
    let event = |message: &AddedMessage| Event::MessageAdded {
        organization_id: tx.scope.org.0,
        agent_id: message.agent.0,
        conversation_id: message.conversation.0,
        message_id: message.id.0,
        seq: message.seq,
        url: link(tx, &format!("conversations/{}", message.conversation)),
    };
    let events: Vec<_> = added.messages.iter().map(event).collect();
    enqueue(tx, &events).await
}

/// A turn has ended.
pub async fn turn_ended(tx: &Tx, ended: &turns::Ended) -> Result<()> {
    let event = Event::TurnEnded {
        organization_id: tx.scope.org.0,
        agent_id: ended.agent.0,
        conversation_id: ended.conversation.0,
        turn_id: ended.turn.0,
        url: link(tx, &format!("conversations/{}", ended.conversation)),
    };
    enqueue(tx, &[event]).await
}

/// A channel was switched off by the service.
pub async fn channel_deactivated(tx: &Tx, failed: &channels::Failed) -> Result<()> {
    let event = Event::ChannelDeactivated {
        organization_id: tx.scope.org.0,
        channel_id: failed.channel.0,
        agent_id: failed.agent.0,
        url: link(tx, &format!("channels?peek={}", failed.channel)),
    };
    enqueue(tx, &[event]).await
}

/// Writes a row for each of these events, of one type, and each endpoint that wants it. An organization without one pays a
/// single statement. The endpoints stay locked against edits, so that no event waits in one that was switched on meanwhile.
async fn enqueue(tx: &Tx, events: &[Event]) -> Result<()> {
    let Some(kind) = events.first().map(Event::kind) else { return Ok(()) };
    let endpoints = queries::wanting(tx, kind).await?;
    if endpoints.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::new();
    for event in events {
        let (subject, data) = (event.subject(), event.data()?);
        rows.extend(endpoints.iter().map(|endpoint| event_deliveries::ActiveModel {
            organization_id: Set(tx.scope.org),
            id: NotSet,
            endpoint_id: Set(endpoint.id),
            r#type: Set(kind),
            subject: Set(subject.clone()),
            data: Set(data.clone()),
            status: Set(if endpoint.is_active {
                EventDeliveryStatus::Pending
            } else {
                EventDeliveryStatus::Waiting
            }),
            attempts: Set(0),
            available_at: Set(tx.now),
            error: Set(None),
            created_at: Set(tx.now),
            sent_at: Set(None),
        }));
    }
    for rows in rows.chunks(bounds::ROWS as usize) {
        let rows = rows.to_vec();
        event_deliveries::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    }
    queue::wake_after(&tx.scope.core, tx.connection());
    Ok(())
}

fn about(agent: Option<AgentId>, conversation: Option<ConversationId>) -> (Option<i64>, Option<i64>) {
    (agent.map(i64::from), conversation.map(i64::from))
}

fn approval_link(tx: &Tx, id: ApprovalId) -> String {
    link(tx, &format!("approvals/{id}"))
}

fn link(tx: &Tx, page: &str) -> String {
    page_link(&tx.scope.core, tx.scope.org, page)
}
