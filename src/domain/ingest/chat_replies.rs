//! Replies to approvals in chats: linking codes, answers, tapped buttons. They are not messages for an agent and do not
//! depend on the whitelist: a reply counts if its author has linked the chat (`domain/chat_approvals`).

use std::sync::Arc;

use muster_channels::{Event, Inbound, Part, Rendered, Transport};

use crate::{
    base::{bounds, enums::ChannelDirection, problem::Result},
    core::Core,
    domain::{
        channels::Channel,
        chat_approvals::{self, ReplyOutcome},
    },
};

/// Handles a reply. Returns any other event.
///
/// # Errors
/// The database is unreachable: nothing was handled.
pub(super) async fn handle_reply(
    core: &Arc<Core>,
    channel: &Channel,
    transport: &dyn Transport,
    event: Event,
) -> Result<Option<Event>> {
    if !channel.is_active || channel.direction == ChannelDirection::Outbound {
        return Ok(Some(event));
    }
    let place = (channel.organization_id, channel.id);
    match event {
        // An edit is never an answer.
        Event::Message(message) if !message.is_edit => {
            let outcome = match chat_approvals::try_code(core, place, &message).await? {
                ReplyOutcome::NotOurs => chat_approvals::handle_answer(core, place, &message).await?,
                handled => handled,
            };
            match outcome {
                ReplyOutcome::NotOurs => return Ok(Some(Event::Message(message))),
                ReplyOutcome::Answer(text) => {
                    // Counts against the rate limit, but never waits for it: a person waits for the answer.
                    let permit =
                        core.queue.send_limits.take(&core.clock, place, transport, &message.thread.target);
                    send_reply(channel, transport, &message, &text).await;
                    drop(permit);
                }
                ReplyOutcome::Nothing => {}
            }
        }
        Event::Pressed(press) => {
            let text = chat_approvals::handle_press(core, place, &press).await?;
            let answered = tokio::time::timeout(bounds::ANSWER_WAIT, transport.answer(&press, &text)).await;
            if let Ok(Err(failure)) = answered {
                let (org, channel) = (channel.organization_id.0, channel.id.0);
                tracing::warn!(org, channel, %failure, "channel.tap_not_answered");
            }
        }
        other => return Ok(Some(other)),
    }
    Ok(None)
}

/// Answers a message in its chat.
async fn send_reply(channel: &Channel, transport: &dyn Transport, message: &Inbound, text: &str) {
    let facts = transport.traits();
    let nothing = || Rendered { text: String::new(), plain: String::new() };
    let text = muster_channels::render(text, facts.dialect, facts.longest).into_iter().next();
    let text = text.unwrap_or_else(nothing);
    let id = format!("said_{}", message.at.as_millisecond());
    let part = Part {
        id: &id,
        conversation: "",
        scene: None,
        target: &message.thread.target,
        text: &text,
        speaker: None,
        reply_to: message.vendor_id.as_deref(),
        refs: &[],
        title: None,
        buttons: &[],
        files: &[],
        replaces: None,
        written_at: message.at,
    };
    if let Ok(Err(failure)) = tokio::time::timeout(bounds::ANSWER_WAIT, transport.send(&part)).await {
        let (org, channel) = (channel.organization_id.0, channel.id.0);
        tracing::warn!(org, channel, %failure, "channel.answer_not_sent");
    }
}
