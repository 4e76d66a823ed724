//! Sessions of the gateway, and the position in them, which is stored with the events before it.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    future::pending,
    pin::pin,
    time::Duration,
};

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::{
    api::Api,
    events::{self, Chat, Snowflake},
    gateway::{Connection, Dispatch, Ended, Tap, lost},
};
use crate::{
    backoff::Backoff,
    bounds,
    contract::{Cursor, Event, Failure, Link, Scope, Sink, Skipped},
};

/// The position of a listener.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Position {
    session: Option<Session>,
    /// The bot's user id.
    me: u64,
    /// The chats in which we are addressed or speak, with their last message: the latest ones.
    chats: BTreeMap<u64, u64>,
    /// Whether messages before the session may be missing.
    is_behind: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Session {
    id: String,
    /// The address for resuming.
    url: String,
    /// The last event.
    seq: u64,
}

impl Position {
    fn cursor(&self) -> Option<Cursor> {
        serde_json::to_string(self).ok().map(Cursor)
    }

    fn advance(&mut self, seq: Option<u64>) {
        if let Some((session, seq)) = self.session.as_mut().zip(seq) {
            session.seq = seq;
        }
    }

    /// Records a chat's message. `is_ours`: the chat concerns us, and replaces the quietest one if there are too many.
    fn note(&mut self, message: &Value, is_ours: bool) {
        let ids = Snowflake::of(&message["channel_id"]).zip(Snowflake::of(&message["id"]));
        let Some((Snowflake(chat), Snowflake(id))) = ids else { return };
        if is_ours || self.chats.contains_key(&chat) {
            let last = self.chats.entry(chat).or_default();
            *last = id.max(*last);
        }
        if self.chats.len() > bounds::LIST
            && let Some(quietest) = self.chats.iter().min_by_key(|(_, last)| **last).map(|(chat, _)| *chat)
        {
            self.chats.remove(&quietest);
        }
    }
}

/// The reason that a connection's events are no longer handled.
enum End {
    Ended(Ended),
    Stopped(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Ended(Ended::Lost(failure))
    }
}

struct Listener<'a> {
    api: &'a Api,
    sink: &'a dyn Sink,
    position: Position,
    /// When the position was last stored.
    stored: Instant,
    /// Chats that were looked up.
    known: HashMap<Snowflake, Chat>,
    backoff: Backoff,
}

/// Listens until dropped, or until Discord asks not to connect again.
pub async fn listen(api: &Api, cursor: Option<Cursor>, sink: &dyn Sink) -> Result<Infallible, Failure> {
    let position = cursor.and_then(|cursor| muster_json::from_str(&cursor.0).ok()).unwrap_or_default();
    let (stored, known) = (Instant::now(), HashMap::new());
    let mut listener = Listener { api, sink, position, stored, known, backoff: Backoff::new() };
    loop {
        let failure = match listener.run_connection().await {
            End::Stopped(failure) => return Err(failure),
            End::Ended(Ended::Renewed) => {
                listener.backoff.wait(None).await;
                continue;
            }
            End::Ended(Ended::Expired(failure)) => {
                listener.position.session = None;
                failure
            }
            End::Ended(Ended::Lost(failure @ (Failure::Credentials(_) | Failure::Refused(_)))) => {
                return Err(failure);
            }
            End::Ended(Ended::Lost(failure)) => failure,
        };
        sink.link(Link::Down(failure.to_string().into()));
        let wait = if let Failure::RateLimited { wait, .. } = failure { Some(wait) } else { None };
        listener.backoff.wait(wait).await;
    }
}

impl Listener<'_> {
    /// Reads and handles events at the same time: handling may take long, and heartbeats must not wait for it.
    async fn run_connection(&mut self) -> End {
        let connection = match self.connect().await {
            Ok(connection) => connection,
            Err(failure) => return failure.into(),
        };
        let (queue, dispatches) = mpsc::channel(bounds::LIST);
        let (taps, tapped) = mpsc::channel(bounds::LIST);
        let api = self.api;
        let mut handling = pin!(self.handle(dispatches));
        let ended = tokio::select! {
            ended = connection.read(queue, taps) => ended,
            handled = &mut handling => return handled.err().unwrap_or(End::Ended(Ended::Renewed)),
            never = acknowledge(api, tapped) => match never {},
        };
        // An expired session does not bring them again.
        handling.await.err().unwrap_or(End::Ended(ended))
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let Some(session) = &self.position.session else { return self.identify().await };
        let seq = Some(session.seq);
        let mut connection = match Connection::open(self.api, &session.url, seq).await {
            Ok(connection) => connection,
            Err(_) => Connection::open(self.api, &address(&self.api.get("gateway").await?)?, seq).await?,
        };
        let resume = json!({"token": self.api.token(), "session_id": session.id, "seq": session.seq});
        connection.resume(&resume).await?;
        Ok(connection)
    }

    /// Begins a session, if one is left. Discord resets the token of a bot that begins too many.
    async fn identify(&self) -> Result<Connection, Failure> {
        let start = self.api.get("gateway/bot").await?;
        let limit = &start["session_start_limit"];
        if limit["remaining"].as_u64().is_some_and(|left| left <= 1) {
            let wait = limit["reset_after"].as_u64().map_or(bounds::RETRY, Duration::from_millis);
            let cause = "Discord: the bot has begun too many sessions today.".into();
            return Err(Failure::RateLimited { wait, scope: Scope::Channel, cause });
        }
        let mut connection = Connection::open(self.api, &address(&start)?, None).await?;
        let properties = json!({"os": std::env::consts::OS, "browser": "muster", "device": "muster"});
        // Messages in servers and direct chats, with their content.
        let intents = (1 << 9) | (1 << 12) | (1 << 15);
        let identity = json!({"token": self.api.token(), "intents": intents, "properties": properties});
        connection.identify(&identity).await?;
        Ok(connection)
    }

    async fn handle(&mut self, mut dispatches: mpsc::Receiver<Dispatch>) -> Result<(), End> {
        while let Some(Dispatch { seq, name, event, acknowledged }) = dispatches.recv().await {
            match name.as_str() {
                "READY" => self.begin(seq, &event).await?,
                "RESUMED" => self.connected(),
                _ => {}
            }
            if self.position.is_behind {
                self.catch_up().await?;
            }
            if let Some(acknowledged) = acknowledged {
                // Without it, the answer has no place, but the decision still counts.
                let _ = acknowledged.await;
            }
            self.take(&name, &event, Some(seq)).await?;
        }
        Ok(())
    }

    fn connected(&mut self) {
        self.backoff.reset();
        self.sink.link(Link::Up);
    }

    async fn begin(&mut self, seq: u64, ready: &Value) -> Result<(), End> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let session = text(&ready["session_id"]).zip(text(&ready["resume_gateway_url"]));
        let (Some((id, url)), Some(me)) = (session, Snowflake::of(&ready["user"]["id"])) else {
            return Err(lost("Discord does not name the session").into());
        };
        // Another bot is in other chats.
        if self.position.me != me.0 {
            self.position.chats.clear();
        }
        self.position.me = me.0;
        self.position.session = Some(Session { id, url, seq });
        self.position.is_behind = !self.position.chats.is_empty();
        self.store(Vec::new()).await?;
        self.connected();
        Ok(())
    }

    /// Fetches the messages of known chats that no session brings.
    async fn catch_up(&mut self) -> Result<(), End> {
        for chat in self.position.chats.keys().copied().collect::<Vec<_>>() {
            while let Some(after) = self.position.chats.get(&chat).copied() {
                let path = format!("channels/{chat}/messages?after={after}&limit={}", bounds::LIST);
                let Some(page) = self.get(&path).await? else {
                    self.position.chats.remove(&chat);
                    break;
                };
                // The latest come first.
                let messages = page.as_array().cloned().unwrap_or_default();
                for message in messages.iter().rev() {
                    self.take("MESSAGE_CREATE", message, None).await?;
                }
                let is_same = self.position.chats.get(&chat) == Some(&after);
                if messages.len() < bounds::LIST || is_same {
                    break;
                }
            }
        }
        self.position.is_behind = false;
        self.store(Vec::new()).await
    }

    /// Hands an event over.
    async fn take(&mut self, name: &str, event: &Value, seq: Option<u64>) -> Result<(), End> {
        let is_message = matches!(name, "MESSAGE_CREATE" | "MESSAGE_UPDATE");
        let me = Snowflake(self.position.me);
        if is_message && Snowflake::of(&event["author"]["id"]) == Some(me) {
            self.position.note(event, true);
            self.position.advance(seq);
            return Ok(());
        }
        let chat = if is_message { self.find_chat(event).await? } else { Chat::default() };
        let decoded = match events::decode(name, event, me, &chat) {
            Ok(decoded) => decoded,
            Err(refusal) => {
                let vendor_id = event["id"].as_str().unwrap_or_default().to_owned();
                let reason = refusal.to_string().into();
                self.sink.skipped(Skipped { vendor_id, subject: None, reason }).await;
                None
            }
        };
        let is_ours = match &decoded {
            Some(Event::Message(message)) => message.is_addressed,
            other => other.is_some(),
        };
        if is_message {
            self.position.note(event, is_ours);
        }
        self.position.advance(seq);
        // Messages to others are mostly refused, and not worth a write each.
        let is_due = is_ours || self.stored.elapsed() >= Duration::from_secs(10);
        match decoded {
            Some(event) if !is_due => self.admit(vec![event], None).await,
            Some(event) => self.store(vec![event]).await,
            None => Ok(()),
        }
    }

    /// Stores events with the position.
    async fn store(&mut self, events: Vec<Event>) -> Result<(), End> {
        self.stored = Instant::now();
        self.admit(events, self.position.cursor()).await
    }

    async fn admit(&self, events: Vec<Event>, cursor: Option<Cursor>) -> Result<(), End> {
        let admitted = self.sink.admit(events, cursor).await;
        admitted.map_err(|stopped| End::Stopped(Failure::NotSent(stopped.to_string().into())))
    }

    async fn find_chat(&mut self, message: &Value) -> Result<Chat, End> {
        if Chat::is_direct(message) {
            return Ok(Chat::direct());
        }
        let Some(id) = Snowflake::of(&message["channel_id"]) else { return Ok(Chat::default()) };
        if let Some(chat) = self.known.get(&id) {
            return Ok(chat.clone());
        }
        let channel = self.get(&format!("channels/{id}")).await?;
        let channel = channel.unwrap_or_else(|| json!({"id": id.to_string()}));
        let member = match Snowflake::of(&channel["guild_id"]) {
            Some(server) => self.get(&format!("guilds/{server}/members/{}", self.position.me)).await?,
            None => None,
        };
        let chat = Chat::read(&channel, &member.unwrap_or_default());
        // Members of a server may open any number of threads.
        if self.known.len() >= 1000 {
            self.known.clear();
        }
        self.known.insert(id, chat.clone());
        Ok(chat)
    }

    /// Waits for Discord's limits. `None`: we have no access.
    async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        loop {
            match self.api.get(path).await {
                Ok(found) => return Ok(Some(found)),
                Err(Failure::RateLimited { wait, .. }) => sleep(wait.max(Duration::from_secs(1))).await,
                Err(Failure::TargetGone(_) | Failure::Refused(_)) => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// The gateway's address in a response.
fn address(found: &Value) -> Result<String, Failure> {
    let address = found["url"].as_str().map(str::to_owned);
    address.ok_or_else(|| lost("Discord returned no address for it"))
}

/// Tells Discord, within the three seconds that it waits, that taps have arrived. Their answers follow.
async fn acknowledge(api: &Api, mut taps: mpsc::Receiver<Tap>) -> Infallible {
    while let Some(Tap { path, done }) = taps.recv().await {
        // Only the person sees the answer.
        let deferred = json!({"type": 5, "data": {"flags": 1 << 6}});
        let sent = timeout(Duration::from_secs(3), api.send(Method::POST, &path, &deferred)).await;
        if let Ok(Err(failure)) = sent {
            tracing::debug!(%failure, "a tap in Discord is not acknowledged");
        }
        let _ = done.send(());
    }
    pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chats_that_concern_us_are_kept() {
        let message = |chat: usize, id: usize| json!({"channel_id": chat.to_string(), "id": id.to_string()});
        let mut position = Position::default();
        for chat in 1..=bounds::LIST {
            position.note(&message(chat, 1000 + chat), true);
        }
        position.note(&message(1, 5000), false);
        position.note(&message(1, 4000), false);
        position.note(&message(999, 6000), false);
        assert_eq!((position.chats.len(), position.chats[&1]), (bounds::LIST, 5000));
        // A further one takes the place of the quietest.
        position.note(&message(777, 7000), true);
        assert!(position.chats.contains_key(&777) && !position.chats.contains_key(&2));
        let cursor = position.cursor().unwrap();
        let read: Position = muster_json::from_str(&cursor.0).unwrap();
        assert_eq!((read.chats, read.is_behind), (position.chats, false));
    }
}
