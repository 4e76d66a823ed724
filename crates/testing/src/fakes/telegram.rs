//! A fake Telegram: <https://core.telegram.org/bots/api>.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{asked, number, serve};

/// The token of the bot.
pub const TOKEN: &str = "7:canary-AAF_secret";
/// The bot's next token.
pub const NEW_TOKEN: &str = "7:canary-AAG_secret";
/// The token of another bot with the same answers.
pub const OTHER: &str = "9:canary-AAF_secret";
/// Some of the emoji that can be reactions.
const REACTIONS: [&str; 3] = ["👀", "👍", "❤"];

#[derive(Default)]
pub struct Fake {
    /// Unconfirmed updates.
    pub updates: Vec<Value>,
    /// Answers that replace the next regular ones.
    pub answers: VecDeque<(u16, Value)>,
    /// The next call of this method waits for this answer.
    pub held: Option<(&'static str, oneshot::Receiver<(u16, Value)>)>,
    /// The received requests.
    pub asked: Vec<(String, Value)>,
    /// The URL of the webhook. While it is set, `getUpdates` fails.
    pub webhook: String,
    /// The number of sent messages.
    sent: i64,
}

pub type Shared = Arc<Mutex<Fake>>;

pub async fn telegram() -> (SocketAddr, Shared) {
    let fake = Shared::default();
    let router = Router::new().fallback(answer).with_state(Arc::clone(&fake));
    (serve(router).await, fake)
}

/// An error response.
pub fn refusal(status: u16, description: &str) -> (u16, Value) {
    (status, json!({"ok": false, "error_code": status, "description": description}))
}

/// An update with a person's message.
pub fn said(id: i64, text: &str) -> Value {
    json!({"update_id": id, "message": {"message_id": id, "date": 1_700_000_000, "text": text,
        "from": {"id": 5, "is_bot": false, "first_name": "Ada"}, "chat": {"id": 5, "type": "private", "first_name": "Ada"}}})
}

async fn answer(State(fake): State<Shared>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    // Some clients encode the colon.
    let path = uri.path().trim_start_matches('/').replace("%3A", ":");
    if path == format!("file/bot{TOKEN}/documents/a.txt") {
        return "abc".into_response();
    }
    let tokens = [TOKEN, NEW_TOKEN, OTHER];
    let Some(method) = tokens.iter().find_map(|token| path.strip_prefix(&format!("bot{token}/"))) else {
        return respond(refusal(401, "Unauthorized"));
    };
    let asked = asked(&uri, &headers, body).await;
    let held = fake.lock().unwrap().hold(method, &asked);
    let (status, said) = match held {
        Some(answer) => answer.await.unwrap(),
        None => fake.lock().unwrap().judge(method, &asked),
    };
    if method == "getUpdates" && said["result"] == json!([]) {
        // The real server waits for fifty seconds.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    respond((status, said))
}

fn respond((status, said): (u16, Value)) -> Response {
    (StatusCode::from_u16(status).unwrap(), Json(said)).into_response()
}

impl Fake {
    fn hold(&mut self, method: &str, asked: &Value) -> Option<oneshot::Receiver<(u16, Value)>> {
        let (_, answer) = self.held.take_if(|(held, _)| *held == method)?;
        self.asked.push((method.to_owned(), asked.clone()));
        Some(answer)
    }

    fn judge(&mut self, method: &str, asked: &Value) -> (u16, Value) {
        self.asked.push((method.to_owned(), asked.clone()));
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        let result = match method {
            "getMe" => json!({"id": 7, "is_bot": true, "first_name": "Muster", "username": "muster_bot",
                "can_join_groups": true, "can_read_all_group_messages": false, "supports_inline_queries": false}),
            "getWebhookInfo" => {
                json!({"url": self.webhook, "has_custom_certificate": false, "pending_update_count": self.updates.len()})
            }
            "setWebhook" => {
                asked["url"].as_str().unwrap().clone_into(&mut self.webhook);
                json!(true)
            }
            "deleteWebhook" => {
                self.webhook.clear();
                json!(true)
            }
            "getUpdates" if !self.webhook.is_empty() => {
                return refusal(409, "Conflict: can't use getUpdates method while webhook is active");
            }
            "getUpdates" => {
                let offset = number(&asked["offset"]).unwrap_or_default();
                // An offset far beyond the last id confirms nothing: ids can restart.
                let last = self.updates.last().and_then(|update| update["update_id"].as_i64());
                if last.is_some_and(|last| offset <= last + 1) {
                    self.updates.retain(|update| update["update_id"].as_i64() >= Some(offset));
                }
                json!(self.updates)
            }
            "sendMessage" | "editMessageText" | "sendDocument" => {
                let number = number(&asked["message_id"]).unwrap_or_else(|| {
                    self.sent += 1;
                    41 + self.sent
                });
                sent(asked, number)
            }
            "getFile" => {
                json!({"file_id": asked["file_id"], "file_unique_id": "u1", "file_size": 3, "file_path": "documents/a.txt"})
            }
            "setMessageReaction" => {
                let is_known = |reaction: &Value| {
                    let emoji = reaction["emoji"].as_str().unwrap_or_default();
                    reaction["type"] == "emoji" && REACTIONS.contains(&emoji)
                };
                if !asked["reaction"].as_array().unwrap().iter().all(is_known) {
                    return refusal(400, "Bad Request: REACTION_INVALID");
                }
                json!(true)
            }
            "sendChatAction" | "answerCallbackQuery" => json!(true),
            _ => return refusal(404, "Not Found: method not found"),
        };
        (200, json!({"ok": true, "result": result}))
    }
}

/// The current state of a sent message.
fn sent(asked: &Value, message: i64) -> Value {
    let chat = number(&asked["chat_id"]).unwrap();
    let chat = if chat < 0 {
        json!({"id": chat, "type": "supergroup", "title": "Team"})
    } else {
        json!({"id": chat, "type": "private", "first_name": "Ada"})
    };
    json!({"message_id": message, "date": 1_700_000_001, "chat": chat,
        "from": {"id": 7, "is_bot": true, "first_name": "Muster", "username": "muster_bot"}, "text": asked["text"]})
}
