//! Agents' actions at the vendor of a conversation's channel, beyond messages, such as a reaction. Each is an EVENT of the
//! conversation, and is carried by [`deliveries`](crate::domain::deliveries) like a message.
//!
//! A host judges an action before it calls it here ([`approvals`](crate::domain::approvals)), as every call that crosses
//! the agent's boundary.

use std::{slice, time::Duration};

use muster_protocol::{
    is_too_deep,
    plan::{Action as OfferedAction, ActionCall, ActionOutcome, MCP_KIND, tool_of_action},
};
use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    append::{NewMessage, VendorAction, append_all},
    entity::{conversations, messages},
    queries::{self, ActionDelivery},
    rows::load,
    storage::require_room,
    turns,
};
use crate::{
    base::{
        bounds,
        enums::{DeliveryStatus, MessageKind, MessageRole, RecordKind},
        ids::{AgentId, ConversationId, MessageId},
        plain::{lines_without_controls, truncated, without_nul},
        problem::{Code, Problem, Result},
    },
    core::{
        News,
        access::{Caller, Scope},
        events::Subscription,
        store::Tx,
    },
    domain::{
        agents::{self, LockedAgent},
        channels, orgs,
    },
};

/// The actions that the agent may use in a conversation.
///
/// # Errors
/// `NOT_FOUND`; `AGENT_NOT_RUNNING` for a launch that is not the agent's current one.
pub async fn offered_actions(
    scope: &Scope,
    agent: AgentId,
    generation: i64,
    id: ConversationId,
) -> Result<Vec<OfferedAction>> {
    let tx = scope.begin().await?;
    let agent = agents::lock_present(&tx, agent, generation).await?;
    let conversation = load_of(&tx, &agent, id).await?;
    let rules = agents::load_approval_rules(&tx, agent.id).await?;
    let actions = actions_of(&tx, &conversation).await?;
    tx.rollback().await?;
    let usable = actions.iter().filter(|action| !rules.disables(MCP_KIND, &tool_of_action(action.name)));
    usable.map(offer).collect()
}

fn offer(action: &muster_channels::Action) -> Result<OfferedAction> {
    Ok(OfferedAction {
        name: action.name.to_owned(),
        title: action.title.to_owned(),
        description: action.description.to_owned(),
        schema: muster_json::from_str(action.schema).map_err(Problem::internal)?,
    })
}

/// An action whose outcome is not known yet.
pub struct Acting {
    scope: Scope,
    message: MessageId,
    delivery: i64,
    changes: Subscription,
    wait: Duration,
}

/// Starts an action. A repeated call is the same action.
///
/// # Errors
/// `NOT_FOUND`; `AGENT_NOT_RUNNING`; `ORGANIZATION_STOPPED`; `STORAGE_FULL`; `CONFLICT` if the channel does not offer it
/// now, or a person answers instead of the agent; `VALIDATION_FAILED`.
pub async fn act(scope: &Scope, agent: AgentId, generation: i64, call: ActionCall) -> Result<Acting> {
    // Before the delivery exists, so that no change of it is missed.
    let changes = scope.core.events.subscribe(scope.org, &Caller::System);
    let wait = Duration::from_millis(call.wait_ms.max(0).cast_unsigned()).min(bounds::NETWORK_WAIT);
    let tx = scope.begin().await?;
    let agent = agents::lock_present(&tx, agent, generation).await?;
    let conversation = load_of(&tx, &agent, ConversationId(call.conversation_id)).await?;
    let key = truncated(&format!("act.{}", call.key), bounds::NAME);
    let message = match find_by_key(&tx, conversation.id, &key).await? {
        Some(known) => known,
        None => append_action(&tx, &conversation, key, call).await?,
    };
    tx.commit().await?;
    let delivery = queries::action_delivery(scope, message).await?;
    let delivery = delivery.ok_or_else(|| Problem::not_found("message", message))?.id;
    Ok(Acting { scope: scope.clone(), message, delivery, changes, wait })
}

impl Acting {
    /// Waits for the outcome.
    pub async fn outcome(mut self) -> ActionOutcome {
        let wait = self.wait;
        match timeout(wait, self.settled()).await {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(problem)) => {
                tracing::warn!(org = self.scope.org.0, delivery = self.delivery, %problem, "acting.not_watched");
            }
            Err(_) => {}
        }
        ActionOutcome::Queued { delivery_id: self.delivery }
    }

    async fn settled(&mut self) -> Result<ActionOutcome> {
        loop {
            let delivery = queries::action_delivery(&self.scope, self.message).await?;
            let delivery = delivery.ok_or_else(|| Problem::not_found("message", self.message))?;
            if let Some(outcome) = outcome_of(delivery) {
                return Ok(outcome);
            }
            self.changed().await;
        }
    }

    /// Waits until the message may have changed.
    async fn changed(&mut self) {
        loop {
            match self.changes.next().await {
                Some((News::Changed(event), _))
                    if event.kind == RecordKind::Message && event.id == self.message.0 =>
                {
                    return;
                }
                Some((News::Resync, _)) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// The outcome of a delivery. `None`: not known yet.
fn outcome_of(delivery: ActionDelivery) -> Option<ActionOutcome> {
    match delivery.status {
        DeliveryStatus::Pending | DeliveryStatus::Sending => None,
        DeliveryStatus::Sent | DeliveryStatus::Delivered | DeliveryStatus::Read => {
            Some(ActionOutcome::Done { vendor_id: delivery.vendor_id })
        }
        DeliveryStatus::Failed | DeliveryStatus::Skipped => {
            let reason = delivery.error.unwrap_or_else(|| "It was not done.".to_owned());
            Some(ActionOutcome::Failed { reason })
        }
    }
}

/// Loads a conversation of this agent, and locks it.
async fn load_of(tx: &Tx, agent: &LockedAgent, id: ConversationId) -> Result<conversations::Model> {
    let conversation = load(tx, id).await?;
    if conversation.agent_id == agent.id {
        Ok(conversation)
    } else {
        Err(Problem::not_found("conversation", id))
    }
}

/// The actions that the conversation's channel offers now.
async fn actions_of(
    tx: &Tx,
    conversation: &conversations::Model,
) -> Result<&'static [muster_channels::Action]> {
    match conversation.channel_id.filter(|_| conversation.target.is_some()) {
        Some(channel) => channels::offered_actions(tx, channel).await,
        None => Ok(&[]),
    }
}

async fn find_by_key(tx: &Tx, conversation: ConversationId, key: &str) -> Result<Option<MessageId>> {
    let known = tx.scope.find::<messages::Entity>().filter(messages::Column::ConversationId.eq(conversation));
    let known = known.filter(messages::Column::HostKey.eq(key)).select_only().column(messages::Column::Id);
    Ok(known.into_tuple::<MessageId>().one(tx.connection()).await?)
}

/// Appends the event that shows the action, with its delivery.
async fn append_action(
    tx: &Tx,
    conversation: &conversations::Model,
    key: String,
    call: ActionCall,
) -> Result<MessageId> {
    if orgs::is_stopped(tx).await? {
        return Err(Problem::new(Code::OrganizationStopped, "The organization is stopped."));
    }
    require_room(&tx.scope.core, tx.scope.org)?;
    if conversation.taken_over_by.is_some() {
        return Err(Problem::new(Code::Conflict, "A person answers instead of the agent."));
    }
    let actions = actions_of(tx, conversation).await?;
    let none = || Problem::new(Code::Conflict, "This conversation's channel doesn't offer this now.");
    let action = actions.iter().find(|action| action.name == call.name).ok_or_else(none)?;
    let arguments = check_arguments(action, call.arguments)?;
    let written = arguments.to_string();
    let text = truncated(&lines_without_controls(&format!("{}: {written}", action.title)), bounds::REASON);
    let content = json!({ "event": "ACTION", "text": text, "action": action.name, "arguments": arguments });
    let new = NewMessage {
        turn: turns::find_open_turn(tx, conversation.id).await?,
        host_key: Some(key),
        action: Some(VendorAction { name: action.name.to_owned(), arguments: written }),
        ..NewMessage::new(conversation.id, MessageRole::Assistant, MessageKind::Event, content)
    };
    let added = append_all(tx, slice::from_ref(conversation), vec![new]).await?;
    let added = added.into_iter().next();
    added.map(|(id, _)| id).ok_or_else(|| Problem::internal(anyhow::anyhow!("a message without a row")))
}

fn check_arguments(action: &muster_channels::Action, arguments: Value) -> Result<Value> {
    let invalid = |why: &str| Problem::invalid_at("/arguments", "NOT_ALLOWED", why);
    let arguments = without_nul(arguments);
    if is_too_deep(&arguments) || arguments.to_string().len() > bounds::MESSAGE {
        return Err(invalid("The arguments are too large."));
    }
    (action.check)(&arguments).map_err(|cause| invalid(cause.as_str()))?;
    Ok(arguments)
}
