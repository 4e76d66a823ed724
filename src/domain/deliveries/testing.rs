//! Tests of channels: a text, sent once, while a person waits for the vendor's answer. It joins no conversation,
//! and its result changes nothing: the next message shows again whether the channel works.

use std::sync::Arc;

use muster_channels::{Part, Rendered, Transport, render_plain};
use serde_json::json;

use crate::{
    base::{
        bounds,
        enums::{self, ChangeOp, ChannelDirection, RecordKind},
        ids::{ChannelId, ConversationId},
        permission::Permission,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{access::Scope, audit, sealing::random_bytes, store::Tx},
    domain::{
        channels::{self, Channel},
        conversations, orgs,
    },
};

/// Sends the text through a channel: to one of its conversations, or without one to a webhook's URL, or from a mailbox
/// to the caller's own address, so that no stranger gets it. Returns why the vendor did not take it, or may not have.
///
/// # Errors
/// `NOT_FOUND`, `ORGANIZATION_STOPPED`; `PERMISSION_DENIED` for a conversation without `agent.interact`, and for a
/// service token where its own address is needed; `VALIDATION_FAILED` if the transport needs a conversation; `CONFLICT`
/// if the channel does not send at present; `NOT_SUPPORTED`; `RATE_LIMITED` by the vendor's limits.
pub async fn test_channel(
    scope: &Scope,
    id: ChannelId,
    to: Option<ConversationId>,
) -> Result<Option<String>> {
    let core = &scope.core;
    let tx = scope.begin().await?;
    orgs::require_going(&tx).await?;
    let channel = channels::lock(&tx, id).await?.ok_or_else(|| Problem::not_found("channel", id))?;
    let target = find_target(&tx, &channel, to).await?;
    let transport = open(&tx, &channel)?;
    let permit = core.queue.send_limits.take(&core.clock, (scope.org, id), &*transport, &target);
    let permit = permit.map_err(|reached| {
        let detail = "The channel has sent as much as its vendor allows at the moment.";
        Problem::new(Code::RateLimited, detail).with("retry_after", reached.wait.as_secs() + 1)
    })?;
    let (operation, op, kind) = ("testChannel", ChangeOp::Updated, RecordKind::Channel);
    let changes = to.map_or_else(|| json!({}), |to| json!({ "conversation": to }));
    audit::record(&tx, audit::Entry { operation, op, kind, id: id.0, changes });
    let now = tx.now;
    tx.commit().await?;
    let error = send_text(&*transport, &channel.name, &target, now).await;
    drop(permit);
    Ok(error)
}

/// The target of a test, as the transport writes it. A webhook's URL needs none.
async fn find_target(tx: &Tx, channel: &Channel, to: Option<ConversationId>) -> Result<String> {
    if let Some(id) = to {
        tx.scope.require(Permission::AgentInteract)?;
        return conversations::target_in_channel(tx, channel.id, id).await;
    }
    match channel.transport {
        enums::Transport::Webhook => Ok(String::new()),
        enums::Transport::Email => Ok(tx.scope.person()?.email.clone()),
        other => {
            let detail = format!("A message through a {other} channel needs one of its conversations.");
            Err(Problem::invalid_parameter("conversation_id", "REQUIRED", detail))
        }
    }
}

/// Opens a channel that sends messages now.
fn open(tx: &Tx, channel: &Channel) -> Result<Arc<dyn Transport>> {
    let waits = channel.send_after.is_some_and(|from| from > tx.now);
    if !channel.is_active || channel.direction == ChannelDirection::Inbound || waits {
        let detail = "The channel is switched off, does not send, or waits as its vendor asked.";
        return Err(Problem::new(Code::Conflict, detail));
    }
    let transport = channels::open(&tx.scope.core, channel)?;
    transport.filter(|transport| transport.traits().longest.count > 0).ok_or_else(|| {
        let detail = format!("{} channels send no messages.", channel.transport);
        Problem::new(Code::NotSupported, detail)
    })
}

/// Sends the text once. Returns why it was not sent, or may not have been.
async fn send_text(transport: &dyn Transport, channel: &str, target: &str, now: Timestamp) -> Option<String> {
    let facts = transport.traits();
    let nonce = hex::encode(random_bytes::<8>());
    // Where messages have no ids of ours, an earlier test with the same text would pass for this one.
    let text = format!("This is test {nonce} of the channel {channel}.");
    let text = render_plain(&text, facts.dialect, facts.longest).into_iter().next();
    let text = text.unwrap_or_else(|| Rendered { text: String::new(), plain: String::new() });
    let id = format!("test_{nonce}");
    let part = Part {
        id: &id,
        conversation: &id,
        scene: None,
        target,
        text: &text,
        speaker: None,
        reply_to: None,
        refs: &[],
        title: Some("Test"),
        buttons: &[],
        files: &[],
        replaces: None,
        written_at: jiff::Timestamp::from_millisecond(now.0).unwrap_or_default(),
    };
    match tokio::time::timeout(bounds::NETWORK_WAIT, transport.send(&part)).await {
        Ok(Ok(_)) => None,
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some("The vendor did not answer in time. The message may have arrived.".to_owned()),
    }
}
