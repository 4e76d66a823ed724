//! Text that an agent is writing, for live viewers.

use std::collections::HashMap;

use muster_protocol::frame::Delta;
use tokio::time::Instant;

use super::{Ended, Link, Refusal, queries};
use crate::{
    base::{
        bounds,
        ids::{AgentId, ConversationId},
    },
    core::events,
};

/// The longest text of a delta, in bytes, because a host must not fill the queues of viewers.
const LONGEST: usize = 4 << 10;

/// A connection's cache of the conversations of its agents.
#[derive(Default)]
pub struct Viewing {
    /// By agent, generation and conversation: when it was looked up, and whether it is the agent's.
    known: HashMap<(i64, i64, i64), (Instant, bool)>,
}

impl Viewing {
    /// Publishes a delta to viewers. False: the conversation is not one of the agent's, or the agent not the host's.
    ///
    /// # Errors
    /// The delta is invalid.
    pub async fn show(&mut self, link: &Link, delta: Delta) -> Result<bool, Ended> {
        if delta.text.len() > LONGEST || delta.message.len() > bounds::NAME || delta.offset < 0 {
            return Err(Refusal::malformed(
                "A delta has at most 4 KiB of text, and an offset of at least 0.",
            )
            .into());
        }
        let (hub, conversation) = (&link.scope.core.events, ConversationId(delta.conversation_id));
        if !hub.deltas.is_watched(link.scope.org, conversation) {
            return Ok(true);
        }
        let key = (delta.agent_id, delta.generation, delta.conversation_id);
        let is_own = match self.known.get(&key) {
            Some((at, is_own)) if at.elapsed() < bounds::CACHE_AGE => *is_own,
            _ => {
                let is_own = is_own(link, &delta).await?;
                if self.known.len() >= 1_000 {
                    self.known.clear();
                }
                self.known.insert(key, (Instant::now(), is_own));
                is_own
            }
        };
        if is_own {
            let Delta { message, thinking, offset, text, .. } = delta;
            hub.deltas.publish(events::Delta {
                org: link.scope.org,
                conversation,
                message,
                thinking,
                offset,
                text,
            });
        }
        Ok(is_own)
    }
}

async fn is_own(link: &Link, delta: &Delta) -> Result<bool, Ended> {
    let (launch, conversation) =
        ((AgentId(delta.agent_id), delta.generation), ConversationId(delta.conversation_id));
    Ok(queries::conversation_of(link, launch, conversation).await?.is_some())
}
