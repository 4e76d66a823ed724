//! Writes the frames for a host.

use std::{sync::Arc, time::Duration};

use axum::extract::ws::{Message, WebSocket};
use bytes::Bytes;
use futures::{SinkExt, stream::SplitSink};
use muster_protocol::{LARGEST_FRAME, ToHost, plan::PlanResponse};
use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};

use crate::{
    core::resource_limits::{Holder, ResourceLimit},
    domain::hosts::Ended,
};

/// The sending half of a connection.
pub(super) struct Outlet {
    pub limit: Arc<ResourceLimit>,
    pub holder: Holder,
}

impl Outlet {
    /// Writes frames, acknowledgements and pings until the host has gone (`None`) or the resource limits are reached.
    pub(super) async fn write(
        &self,
        sink: &mut SplitSink<WebSocket, Message>,
        mut frames: mpsc::Receiver<ToHost>,
        mut acks: watch::Receiver<i64>,
    ) -> Option<Ended> {
        // Three pings within `hosts::SILENT`.
        let mut ping = interval(Duration::from_secs(15));
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                biased;
                _ = acks.changed() => {
                    let through = *acks.borrow_and_update();
                    Message::Text(text(&ToHost::Ack { through }).into())
                }
                frame = frames.recv() => Message::Text(text(&frame?).into()),
                _ = ping.tick() => Message::Ping(Bytes::new()),
            };
            let bytes = if let Message::Text(text) = &message { text.len() } else { 0 };
            let waiting = match self.limit.take_piece(self.holder, bytes) {
                Ok(waiting) => waiting,
                Err(problem) => return Some(problem.into()),
            };
            sink.send(message).await.ok()?;
            drop(waiting);
        }
    }
}

pub(super) fn text(frame: &ToHost) -> String {
    let whole = serde_json::to_string(frame).unwrap_or_default();
    if whole.len() <= LARGEST_FRAME {
        return whole;
    }
    // Only an answer can be that large: it may contain skills or files.
    let ToHost::Told { id, .. } = *frame else { return whole };
    let reason = format!("The answer has {} bytes; a frame has at most {LARGEST_FRAME}.", whole.len());
    serde_json::to_string(&ToHost::Told { id, given: PlanResponse::Refused { reason } }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_large_says_so() {
        let large = PlanResponse::Refused { reason: "x".repeat(LARGEST_FRAME) };
        let told = text(&ToHost::Told { id: 7, given: large });
        assert!(told.len() < 200 && told.contains("\"id\":7") && told.contains("bytes"), "{told}");
    }
}
