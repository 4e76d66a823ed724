//! Calls to Telegram's Bot API. The token is part of the URL, so no error contains the URL.

use std::time::Duration;

use reqwest::multipart::Form;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use crate::{
    bounds,
    contract::{Cause, Failure, Scope, Spool},
    network::{HttpResponse, Network, VendorClient},
};

/// Bounds calls on a dead connection. Longer than a long poll.
const PATIENCE: Duration = Duration::from_secs(65);
const PEER: &str = "Telegram";
/// Descriptions of rejections by a chat, beside status 403.
const GONE: [&str; 6] = [
    "chat not found",
    "chat was deactivated",
    "message thread not found",
    "peer_id_invalid",
    "topic_closed",
    "user_deactivated",
];

/// Telegram's Bot API with a bot's token.
pub struct Api {
    vendor: VendorClient,
    base: Url,
    token: SecretString,
}

/// The bot's id, at the beginning of its token.
fn bot_id(token: &str) -> Option<i64> {
    token.split_once(':')?.0.parse().ok()
}

impl Api {
    pub fn new(network: &Network, token: SecretString) -> Self {
        Self { vendor: network.vendor.clone(), base: network.vendors.telegram.clone(), token }
    }

    pub fn bot(&self) -> i64 {
        bot_id(self.token.expose_secret()).unwrap_or_default()
    }

    /// Calls a method, and returns its result.
    pub async fn call(&self, method: &str, parameters: &Value) -> Result<Value, Failure> {
        let request = self.vendor.http.post(self.address("", method)?).json(parameters);
        self.read_response(&self.vendor.call(PEER, request, PATIENCE).await?)
    }

    /// Calls a method with a file.
    pub async fn upload(&self, method: &str, form: Form) -> Result<Value, Failure> {
        let request = self.vendor.http.post(self.address("", method)?).multipart(form);
        self.read_response(&self.vendor.call(PEER, request, PATIENCE).await?)
    }

    /// Downloads a file.
    pub async fn download(&self, path: &str, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
        if path.is_empty() || path.contains("..") || !path.chars().all(is_path) {
            return Err(Failure::Refused("Telegram does not give this file.".into()));
        }
        let request = self.vendor.http.get(self.address("file/", path)?);
        self.vendor.download(PEER, request, to, most).await
    }

    fn address(&self, folder: &str, rest: &str) -> Result<Url, Failure> {
        let token = self.token.expose_secret();
        let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
        if bot_id(token).is_none() || !token.chars().all(is_token) {
            return Err(Failure::Credentials("This is not a token of a Telegram bot.".into()));
        }
        let slash = if self.base.path().ends_with('/') { "" } else { "/" };
        Url::parse(&format!("{}{slash}{folder}bot{token}/{rest}", self.base))
            .map_err(|_| Failure::NotSent("Telegram's address can't be used.".into()))
    }

    /// Maps a response to a result.
    fn read_response(&self, answer: &HttpResponse) -> Result<Value, Failure> {
        let mut said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
        if said["ok"] == true {
            return Ok(said["result"].take());
        }
        let words = said["description"].as_str().unwrap_or_default().replace(self.token.expose_secret(), "…");
        let cause = match words.as_str() {
            "" => Cause::from(format!("Telegram answered with status {}.", answer.status.as_u16())),
            words => Cause::from(format!("Telegram: {words}")),
        };
        let parameters = &said["parameters"];
        Err(match answer.status.as_u16() {
            401 | 404 => Failure::Credentials(cause),
            400 if parameters["migrate_to_chat_id"].is_i64() => {
                Failure::TargetMoved { to: parameters["migrate_to_chat_id"].to_string() }
            }
            400 if GONE.iter().any(|gone| words.to_ascii_lowercase().contains(gone)) => {
                Failure::TargetGone(cause)
            }
            403 => Failure::TargetGone(cause),
            409 => Failure::Taken(cause),
            429 => {
                let wait = parameters["retry_after"].as_u64().map_or(bounds::RETRY, Duration::from_secs);
                Failure::RateLimited { wait, scope: Scope::Target, cause }
            }
            400..500 => Failure::Refused(cause),
            _ => Failure::Unknown(cause),
        })
    }
}
