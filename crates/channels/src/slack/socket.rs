//! Socket Mode: a socket that we open, on which Slack tells what happens. What is not acknowledged comes again.

use std::convert::Infallible;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};
use url::Url;

use super::{api::Api, events};
use crate::{
    bounds,
    contract::{Failure, Link, Proof, Sink, Skipped},
    pauses::Pauses,
    world::Stream,
};

type Socket = WebSocketStream<Box<dyn Stream>>;

/// Why a socket ended.
enum Ended {
    /// Slack asks for a new one.
    Renewed,
    Failed(Failure),
    Stopped(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Listens until it is dropped, or the credentials don't count any more. `api` has the app's token.
pub async fn listen(api: &Api, sink: &dyn Sink) -> Result<Infallible, Failure> {
    let mut pauses = Pauses::new();
    loop {
        let (failure, wait) = match session(api, sink, &mut pauses).await {
            Ok(never) => match never {},
            Err(Ended::Renewed) => continue,
            Err(
                Ended::Stopped(failure)
                | Ended::Failed(failure @ (Failure::Credentials(_) | Failure::Refused(_))),
            ) => {
                return Err(failure);
            }
            Err(Ended::Failed(failure @ Failure::RateLimited { wait, .. })) => (failure, Some(wait)),
            Err(Ended::Failed(failure)) => (failure, None),
        };
        sink.link(Link::Down(failure.to_string().into()));
        pauses.wait(wait).await;
    }
}

async fn session(api: &Api, sink: &dyn Sink, pauses: &mut Pauses) -> Result<Infallible, Ended> {
    let opened = api.ask("apps.connections.open", &json!({})).await?;
    let mut socket = connect(api, opened["url"].as_str().unwrap_or_default()).await?;
    loop {
        // Slack pings more often; silence means that the connection is dead.
        let frame = timeout(bounds::SILENCE, socket.next()).await.map_err(|_| lost("it is silent"))?;
        match frame {
            Some(Ok(Message::Text(text))) => take(&text, &mut socket, sink, pauses).await?,
            // Pings are answered by the library.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(lost("it was closed").into()),
        }
    }
}

/// The address has a ticket in it, so no error names it.
async fn connect(api: &Api, address: &str) -> Result<Socket, Failure> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "ws" | "wss"));
    let url = url.ok_or_else(|| lost("Slack gives no address for it"))?;
    let stream = api.connect(&url).await.map_err(|error| lost(&error.to_string()))?;
    let shaken = timeout(bounds::NETWORK_WAIT, tokio_tungstenite::client_async(url.as_str(), stream)).await;
    match shaken {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(_)) => Err(lost("Slack refuses it")),
        Err(_) => Err(lost("Slack does not answer in time")),
    }
}

fn lost(why: &str) -> Failure {
    Failure::NotSent(format!("The socket to Slack is lost: {why}.").into())
}

/// Takes one envelope, and acknowledges it once it is kept.
async fn take(text: &str, socket: &mut Socket, sink: &dyn Sink, pauses: &mut Pauses) -> Result<(), Ended> {
    let envelope: Value = muster_json::from_str(text).unwrap_or_default();
    match envelope["type"].as_str() {
        Some("hello") => {
            pauses.reset();
            sink.link(Link::Up);
            return Ok(());
        }
        Some("disconnect") if envelope["reason"] == "link_disabled" => {
            return Err(Failure::Credentials("Socket Mode is switched off at Slack.".into()).into());
        }
        // A warning announces the end; the new socket is opened before it.
        Some("disconnect") => return Err(Ended::Renewed),
        _ => {}
    }
    match events::decode(&envelope["payload"], Proof::Vendor) {
        Ok(Some(event)) => {
            let admitted = sink.admit(vec![event], None).await;
            admitted.map_err(|stopped| Ended::Stopped(Failure::NotSent(stopped.to_string().into())))?;
        }
        Ok(None) => {}
        Err(refusal) => {
            let vendor_id = envelope["envelope_id"].as_str().unwrap_or_default().to_owned();
            sink.skipped(Skipped { vendor_id, subject: None, reason: refusal.to_string().into() }).await;
        }
    }
    if let Some(id) = envelope["envelope_id"].as_str() {
        let acknowledged = json!({"envelope_id": id}).to_string();
        socket.send(Message::text(acknowledged)).await.map_err(|_| lost("it was closed"))?;
    }
    Ok(())
}
