//! A connection to the gateway: <https://discord.com/developers/docs/events/gateway>.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::CloseFrame},
};
use url::Url;

use super::{INTENT, api::Api, events};
use crate::{bounds, contract::Failure, network::Stream};

/// A received frame.
enum Frame {
    Dispatch { seq: u64, name: String, event: Value },
    Heartbeat,
    Reconnect,
    InvalidSession { can_resume: bool },
    Hello { interval: Duration },
    HeartbeatAck,
}

#[derive(Deserialize)]
struct RawFrame {
    op: u8,
    s: Option<u64>,
    t: Option<String>,
    #[serde(default)]
    d: Value,
}

/// An event with its number in the session.
pub struct Dispatch {
    pub seq: u64,
    pub name: String,
    pub event: Value,
    /// Of a tap: resolves once Discord knows that it arrived.
    pub acknowledged: Option<oneshot::Receiver<()>>,
}

/// A tap to acknowledge.
pub struct Tap {
    /// Of the response.
    pub path: String,
    pub done: oneshot::Sender<()>,
}

/// How a connection ended.
pub enum Ended {
    /// It is lost; the session may be resumed.
    Lost(Failure),
    /// The session has ended as well.
    Expired(Failure),
    /// Discord asks for a new one.
    Renewed,
}

pub struct Connection {
    socket: WebSocketStream<Box<dyn Stream>>,
    /// The last received event.
    seq: Option<u64>,
    interval: Duration,
    next_beat: Instant,
    /// Whether Discord has answered the last heartbeat.
    is_acknowledged: bool,
}

impl Connection {
    /// Opens a connection. `seq`: the last event of the session to resume.
    pub async fn open(api: &Api, address: &str, seq: Option<u64>) -> Result<Self, Failure> {
        let mut url = Url::parse(address).map_err(|_| lost("Discord returned no address for it"))?;
        url.set_query(Some("v=10&encoding=json"));
        let stream = api.connect(&url).await.map_err(|error| lost(&error.to_string()))?;
        let shaken =
            timeout(bounds::NETWORK_WAIT, tokio_tungstenite::client_async(url.as_str(), stream)).await;
        let (mut socket, _) = match shaken {
            Ok(Ok(shaken)) => shaken,
            Ok(Err(_)) => return Err(lost("Discord refuses it")),
            Err(_) => return Err(lost("Discord does not answer in time")),
        };
        let hello = timeout(bounds::ANSWER, socket.next()).await;
        let hello = hello.map_err(|_| lost("Discord does not answer in time"))?;
        let hello = match hello {
            Some(Ok(Message::Text(text))) => read(&text),
            _ => None,
        };
        let Some(Frame::Hello { interval }) = hello else { return Err(lost("Discord ended it at once")) };
        let interval = interval.min(bounds::SILENCE);
        let next_beat = Instant::now() + interval.mul_f64(jitter());
        Ok(Self { socket, seq, interval, next_beat, is_acknowledged: true })
    }

    /// Begins a session.
    pub async fn identify(&mut self, identity: &Value) -> Result<(), Failure> {
        self.send(&json!({"op": 2, "d": identity})).await
    }

    pub async fn resume(&mut self, session: &Value) -> Result<(), Failure> {
        self.send(&json!({"op": 6, "d": session})).await
    }

    async fn send(&mut self, frame: &Value) -> Result<(), Failure> {
        let frame = Message::text(frame.to_string());
        let sent = timeout(bounds::ANSWER, self.socket.send(frame)).await;
        if matches!(sent, Ok(Ok(()))) { Ok(()) } else { Err(lost("it was closed")) }
    }

    /// Reads until the connection ends. A full queue holds up the heartbeats, too: then Discord ends the connection, and
    /// sends the rest on the next one.
    pub async fn read(mut self, queue: mpsc::Sender<Dispatch>, taps: mpsc::Sender<Tap>) -> Ended {
        loop {
            match self.next(&taps).await {
                Ok(dispatch) => {
                    if queue.send(dispatch).await.is_err() {
                        return Ended::Renewed;
                    }
                }
                Err(ended) => return ended,
            }
        }
    }

    /// The next event. Received frames come before a due heartbeat, so that its answer is not overlooked.
    async fn next(&mut self, taps: &mpsc::Sender<Tap>) -> Result<Dispatch, Ended> {
        loop {
            let frame = tokio::select! {
                biased;
                frame = self.socket.next() => frame,
                () = sleep_until(self.next_beat) => {
                    if !std::mem::take(&mut self.is_acknowledged) {
                        return Err(Ended::Lost(lost("Discord does not answer its heartbeats")));
                    }
                    self.beat().await?;
                    continue;
                }
            };
            match frame {
                Some(Ok(Message::Text(text))) => {
                    if let Some(frame) = read(&text)
                        && let Some(dispatch) = self.take(frame, taps).await?
                    {
                        return Ok(dispatch);
                    }
                }
                // The library answers pings.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(frame))) => return Err(closed(frame.as_ref())),
                Some(Err(_)) | None => return Err(closed(None)),
            }
        }
    }

    async fn take(&mut self, frame: Frame, taps: &mpsc::Sender<Tap>) -> Result<Option<Dispatch>, Ended> {
        match frame {
            Frame::Dispatch { seq, name, event } => {
                self.seq = Some(seq);
                let acknowledged = announce_tap(&name, &event, taps);
                return Ok(Some(Dispatch { seq, name, event, acknowledged }));
            }
            Frame::Heartbeat => self.beat().await?,
            Frame::HeartbeatAck => self.is_acknowledged = true,
            Frame::Reconnect => return Err(Ended::Renewed),
            Frame::InvalidSession { can_resume: true } => {
                return Err(Ended::Lost(lost("Discord ended it")));
            }
            Frame::InvalidSession { can_resume: false } => {
                return Err(Ended::Expired(lost("Discord has ended the session")));
            }
            Frame::Hello { .. } => {}
        }
        Ok(None)
    }

    async fn beat(&mut self) -> Result<(), Ended> {
        self.next_beat = Instant::now() + self.interval;
        self.send(&json!({"op": 1, "d": self.seq})).await.map_err(Ended::Lost)
    }
}

/// Announces a tap, if there is room.
fn announce_tap(name: &str, event: &Value, taps: &mpsc::Sender<Tap>) -> Option<oneshot::Receiver<()>> {
    let path = if name == "INTERACTION_CREATE" { events::tap_response(event) } else { None };
    let (done, acknowledged) = oneshot::channel();
    taps.try_send(Tap { path: path?, done }).ok()?;
    Some(acknowledged)
}

/// Reads a frame, if it has an effect.
fn read(text: &str) -> Option<Frame> {
    let raw = muster_json::from_str::<RawFrame>(text);
    let raw = raw.inspect_err(|error| tracing::warn!(%error, "a frame of Discord's is skipped")).ok()?;
    Some(match raw.op {
        0 => Frame::Dispatch { seq: raw.s?, name: raw.t?, event: raw.d },
        1 => Frame::Heartbeat,
        7 => Frame::Reconnect,
        9 => Frame::InvalidSession { can_resume: raw.d == true },
        10 => Frame::Hello { interval: Duration::from_millis(raw.d["heartbeat_interval"].as_u64()?) },
        11 => Frame::HeartbeatAck,
        _ => return None,
    })
}

/// What the end of a connection means: <https://discord.com/developers/docs/topics/opcodes-and-status-codes>. Codes by
/// which Discord asks not to connect again switch the channel off: else Muster would use up the bot's daily sessions,
/// after which Discord resets its token.
fn closed(frame: Option<&CloseFrame>) -> Ended {
    let code = frame.map_or(0, |frame| u16::from(frame.code));
    match code {
        4004 => Ended::Lost(Failure::Credentials("Discord rejects the bot's token.".into())),
        4011 => {
            let why = "Discord: the bot is in more servers than one connection serves. Use a bot of its own for Muster.";
            Ended::Lost(Failure::Credentials(why.into()))
        }
        4014 => Ended::Lost(Failure::Credentials(INTENT.into())),
        4010 | 4012 | 4013 => {
            let why =
                format!("Discord no longer accepts this version of Muster (code {code}). Update Muster.");
            Ended::Lost(Failure::Credentials(why.into()))
        }
        4003 | 4007 | 4009 => Ended::Expired(lost("Discord has ended the session")),
        0 => Ended::Lost(lost("it was closed")),
        _ => Ended::Lost(lost(&format!("Discord closed it with code {code}"))),
    }
}

pub fn lost(why: &str) -> Failure {
    Failure::NotSent(format!("The connection to Discord is lost: {why}.").into())
}

/// A number between 0 and 1, so that not all connections send their first heartbeat at once.
fn jitter() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}
