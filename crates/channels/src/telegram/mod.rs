//! Telegram: bots, by long polling or by webhook.
//!
//! Targets are `<chat>` or, in a forum, `<chat>/<topic>`, in a channel's direct messages `<chat>/direct-<topic>`.
//! Message ids are `<chat>:<message>`, since Telegram numbers messages per chat, with a leading `<bot>/` where each bot
//! has its own numbers.
//!
//! Updates are confirmed by the offset of the **next** poll, after the commit; with a webhook, by the response.
//! Unconfirmed updates come again.
//!
//! - `api.rs`: calls and their errors; `outgoing.rs`: sending, and reactions.
//! - `updates.rs`: incoming updates; `entities.rs`: markup; `context.rs`: replies and forwards; `notes.rs`: content
//!   other than text and files.

mod api;
mod context;
mod entities;
mod notes;
mod outgoing;
mod updates;

use std::{convert::Infallible, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

#[cfg(test)]
pub use self::updates::{BotIdentity as Bot, decode};
use self::{api::Api, updates::BotIdentity};
use crate::{
    backoff::Backoff,
    contract::{
        Abilities, Action, ActionCall, ButtonPress, Cursor, Dialect, Event, Failure, Files, Identity, Inlet,
        Kind, Limit, Link, Longest, Part, RawRequest, Receipt, Received, Refusal, RemoteFile, Reply, Scope,
        Sink, Skipped, Spool, TelegramConfig, Traits, Transport, Unit,
    },
    network::Network,
    reaction::react,
};

/// <https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this>
static TRAITS: Traits = Traits {
    kind: Kind::Telegram,
    dialect: Dialect::TelegramHtml,
    longest: Longest { count: 4096, unit: Unit::VisibleUtf16 },
    limits: &[
        Limit { scope: Scope::Channel, count: 30, per: Duration::from_secs(1) },
        Limit { scope: Scope::Target, count: 1, per: Duration::from_secs(1) },
        Limit { scope: Scope::Group, count: 20, per: Duration::from_secs(60) },
    ],
    longest_send: Duration::from_secs(80),
    idempotent_send: false,
    reconciles: false,
    inlet: Inlet::Both,
    files: Files::Apart,
    abilities: Abilities { buttons: true, edits: true, typing: Some(Duration::from_secs(4)) },
    actions: &[REACT],
    largest_in: 20 * 1024 * 1024,
    largest_out: 50 * 1024 * 1024,
};

const REACT: Action = react!(
    "Puts an emoji on a message that you received, such as 👀 while you work on it. It replaces your earlier one.",
    "One that Telegram has as a reaction: 👍 👎 ❤ 🔥 👏 😁 🤔 🤯 😢 🎉 🤩 🙏 👌 😍 💯 🤣 ⚡ 🏆 👀 🤝 ✍ 🫡 🆒 …"
);

/// Requested kinds of updates.
const UPDATE_KINDS: [&str; 5] =
    ["message", "edited_message", "channel_post", "edited_channel_post", "callback_query"];
/// Prefix of a webhook's error.
const UNREACHED: &str = "Telegram can't reach the webhook";

/// A Telegram bot.
pub struct Telegram {
    api: Api,
    config: TelegramConfig,
}

impl Telegram {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: TelegramConfig, network: &Network) -> Self {
        Self { api: Api::new(network, config.token.clone()), config }
    }

    /// Our identity, as of the last probe.
    fn identity(&self) -> BotIdentity {
        BotIdentity { id: self.api.bot(), username: self.config.username.clone() }
    }

    async fn identify(&self) -> Result<Identity, Failure> {
        let me = self.api.call("getMe", &json!({})).await?;
        let info = self.api.call("getWebhookInfo", &json!({})).await?;
        let handle = me["username"].as_str().map(str::to_owned);
        let mut warnings = Vec::new();
        if me["can_read_all_group_messages"] == false {
            let privacy = "In groups the bot sees only commands, replies and messages that name it. BotFather's /setprivacy \
                           changes that.";
            warnings.push(privacy.to_owned());
        }
        if let Some(error) = info["last_error_message"].as_str() {
            warnings.push(format!("{UNREACHED}: {error}"));
        }
        Ok(Identity {
            self_ids: me["id"].as_i64().map(|id| id.to_string()).into_iter().collect(),
            invite_url: handle.as_ref().map(|handle| format!("https://t.me/{handle}?startgroup=true")),
            handle,
            warnings,
            valid_for: None,
        })
    }

    async fn poll(&self, cursor: Option<Cursor>, sink: &dyn Sink) -> Result<Infallible, Failure> {
        let me = self.identity();
        let mut offset: Option<i64> = cursor.and_then(|cursor| cursor.0.parse().ok());
        let (mut backoff, mut is_up) = (Backoff::new(), false);
        loop {
            // Seconds of a long poll. The first one returns at once, to show whether Telegram responds.
            let patience = if is_up { 50 } else { 0 };
            let question =
                json!({"offset": offset, "timeout": patience, "limit": 100, "allowed_updates": UPDATE_KINDS});
            let wait = match self.api.call("getUpdates", &question).await {
                Ok(updates) => {
                    if !std::mem::replace(&mut is_up, true) {
                        sink.link(Link::Up);
                    }
                    backoff.reset();
                    offset = self.hand_over(&me, &updates, offset, sink).await?;
                    continue;
                }
                Err(failure @ (Failure::Credentials(_) | Failure::Taken(_))) => return Err(failure),
                Err(failure) => {
                    is_up = false;
                    sink.link(Link::Down(failure.to_string().into()));
                    if let Failure::RateLimited { wait, .. } = failure { Some(wait) } else { None }
                }
            };
            backoff.wait(wait).await;
        }
    }

    /// Hands updates over. Returns the offset that confirms them, for use after the commit.
    async fn hand_over(
        &self,
        me: &BotIdentity,
        updates: &Value,
        offset: Option<i64>,
        sink: &dyn Sink,
    ) -> Result<Option<i64>, Failure> {
        let mut events = Vec::new();
        let mut last = None;
        for update in updates.as_array().into_iter().flatten() {
            last = last.max(update["update_id"].as_i64());
            match updates::decode(update, me) {
                Ok(event) => events.extend(event),
                Err(refusal) => {
                    let vendor_id = update["update_id"].to_string();
                    let reason = refusal.to_string().into();
                    sink.skipped(Skipped { vendor_id, subject: None, reason }).await;
                }
            }
        }
        let Some(last) = last else { return Ok(offset) };
        updates::address_albums(&mut events);
        // It may be lower than before: another bot starts over, and so does one after a quiet week.
        let next = last.saturating_add(1);
        let stopped = sink.admit(events, Some(Cursor(next.to_string()))).await;
        stopped.map_err(|stopped| Failure::NotSent(stopped.to_string().into()))?;
        Ok(Some(next))
    }
}

impl Transport for Telegram {
    fn traits(&self) -> &'static Traits {
        Self::TRAITS
    }

    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(self.identify())
    }

    fn register<'a>(&'a self, address: Option<&'a str>) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            let Some(url) = address else {
                self.api.call("deleteWebhook", &json!({})).await?;
                return Ok(false);
            };
            let secret = self.config.webhook_secret.expose_secret();
            let wish = json!({"url": url, "secret_token": secret, "allowed_updates": UPDATE_KINDS});
            self.api.call("setWebhook", &wish).await?;
            // Telegram keeps an old error; it matters only while updates are pending.
            let info = self.api.call("getWebhookInfo", &json!({})).await?;
            match info["last_error_message"].as_str() {
                Some(error) if info["pending_update_count"].as_u64() > Some(0) => {
                    Err(Failure::NotSent(format!("{UNREACHED}: {error}").into()))
                }
                _ => Ok(true),
            }
        })
    }

    fn receive(&self, request: &RawRequest<'_>, _: Timestamp) -> Result<Received, Refusal> {
        let secret = self.config.webhook_secret.expose_secret().as_bytes();
        if secret.is_empty() {
            return Err(Refusal::NotConfigured);
        }
        let given = request.header("x-telegram-bot-api-secret-token").ok_or(Refusal::Unsigned)?;
        if !bool::from(given.as_bytes().ct_eq(secret)) {
            return Err(Refusal::BadSignature);
        }
        let update: Value = muster_json::from_slice(request.body)
            .map_err(|_| Refusal::Malformed("The body is not an update of Telegram.".into()))?;
        // A rejected update would come again and again, and block all later ones.
        let event: Option<Event> = updates::decode(&update, &self.identity()).unwrap_or_else(|refusal| {
            tracing::warn!(%refusal, "an update of Telegram's is skipped");
            None
        });
        Ok(Received { events: event.into_iter().collect(), reply: Reply::done() })
    }

    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(self.poll(cursor, sink))
    }

    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(outgoing::send(&self.api, part))
    }

    fn act<'a>(&'a self, call: &'a ActionCall<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(outgoing::react(&self.api, call))
    }

    fn fetch<'a>(
        &'a self,
        file: &'a RemoteFile,
        to: Spool<'a>,
        most: u64,
    ) -> BoxFuture<'a, Result<u64, Failure>> {
        Box::pin(async move {
            let found = self.api.call("getFile", &json!({"file_id": file.handle()?})).await?;
            let path = found["file_path"].as_str().unwrap_or_default();
            self.api.download(path, to, most.min(TRAITS.largest_in)).await
        })
    }

    fn typing<'a>(&'a self, target: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let mut action = outgoing::chat_address(target)?;
            // Telegram has no indicator in a channel's direct messages.
            if !action["direct_messages_topic_id"].is_null() {
                return Ok(());
            }
            action["action"] = "typing".into();
            self.api.call("sendChatAction", &action).await.map(drop)
        })
    }

    fn answer<'a>(&'a self, press: &'a ButtonPress, text: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            // Telegram's limit is 200 characters.
            let text: String = text.chars().take(200).collect();
            let answer = json!({"callback_query_id": press.reply_to, "text": text});
            self.api.call("answerCallbackQuery", &answer).await.map(drop)
        })
    }

    fn chat<'a>(&self, target: &'a str) -> &'a str {
        outgoing::split_target(target).0
    }

    /// Groups have negative ids.
    fn is_group(&self, target: &str) -> bool {
        target.starts_with('-')
    }
}
