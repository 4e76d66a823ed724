//! Reads the frames of a host.

use std::sync::{Arc, atomic::Ordering};

use axum::extract::ws::{Message, WebSocket};
use futures::{StreamExt, stream::SplitStream};
use muster_protocol::{Event, FromHost, LARGEST_FRAME, frame::Hello};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::connection::{Connection, PendingEvent, PlanQuestion, holder};
use crate::{
    core::resource_limits::{Resource, SMALL},
    domain::hosts::{self, Ended, Link, Readings, Refusal, Viewing},
};

/// Reads the first frame. `None`: the host has gone.
pub(super) async fn hello(stream: &mut SplitStream<WebSocket>) -> Option<Result<Hello, Refusal>> {
    let frame = match next_text(stream).await? {
        Ok(text) => muster_json::from_str(&text),
        Err(refusal) => return Some(Err(refusal)),
    };
    Some(match frame {
        Ok(FromHost::Hello(hello)) => Ok(hello),
        Ok(_) => Err(Refusal::malformed("The first frame must be HELLO.")),
        Err(error) => Err(Refusal::malformed(format!("HELLO can't be read: {}.", position(&error)))),
    })
}

/// Reads the next text. `None`: the host has gone.
async fn next_text(
    stream: &mut SplitStream<WebSocket>,
) -> Option<Result<axum::extract::ws::Utf8Bytes, Refusal>> {
    loop {
        match stream.next().await? {
            Ok(Message::Text(text)) => return Some(Ok(text)),
            Ok(Message::Binary(_)) => return Some(Err(Refusal::malformed("Frames are JSON texts."))),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Close(_)) => return None,
            Err(error) => return is_too_large(&error).then(|| Err(too_large())),
        }
    }
}

/// Whether reading ended with a frame that is too large.
fn is_too_large(error: &axum::Error) -> bool {
    // The WebSocket library's error type can't be named here, so its text must do.
    error.to_string().contains("too long")
}

fn too_large() -> Refusal {
    Refusal::malformed(format!("A frame has at most {LARGEST_FRAME} bytes."))
}

/// The position of a parse error. The parser's own text may repeat the frame's content.
fn position(error: &serde_json::Error) -> String {
    format!("see line {}, column {}", error.line(), error.column())
}

impl Connection {
    /// Reads frames until the host disconnects (`None`) or must be disconnected.
    pub(super) async fn read(&self, stream: &mut SplitStream<WebSocket>, stored: i64) -> Option<Ended> {
        let mut reader = Reader {
            connection: self,
            last: stored,
            window: Arc::new(Semaphore::new(hosts::WINDOW as usize)),
            readings: Readings::default(),
            viewing: Viewing::default(),
        };
        loop {
            let text = match timeout(hosts::SILENT, stream.next()).await {
                Err(_) | Ok(None | Some(Ok(Message::Close(_)))) => return None,
                Ok(Some(Err(error))) => return is_too_large(&error).then(|| too_large().into()),
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
                Ok(Some(Ok(Message::Binary(_)))) => match self.count_malformed("Frames are JSON texts.") {
                    Ok(()) => continue,
                    Err(refusal) => return Some(refusal.into()),
                },
                Ok(Some(Ok(Message::Text(text)))) => text,
            };
            let handled = match muster_json::from_str::<FromHost>(&text) {
                Ok(frame) => reader.handle(frame, text.len()).await,
                Err(error) => self
                    .count_malformed(&format!("A frame can't be read: {}.", position(&error)))
                    .map_err(Into::into),
            };
            if let Err(ended) = handled {
                return Some(ended);
            }
        }
    }

    /// Waits until the rate limit lets the host send more. A host that sends too much is read more slowly, and keeps
    /// the rest.
    async fn pace(&self, bytes: usize) {
        let Link { scope, server, .. } = &self.link;
        while let Some(wait) =
            scope.core.rate_limits.as_ref().and_then(|limits| limits.pace(scope.org, *server, bytes))
        {
            sleep(wait).await;
        }
    }
}

struct Reader<'a> {
    connection: &'a Connection,
    /// Number of the last event read.
    last: i64,
    /// The bytes of events that may be read before earlier ones are stored.
    window: Arc<Semaphore>,
    readings: Readings,
    viewing: Viewing,
}

impl Reader<'_> {
    async fn handle(&mut self, frame: FromHost, bytes: usize) -> Result<(), Ended> {
        let connection = self.connection;
        match frame {
            FromHost::Event(event) => {
                connection.pace(bytes).await;
                self.handle_event(event, bytes).await?;
            }
            FromHost::Received { through } => {
                if through > connection.sent.load(Ordering::Relaxed) {
                    connection.count_malformed("A command was acknowledged that was not sent.")?;
                } else {
                    connection.received.send_if_modified(|last| {
                        let is_more = through > *last;
                        *last = through.max(*last);
                        is_more
                    });
                }
            }
            FromHost::Ask { id, agent_id, generation, wanted } => {
                connection.pace(bytes).await;
                // Waits while too many questions are being answered.
                let _ = connection
                    .asks
                    .send(PlanQuestion { id, agent: agent_id, generation, request: wanted })
                    .await;
            }
            FromHost::Delta(delta) => {
                if !self.viewing.show(&connection.link, delta).await? {
                    connection.count_foreign(1)?;
                }
            }
            FromHost::Log(batch) => connection.logs.show(&connection.link, batch)?,
            FromHost::Load(load) => self.readings.record(&connection.link, load).await?,
            FromHost::Hello(_) => connection.count_malformed("HELLO is sent once.")?,
        }
        Ok(())
    }

    async fn handle_event(&mut self, event: Event, bytes: usize) -> Result<(), Ended> {
        let connection = self.connection;
        if event.seq <= self.last {
            // A repeated event is acknowledged again.
            connection.acks.send_modify(|_| ());
            return Ok(());
        }
        if event.seq != self.last + 1 {
            return Err(hosts::gap(self.last + 1).into());
        }
        let resource_limits = &connection.link.scope.core.resource_limits;
        let limit = resource_limits.limit(Resource::Bodies);
        let permit = (bytes > SMALL).then(|| limit.take(holder(&connection.link), bytes)).transpose()?;
        let part = Arc::clone(&self.window).acquire_many_owned(bytes as u32).await;
        let part = part.map_err(crate::base::problem::Problem::internal)?;
        self.last = event.seq;
        let _ = connection.events.send(PendingEvent { event, held: (part, permit) }).await;
        Ok(())
    }
}
