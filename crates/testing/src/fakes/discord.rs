//! A fake Discord with its gateway: <https://discord.com/developers/docs>. Ada (5) and the bot (7), which has a role (6),
//! are in a server (100) with a channel (200) and a thread of it (300), and have direct chats (50 to 99).

use std::{
    collections::VecDeque,
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{
        State, WebSocketUpgrade,
        ws::{CloseFrame, Message, WebSocket},
    },
    http::{HeaderMap, Method, StatusCode, Uri, header::AUTHORIZATION},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{asked, serve};

/// The token of the bot.
pub const TOKEN: &str = "Nw.canary-bot_1";
const AT: &str = "2023-11-14T22:13:20.000000+00:00";
/// Some of the emoji that can be reactions: 👀, and one of the server's own.
const EMOJI: [&str; 2] = ["%F0%9F%91%80", "wave%3A12"];

#[derive(Default)]
pub struct Fake {
    pub at: Option<SocketAddr>,
    /// Answers that replace the next regular ones, other than those about the gateway.
    pub answers: VecDeque<(u16, Value)>,
    /// The next answers take these numbers of seconds to be the last allowed one of their route.
    pub exhausts: VecDeque<f64>,
    /// The received requests.
    pub asked: Vec<(String, Value)>,
    /// The events of the session. Their numbers begin at 1.
    pub events: Vec<Value>,
    /// The messages of people, which also can be fetched.
    pub history: Vec<Value>,
    /// The sent messages.
    pub sent: Vec<Value>,
    /// The numbers from which sessions were resumed.
    pub resumed: Vec<u64>,
    /// Sessions begun.
    pub begun: u64,
    /// Sessions left today, if they are few.
    pub left: Option<u64>,
    /// Closes connections that begin a session.
    pub closes: Option<u16>,
    /// Whether heartbeats get no answer.
    pub is_deaf: bool,
    /// Milliseconds between heartbeats, if they are few.
    pub beat: Option<u64>,
    /// Requests that begin so take effect, but get no answer. `HELLO`: neither do connections.
    pub hangs: Option<&'static str>,
    /// Counts connections that were cut.
    cut: u64,
    /// Whether the session can be resumed.
    is_alive: bool,
}

pub type Shared = Arc<Mutex<Fake>>;

pub async fn discord() -> (SocketAddr, Shared) {
    let fake = Shared::default();
    let router = Router::new().route("/gateway", any(socket)).fallback(answer).with_state(Arc::clone(&fake));
    let address = serve(router).await;
    fake.lock().unwrap().at = Some(address);
    (address, fake)
}

/// Ada's message.
pub fn said(id: u64, channel: u64, text: &str) -> Value {
    let mut message = message(id, channel, &ada(), text);
    if channel < 100 {
        message["channel_type"] = json!(1);
        return message;
    }
    message["channel_type"] = json!(if channel == 300 { 11 } else { 0 });
    message["guild_id"] = json!("100");
    message["member"] =
        json!({"nick": null, "roles": [], "joined_at": AT, "deaf": false, "mute": false, "flags": 0});
    if text.contains("<@7>") {
        message["mentions"] = json!([bot()]);
    }
    message
}

/// Ada taps a button in the direct chat.
pub fn tapped(id: u64, value: &str) -> Value {
    json!({"id": id.to_string(), "application_id": "70", "type": 3, "token": format!("tap-{id}"), "version": 1,
        "channel_id": "50", "channel": channel(50), "context": 1, "user": ada(),
        "message": message(1000, 50, &bot(), "Delete it?"), "data": {"custom_id": value, "component_type": 2},
        "entitlements": [], "authorizing_integration_owners": {}, "attachment_size_limit": 10_485_760,
        "app_permissions": "0", "locale": "en-US"})
}

fn ada() -> Value {
    json!({"id": "5", "username": "ada", "discriminator": "0", "global_name": "Ada", "avatar": null})
}

fn bot() -> Value {
    json!({"id": "7", "username": "muster_bot", "discriminator": "0", "global_name": null, "avatar": null, "bot": true})
}

fn message(id: u64, channel: u64, author: &Value, text: &str) -> Value {
    json!({"id": id.to_string(), "channel_id": channel.to_string(), "author": author, "content": text, "timestamp": AT,
        "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [], "components": [], "pinned": false, "type": 0})
}

fn channel(id: u64) -> Value {
    match id {
        50..100 => json!({"id": id.to_string(), "type": 1, "recipients": [ada()], "last_message_id": null}),
        200 => json!({"id": "200", "type": 0, "guild_id": "100", "name": "support", "position": 0,
            "permission_overwrites": []}),
        300 => json!({"id": "300", "type": 11, "guild_id": "100", "parent_id": "200", "name": "Order 7",
            "owner_id": "5", "message_count": 1, "member_count": 1, "rate_limit_per_user": 0,
            "thread_metadata": {"archived": false, "auto_archive_duration": 60, "archive_timestamp": AT, "locked": false}}),
        _ => Value::Null,
    }
}

fn server() -> Value {
    let everyone = json!({"id": "100", "name": "@everyone", "permissions": "0", "position": 0, "color": 0,
        "hoist": false, "managed": false, "mentionable": false});
    json!({"id": "100", "name": "Acme", "owner_id": "5", "unavailable": false, "roles": [everyone], "emojis": [],
        "stickers": [], "features": [], "members": [], "channels": [channel(200)], "threads": [], "presences": [],
        "voice_states": [], "stage_instances": [], "guild_scheduled_events": [], "member_count": 2, "joined_at": AT,
        "large": false})
}

/// An error response.
pub fn refusal(status: u16, code: u64, message: &str) -> (u16, Value) {
    (status, json!({"message": message, "code": code}))
}

impl Fake {
    /// Something happens, and is remembered if it is a message.
    pub fn happens(&mut self, name: &str, event: &Value) {
        if name == "MESSAGE_CREATE" && event["author"]["id"] != "7" {
            self.history.push(event.clone());
        }
        self.dispatch(name, event);
    }

    pub fn says(&mut self, id: u64, channel: u64, text: &str) {
        self.happens("MESSAGE_CREATE", &said(id, channel, text));
    }

    /// Cuts the connections. The session can be resumed.
    pub fn cut(&mut self) {
        self.cut += 1;
    }

    /// Ends the session, too: its events are gone.
    pub fn end_session(&mut self) {
        self.cut();
        self.is_alive = false;
    }

    /// The bodies of requests with this method and path.
    pub fn bodies(&self, which: &str) -> Vec<Value> {
        self.asked.iter().filter(|(asked, _)| asked == which).map(|(_, body)| body.clone()).collect()
    }

    fn dispatch(&mut self, name: &str, event: &Value) {
        let seq = self.events.len() + 1;
        self.events.push(json!({"op": 0, "t": name, "s": seq, "d": event}));
    }

    /// Hears a frame. Returns the answer, or the code that closes the connection. `sent`: the number of events that the
    /// client has, once it has a session.
    fn hear(&mut self, frame: &Value, sent: &mut Option<usize>) -> Result<Option<Value>, u16> {
        Ok(match frame["op"].as_u64() {
            Some(1) => (!self.is_deaf).then(|| json!({"op": 11})),
            Some(2) => {
                self.identify(&frame["d"])?;
                *sent = Some(0);
                None
            }
            Some(6) => {
                *sent = self.resume(&frame["d"]);
                sent.is_none().then(|| json!({"op": 9, "d": false}))
            }
            _ => None,
        })
    }

    fn identify(&mut self, asked: &Value) -> Result<(), u16> {
        if asked["token"] != TOKEN {
            return Err(4004);
        }
        if let Some(code) = self.closes {
            return Err(code);
        }
        let intents = asked["intents"].as_u64().unwrap_or_default();
        (self.begun, self.is_alive) = (self.begun + 1, true);
        self.events.clear();
        let (session, url) = (format!("session-{}", self.begun), self.gateway());
        let guild = json!({"id": "100", "unavailable": true});
        let ready = json!({"v": 10, "user": bot(), "guilds": [guild], "session_id": session, "resume_gateway_url": url,
            "application": {"id": "70", "flags": 1 << 19}});
        self.dispatch("READY", &ready);
        if intents & 1 == 1 {
            self.dispatch("GUILD_CREATE", &server());
        }
        Ok(())
    }

    /// The number of events that the client has. `None`: the session is over.
    fn resume(&mut self, asked: &Value) -> Option<usize> {
        let seq = asked["seq"].as_u64()?;
        if !self.is_alive || asked["session_id"] != format!("session-{}", self.begun) {
            return None;
        }
        self.resumed.push(seq);
        self.dispatch("RESUMED", &json!({}));
        Some(seq as usize)
    }

    fn gateway(&self) -> String {
        format!("ws://{}/gateway", self.at.unwrap())
    }

    fn judge(&mut self, method: &Method, path: &str, query: &str, asked: &Value) -> (u16, Value) {
        if !path.starts_with("gateway")
            && let Some(answer) = self.answers.pop_front()
        {
            return answer;
        }
        let parts: Vec<&str> = path.split('/').collect();
        let id = |at: usize| parts[at].parse::<u64>().unwrap_or_default();
        let body = match (method.as_str(), &parts[..]) {
            ("GET", ["gateway"] | ["gateway", "bot"]) => {
                let left = self.left.unwrap_or(1000);
                let limit =
                    json!({"total": 1000, "remaining": left, "reset_after": 7000, "max_concurrency": 1});
                json!({"url": self.gateway(), "shards": 1, "session_start_limit": limit})
            }
            ("GET", ["users", "@me"]) => bot(),
            ("GET", ["applications", "@me"]) => {
                json!({"id": "70", "name": "Muster", "icon": null, "description": "",
                "bot_public": true, "bot_require_code_grant": false, "verify_key": "", "flags": 1 << 19, "bot": bot()})
            }
            ("GET", ["channels", _]) if !channel(id(1)).is_null() => channel(id(1)),
            ("GET", ["guilds", "100", "members", "7"]) => {
                json!({"user": bot(), "roles": ["6"], "joined_at": AT, "deaf": false, "mute": false, "flags": 0})
            }
            ("GET", ["channels", _, "messages"]) => self.page(id(1), query),
            ("POST", ["channels", _, "messages"]) => self.post(id(1), asked),
            ("PATCH", ["channels", _, "messages", _]) => sent(id(3), id(1), asked),
            ("PATCH", ["webhooks", "70", _, "messages", "@original"]) => sent(1100, 50, asked),
            ("POST", ["channels", _, "typing"] | ["interactions", _, _, "callback"]) => {
                return (204, Value::Null);
            }
            ("PUT", ["channels", _, "messages", _, "reactions", emoji, "@me"]) => {
                return if EMOJI.contains(emoji) {
                    (204, Value::Null)
                } else {
                    refusal(400, 10_014, "Unknown Emoji")
                };
            }
            _ => return refusal(404, 10_003, "Unknown Channel"),
        };
        (200, body)
    }

    /// The messages of a chat after an id, the latest first.
    fn page(&self, channel: u64, query: &str) -> Value {
        let after: u64 =
            query.split('&').find_map(|field| field.strip_prefix("after=")).unwrap().parse().unwrap();
        let id = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
        let is_of = |message: &&Value| id(&message["channel_id"]) == channel && id(&message["id"]) > after;
        let mut page: Vec<Value> = self.history.iter().filter(is_of).take(100).cloned().collect();
        for field in ["guild_id", "member", "channel_type"] {
            for message in &mut page {
                message.as_object_mut().unwrap().remove(field);
            }
        }
        page.reverse();
        page.into()
    }

    fn post(&mut self, channel: u64, asked: &Value) -> Value {
        let is_it = |sent: &&Value| asked["enforce_nonce"] == true && sent["nonce"] == asked["nonce"];
        if let Some(sent) = self.sent.iter().find(is_it) {
            return sent.clone();
        }
        let mut message = sent(1000 + self.sent.len() as u64, channel, asked);
        message["nonce"] = asked["nonce"].clone();
        self.sent.push(message.clone());
        self.dispatch("MESSAGE_CREATE", &message);
        message
    }
}

/// The current state of a sent message.
fn sent(id: u64, channel: u64, asked: &Value) -> Value {
    let mut message = message(id, channel, &bot(), asked["content"].as_str().unwrap_or_default());
    message["components"] =
        if asked["components"].is_array() { asked["components"].clone() } else { json!([]) };
    if let Some(file) = asked["files[0]"].as_str() {
        let name = file.split(':').next();
        message["attachments"] =
            json!([{"id": "1", "filename": name, "size": 10, "url": "x", "proxy_url": "x"}]);
    }
    message
}

async fn answer(
    State(fake): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let token = headers.get(AUTHORIZATION).map(|token| token.to_str().unwrap().to_owned());
    if uri.path() == "/attachments/a.txt" {
        assert_eq!(token, None, "the host of files gets no token");
        return "abc".into_response();
    }
    // Some clients encode the sign.
    let path = uri.path().trim_start_matches("/api/v10/").replace("%40", "@");
    // Their paths have tokens of their own.
    let is_open = path.starts_with("interactions/") || path.starts_with("webhooks/");
    if !is_open && token != Some(format!("Bot {TOKEN}")) {
        return respond(refusal(401, 0, "401: Unauthorized"), None);
    }
    let mut asked = asked(&Uri::from_static("/"), &headers, body).await;
    if let Some(Value::Object(fields)) = asked.get_mut("payload_json").map(Value::take) {
        asked.as_object_mut().unwrap().remove("payload_json");
        asked.as_object_mut().unwrap().extend(fields);
    }
    let request = format!("{method} {path}");
    let (answer, reset, hangs) = {
        let mut fake = fake.lock().unwrap();
        fake.asked.push((request.clone(), asked.clone()));
        let answer = fake.judge(&method, &path, uri.query().unwrap_or_default(), &asked);
        let reset = if path.starts_with("gateway") { None } else { fake.exhausts.pop_front() };
        (answer, reset, fake.hangs)
    };
    if hangs.is_some_and(|begin| request.starts_with(begin)) {
        pending::<()>().await;
    }
    respond(answer, reset)
}

/// `reset`: no call of this kind is left until then.
fn respond((status, said): (u16, Value), reset: Option<f64>) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let remaining = if reset.is_some() { "0" } else { "4" };
    let limits = [
        ("x-ratelimit-limit", "5".to_owned()),
        ("x-ratelimit-remaining", remaining.to_owned()),
        ("x-ratelimit-reset-after", reset.unwrap_or(1.0).to_string()),
        ("x-ratelimit-bucket", "abcd1234".to_owned()),
    ];
    if said.is_null() {
        (status, limits).into_response()
    } else {
        (status, limits, Json(said)).into_response()
    }
}

async fn socket(State(fake): State<Shared>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|socket| serve_socket(socket, fake))
}

/// Serves one connection until it is cut or closed.
async fn serve_socket(mut socket: WebSocket, fake: Shared) {
    let (cut, beat, hangs) = {
        let fake = fake.lock().unwrap();
        (fake.cut, fake.beat.unwrap_or(41_250), fake.hangs)
    };
    if hangs == Some("HELLO") {
        pending::<()>().await;
    }
    let hello = json!({"op": 10, "d": {"heartbeat_interval": beat}});
    let _ = socket.send(Message::text(hello.to_string())).await;
    let mut sent = None;
    loop {
        let heard = tokio::select! {
            heard = socket.recv() => Some(heard),
            () = sleep(Duration::from_millis(5)) => None,
        };
        let reply = match heard {
            Some(Some(Ok(Message::Text(text)))) => {
                let frame = serde_json::from_str(&text).unwrap();
                fake.lock().unwrap().hear(&frame, &mut sent)
            }
            Some(Some(Ok(_))) | None => Ok(None),
            Some(_) => return,
        };
        let events = match reply {
            Ok(reply) => {
                let fake = fake.lock().unwrap();
                if fake.cut != cut {
                    return;
                }
                let from = sent.unwrap_or(usize::MAX).min(fake.events.len());
                sent = sent.map(|_| fake.events.len());
                reply.into_iter().chain(fake.events[from..].to_vec()).collect::<Vec<_>>()
            }
            Err(code) => {
                let frame = CloseFrame { code, reason: "no".into() };
                let _ = socket.send(Message::Close(Some(frame))).await;
                return;
            }
        };
        for event in events {
            if socket.send(Message::text(event.to_string())).await.is_err() {
                return;
            }
        }
    }
}
