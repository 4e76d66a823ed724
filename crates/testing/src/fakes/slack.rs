//! A fake Slack with Socket Mode: <https://docs.slack.dev/reference/methods>.

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{
        State, WebSocketUpgrade,
        ws::{Message, WebSocket},
    },
    http::{HeaderMap, StatusCode, Uri, header::AUTHORIZATION},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::{Value, json};

use super::{asked, serve};

/// The tokens of the app.
pub const BOT: &str = "xoxb-canary-1";
pub const APP: &str = "xapp-canary-2";
/// Some of the workspace's emoji.
const EMOJI: [&str; 2] = ["eyes", "thumbsup"];

#[derive(Default)]
pub struct Fake {
    pub at: Option<SocketAddr>,
    /// Answers that replace the next regular ones.
    pub answers: VecDeque<(u16, Value)>,
    /// The received requests.
    pub asked: Vec<(String, Value)>,
    /// Unacknowledged envelopes.
    pub envelopes: Vec<Value>,
    pub uploaded: Vec<Bytes>,
    /// The number of opened sockets.
    pub sockets: usize,
    /// Sent messages with their channel.
    messages: Vec<(String, Value)>,
    /// The app's reactions: message and name.
    reactions: BTreeSet<(String, String)>,
}

pub type Shared = Arc<Mutex<Fake>>;

pub async fn slack() -> (SocketAddr, Shared) {
    let fake = Shared::default();
    let router = Router::new().route("/socket", any(socket)).fallback(answer).with_state(Arc::clone(&fake));
    let address = serve(router).await;
    fake.lock().unwrap().at = Some(address);
    (address, fake)
}

/// An envelope with a person's message to the app.
pub fn envelope(id: &str, said: &str) -> Value {
    let event = json!({"type": "message", "user": "U1", "text": said, "ts": format!("1700000000.{id}"), "channel": "D1",
        "channel_type": "im", "event_ts": format!("1700000000.{id}")});
    let payload = json!({"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": format!("Ev{id}"),
        "event_time": 1_700_000_000, "event": event, "authorizations": [{"team_id": "T1", "user_id": "UBOT", "is_bot": true}]});
    json!({"type": "events_api", "envelope_id": id, "accepts_response_payload": false, "payload": payload})
}

async fn answer(State(fake): State<Shared>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let token = headers.get(AUTHORIZATION).map(|token| token.to_str().unwrap().to_owned());
    match uri.path() {
        "/upload" => {
            assert_eq!(token, None, "the upload's address gets no token");
            fake.lock().unwrap().uploaded.push(body);
            "OK".into_response()
        }
        "/files/a.txt" => "abc".into_response(),
        path => {
            let method = path.trim_start_matches("/api/").to_owned();
            let expected = if method == "apps.connections.open" { APP } else { BOT };
            if token != Some(format!("Bearer {expected}")) {
                return Json(json!({"ok": false, "error": "invalid_auth"})).into_response();
            }
            let asked = asked(&uri, &headers, body).await;
            let (status, said) = fake.lock().unwrap().judge(&method, &asked);
            let wait = [("retry-after", "11")];
            (StatusCode::from_u16(status).unwrap(), wait, Json(said)).into_response()
        }
    }
}

impl Fake {
    fn judge(&mut self, method: &str, asked: &Value) -> (u16, Value) {
        self.asked.push((method.to_owned(), asked.clone()));
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        let at = self.at.unwrap();
        let channel = asked["channel"].as_str().unwrap_or_default().to_owned();
        let mut said = match method {
            "auth.test" => {
                json!({"url": "https://acme.slack.com/", "team": "Acme", "user": "muster", "team_id": "T1",
                "user_id": "UBOT", "bot_id": "BBOT", "is_enterprise_install": false})
            }
            "apps.connections.open" => json!({"url": format!("ws://{at}/socket?ticket=canary")}),
            "chat.postMessage" => {
                let message = self.post(&channel, asked);
                json!({"channel": channel, "ts": message["ts"], "message": message})
            }
            "chat.update" => json!({"channel": channel, "ts": asked["ts"], "text": asked["text"]}),
            "conversations.replies" | "conversations.history" => {
                let of_it = self.messages.iter().filter(|(place, _)| *place == channel);
                json!({"messages": of_it.map(|(_, message)| message).collect::<Vec<_>>(), "has_more": false})
            }
            "files.getUploadURLExternal" => {
                json!({"upload_url": format!("http://{at}/upload"), "file_id": "F1"})
            }
            "files.completeUploadExternal" => json!({"files": asked["files"]}),
            "assistant.threads.setStatus" => json!({}),
            "reactions.add" => {
                let word = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
                if !EMOJI.contains(&word("name").as_str()) {
                    return (200, json!({"ok": false, "error": "invalid_name"}));
                }
                if !self.reactions.insert((word("timestamp"), word("name"))) {
                    return (200, json!({"ok": false, "error": "already_reacted"}));
                }
                json!({})
            }
            "chat.postEphemeral" => json!({"message_ts": "1700000009.000900"}),
            _ => return (200, json!({"ok": false, "error": "unknown_method"})),
        };
        said["ok"] = true.into();
        (200, said)
    }

    fn post(&mut self, channel: &str, asked: &Value) -> Value {
        let nth = self.messages.len() + 2;
        let message = json!({"type": "message", "user": "UBOT", "bot_id": "BBOT", "text": asked["text"],
            "ts": format!("170000000{nth}.000200"), "metadata": asked["metadata"]});
        self.messages.push((channel.to_owned(), message.clone()));
        message
    }
}

async fn socket(State(fake): State<Shared>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|socket| serve_socket(socket, fake))
}

/// Sends the unacknowledged envelopes one at a time, and then requests a new socket.
async fn serve_socket(mut socket: WebSocket, fake: Shared) {
    fake.lock().unwrap().sockets += 1;
    let hello = json!({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"},
        "debug_info": {"host": "applink-1", "approximate_connection_time": 18_060}});
    let _ = socket.send(Message::text(hello.to_string())).await;
    loop {
        let next = fake.lock().unwrap().envelopes.first().cloned();
        let Some(envelope) = next else { break };
        if socket.send(Message::text(envelope.to_string())).await.is_err() {
            return;
        }
        let Some(acknowledged) = said_on(&mut socket).await else { return };
        fake.lock().unwrap().envelopes.retain(|kept| kept["envelope_id"] != acknowledged["envelope_id"]);
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let farewell =
        json!({"type": "disconnect", "reason": "refresh_requested", "debug_info": {"host": "applink-1"}});
    let _ = socket.send(Message::text(farewell.to_string())).await;
    let _ = said_on(&mut socket).await;
}

/// The app's next message. The library answers pings.
async fn said_on(socket: &mut WebSocket) -> Option<Value> {
    loop {
        match socket.recv().await? {
            Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            _ => return None,
        }
    }
}
