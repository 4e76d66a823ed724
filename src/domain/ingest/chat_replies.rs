//! What people say and tap where they are asked something: codes that link chats, answers, buttons. None of it is a message for an
//! agent, and none of it asks the whitelist: it counts if its author has linked the chat (`domain/chat_approvals`).

use std::sync::Arc;

use muster_channels::{Event, Inbound, Part, Rendered, Transport};

use crate::{
    base::{bounds, enums::ChannelDirection, problem::Result},
    core::Core,
    domain::{
        channels::Channel,
        chat_approvals::{self, Heard},
    },
};

/// Takes what is an answer. Returns what is something else.
///
/// # Errors
/// The database is unreachable: nothing was taken.
pub(super) async fn heard(
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
            let heard = match asks::introduce(core, place, &message).await? {
                Heard::NotOurs => asks::answered(core, place, &message).await?,
                heard => heard,
            };
            match heard {
                Heard::NotOurs => return Ok(Some(Event::Message(message))),
                Heard::Answer(text) => {
                    // Counted, and never held up: someone waits for it.
                    let room = core.queue.pace.take(&core.clock, place, transport, &message.thread.target);
                    say(transport, &message, &text).await;
                    drop(room);
                }
                Heard::Nothing => {}
            }
        }
        Event::Pressed(press) => {
            let text = asks::pressed(core, place, &press).await?;
            let told = tokio::time::timeout(bounds::ANSWER_WAIT, transport.answer(&press, &text)).await;
            if let Ok(Err(failure)) = told {
                tracing::warn!(channel = channel.id.0, %failure, "channel.tap_not_answered");
            }
        }
        other => return Ok(Some(other)),
    }
    Ok(None)
}

/// Answers a message where it was written.
async fn say(transport: &dyn Transport, message: &Inbound, text: &str) {
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
        tracing::warn!(%failure, "channel.answer_not_sent");
    }
}
