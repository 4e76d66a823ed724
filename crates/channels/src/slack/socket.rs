//! Socket Mode: a socket that we open, on which Slack sends events. Unacknowledged events come again.

use std::convert::Infallible;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};
use url::Url;

use super::{api::Api, events};
use crate::{
    backoff::Backoff,
    bounds,
    contract::{Failure, Link, Proof, Sink, Skipped},
    network::Stream,
};

type Socket = WebSocketStream<Box<dyn Stream>>;

/// Why a socket ended.
enum SessionEnd {
    /// Slack asks for a new one.
    Renewed,
    Failed(Failure),
    Stopped(Failure),
}

impl From<Failure> for SessionEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Listens until dropped, or until the credentials are rejected. `api` has the app's token.
pub async fn listen(api: &Api, sink: &dyn Sink) -> Result<Infallible, Failure> {
    let mut backoff = Backoff::new();
    loop {
        let (failure, wait) = match run_session(api, sink, &mut backoff).await {
            Ok(never) => match never {},
            Err(SessionEnd::Renewed) => continue,
            Err(
                SessionEnd::Stopped(failure)
                | SessionEnd::Failed(
                    failure @ (Failure::Credentials(_) | Failure::Refused(_) | Failure::NotPublic(_)),
                ),
            ) => {
                return Err(failure);
            }
            Err(SessionEnd::Failed(failure @ Failure::RateLimited { wait, .. })) => (failure, Some(wait)),
            Err(SessionEnd::Failed(failure)) => (failure, None),
        };
        sink.link(Link::Down(failure.to_string().into()));
        backoff.wait(wait).await;
    }
}

async fn run_session(api: &Api, sink: &dyn Sink, backoff: &mut Backoff) -> Result<Infallible, SessionEnd> {
    let opened = api.call_json("apps.connections.open", &json!({})).await?;
    let mut socket = connect(api, opened["url"].as_str().unwrap_or_default()).await?;
    loop {
        // Slack pings more often; silence means a dead connection.
        let frame =
            timeout(bounds::SILENCE, socket.next()).await.map_err(|_| connection_lost("it is silent"))?;
        match frame {
            Some(Ok(Message::Text(text))) => handle_envelope(&text, &mut socket, sink, backoff).await?,
            // The library answers pings.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => {
                return Err(connection_lost("it was closed").into());
            }
        }
    }
}

/// The address contains a ticket, so no error names it.
async fn connect(api: &Api, address: &str) -> Result<Socket, Failure> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "ws" | "wss"));
    let url = url.ok_or_else(|| connection_lost("Slack returned no address for it"))?;
    let stream = api.connect(&url).await.map_err(|error| connection_lost(&error.to_string()))?;
    let shaken = timeout(bounds::NETWORK_WAIT, tokio_tungstenite::client_async(url.as_str(), stream)).await;
    match shaken {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(_)) => Err(connection_lost("Slack refuses it")),
        Err(_) => Err(connection_lost("Slack does not answer in time")),
    }
}

fn connection_lost(why: &str) -> Failure {
    Failure::NotSent(format!("The socket to Slack is lost: {why}.").into())
}

/// Handles one envelope, and acknowledges it once it is stored.
async fn handle_envelope(
    text: &str,
    socket: &mut Socket,
    sink: &dyn Sink,
    backoff: &mut Backoff,
) -> Result<(), SessionEnd> {
    let envelope: Value = muster_json::from_str(text).unwrap_or_default();
    match envelope["type"].as_str() {
        Some("hello") => {
            backoff.reset();
            sink.link(Link::Up);
            return Ok(());
        }
        Some("disconnect") if envelope["reason"] == "link_disabled" => {
            return Err(Failure::Credentials("Socket Mode is switched off at Slack.".into()).into());
        }
        // A warning before the end; the new socket is opened in time.
        Some("disconnect") => return Err(SessionEnd::Renewed),
        _ => {}
    }
    match events::decode(&envelope["payload"], Proof::Vendor) {
        Ok(Some(event)) => {
            let admitted = sink.admit(vec![event], None).await;
            admitted.map_err(|stopped| SessionEnd::Stopped(Failure::NotSent(stopped.to_string().into())))?;
        }
        Ok(None) => {}
        Err(refusal) => {
            let vendor_id = envelope["envelope_id"].as_str().unwrap_or_default().to_owned();
            sink.skipped(Skipped { vendor_id, subject: None, reason: refusal.to_string().into() }).await;
        }
    }
    if let Some(id) = envelope["envelope_id"].as_str() {
        let acknowledged = json!({"envelope_id": id}).to_string();
        socket.send(Message::text(acknowledged)).await.map_err(|_| connection_lost("it was closed"))?;
    }
    Ok(())
}
