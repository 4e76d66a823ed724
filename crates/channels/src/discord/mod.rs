//! Discord: bots, by the gateway.
//!
//! Targets are channels: direct chats, channels of servers, and threads, which Discord counts as channels. The gateway
//! acknowledges nothing: a session is resumed after the last stored event, and brings the later ones again. After the
//! end of a session, missed messages of known chats are fetched.
//!
//! - `api.rs`: calls and their errors; `outgoing.rs`: sending, and reactions.
//! - `gateway.rs`: a connection; `listening.rs`: sessions and the position in them.
//! - `events.rs`: incoming events; `text.rs`: Discord's markup; `content.rs`: content other than text and files.

mod api;
mod content;
mod events;
mod gateway;
mod listening;
mod outgoing;
mod text;

use std::{convert::Infallible, time::Duration};

use futures::future::BoxFuture;
use http::Method;
use serde_json::json;
use url::Url;

use self::api::Api;
#[cfg(test)]
pub use self::events::{Chat, Snowflake, decode};
use crate::{
    bounds,
    contract::{
        Abilities, Action, ActionCall, ButtonPress, Cursor, Dialect, DiscordConfig, Failure, Files, Identity,
        Inlet, Kind, Limit, Longest, Part, Receipt, RemoteFile, Scope, Sink, Spool, Traits, Transport, Unit,
    },
    network::Network,
    reaction::react,
};

/// <https://discord.com/developers/docs/topics/rate-limits>. Discord states other limits in its responses only.
static TRAITS: Traits = Traits {
    kind: Kind::Discord,
    dialect: Dialect::Discord,
    longest: Longest { count: 2000, unit: Unit::Characters },
    limits: &[Limit { scope: Scope::Channel, count: 50, per: Duration::from_secs(1) }],
    longest_send: bounds::TRANSFER.saturating_add(bounds::NETWORK_WAIT),
    idempotent_send: true,
    reconciles: false,
    inlet: Inlet::Pull,
    files: Files::Apart,
    abilities: Abilities { buttons: true, edits: true, typing: Some(Duration::from_secs(8)) },
    actions: &[REACT],
    largest_in: 50 * 1024 * 1024,
    largest_out: 10 * 1024 * 1024,
};

const REACT: Action = react!(
    "Puts an emoji on a message that you received, such as 👀 while you work on it.",
    "The emoji itself: 👍 👀 ✅ 🎉 🤔 …, or one of the server's own as `name:id`."
);

/// The bits of permissions: to view channels, to send messages there and in threads, to add reactions, to attach files,
/// and to read the history, which replies and missed messages need.
const PERMISSIONS: [u8; 6] = [10, 11, 38, 6, 15, 16];
/// Remedy of a missing intent.
const INTENT: &str = "Discord: the Message Content Intent is off, without which the bot can't read messages in servers. \
                      Switch it on in the Developer Portal: Bot → Privileged Gateway Intents.";

/// A Discord bot.
pub struct Discord {
    api: Api,
    files: Url,
}

impl Discord {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: DiscordConfig, network: &Network) -> Self {
        Self { api: Api::new(network, config.token), files: network.vendors.discord_files.clone() }
    }

    async fn identify(&self) -> Result<Identity, Failure> {
        let me = self.api.get("users/@me").await?;
        let app = self.api.get("applications/@me").await?;
        // Flags of applications that may read messages; the second one, of those in few servers.
        let may_read = (1 << 18) | (1 << 19);
        let reads = app["flags"].as_u64().is_some_and(|flags| flags & may_read != 0);
        let permissions = PERMISSIONS.iter().fold(0, |all, bit| all | (1_u64 << bit));
        let invite = |id: &str| {
            format!("https://discord.com/oauth2/authorize?client_id={id}&scope=bot&permissions={permissions}")
        };
        Ok(Identity {
            self_ids: me["id"].as_str().map(str::to_owned).into_iter().collect(),
            handle: me["username"].as_str().map(str::to_owned),
            invite_url: app["id"].as_str().map(invite),
            warnings: (!reads).then(|| INTENT.to_owned()).into_iter().collect(),
            valid_for: None,
        })
    }

    async fn download(&self, file: &RemoteFile, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        self.api.download(file.url_at("Discord", &self.files)?, to, most).await
    }
}

impl Transport for Discord {
    fn traits(&self) -> &'static Traits {
        Self::TRAITS
    }

    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(self.identify())
    }

    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(listening::listen(&self.api, cursor, sink))
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
        Box::pin(self.download(file, to, most.min(TRAITS.largest_in)))
    }

    fn typing<'a>(&'a self, target: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let path = format!("channels/{}/typing", outgoing::number(target)?);
            self.api.send(Method::POST, &path, &json!({})).await.map(drop)
        })
    }

    /// The gateway has acknowledged the tap already.
    fn answer<'a>(&'a self, press: &'a ButtonPress, text: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let path = format!("webhooks/{}/messages/@original", press.reply_to);
            let answer = json!({"content": text, "allowed_mentions": {"parse": []}});
            self.api.send(Method::PATCH, &path, &answer).await.map(drop)
        })
    }
}
