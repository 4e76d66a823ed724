//! Slack: apps, by Socket Mode or the Events API.
//!
//! Targets are `<channel>` or, in a thread, `<channel>/<ts>`; message ids are `<channel>:<ts>`. A mention arrives twice
//! (`message` and `app_mention`) with the same key. Errors have status 200.
//!
//! - `api.rs`: calls and their errors; `events.rs`: incoming events; `mrkdwn.rs`: Slack's markup; `blocks/`: the rest
//!   of a message's visible content.
//! - `socket.rs`: Socket Mode; `outgoing.rs`: sending, finding sent messages, and reactions.

mod api;
mod blocks;
mod events;
mod mrkdwn;
mod outgoing;
mod socket;

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;

use self::api::Api;
#[cfg(test)]
pub use self::events::decode;
use crate::{
    contract::{
        Abilities, Action, ActionCall, ButtonPress, Cursor, Dialect, Failure, Files, Identity, Inlet, Kind,
        Limit, Longest, Part, Proof, RawRequest, Receipt, Received, Refusal, RemoteFile, Reply, Scope, Sink,
        SlackConfig, SlackInlet, Spool, Traits, Transport, Unit,
    },
    network::Network,
    reaction::react,
    signature::{self, Key},
};

/// <https://docs.slack.dev/apis/web-api/rate-limits>; Slack advises texts of up to 4,000 characters.
static TRAITS: Traits = Traits {
    kind: Kind::Slack,
    dialect: Dialect::Mrkdwn,
    longest: Longest { count: 3500, unit: Unit::Characters },
    limits: &[Limit { scope: Scope::Target, count: 1, per: Duration::from_secs(1) }],
    longest_send: Duration::from_secs(180),
    idempotent_send: false,
    reconciles: true,
    inlet: Inlet::Both,
    files: Files::Apart,
    abilities: Abilities { buttons: true, edits: true, typing: Some(Duration::from_secs(90)) },
    actions: &[REACT],
    largest_in: 50 * 1024 * 1024,
    largest_out: 50 * 1024 * 1024,
};

const REACT: Action = react!(
    "Puts an emoji on a message that you received, such as `eyes` while you work on it.",
    "The emoji's name at Slack: thumbsup, eyes, white_check_mark, tada, thinking_face, …"
);

/// A Slack app.
pub struct Slack {
    api: Api,
    files: Url,
    config: SlackConfig,
}

impl Slack {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: SlackConfig, network: &Network) -> Self {
        Self {
            api: Api::new(network, config.bot_token.clone()),
            files: network.vendors.slack_files.clone(),
            config,
        }
    }

    async fn identify(&self) -> Result<Identity, Failure> {
        let me = self.api.call_json("auth.test", &json!({})).await?;
        if let SlackInlet::Socket(token) = &self.config.inlet {
            self.api.with(token.clone()).call_json("apps.connections.open", &json!({})).await?;
        }
        let ids = ["user_id", "bot_id"].map(|name| me[name].as_str().map(str::to_owned));
        Ok(Identity {
            self_ids: ids.into_iter().flatten().collect(),
            handle: me["user"].as_str().map(str::to_owned),
            ..Identity::default()
        })
    }

    fn verify_request(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<Value, Refusal> {
        let SlackInlet::Events(secret) = &self.config.inlet else { return Err(Refusal::NotConfigured) };
        let key = Key::new(secret).map_err(|_| Refusal::NotConfigured)?;
        let timestamp = request.header("x-slack-request-timestamp").ok_or(Refusal::Unsigned)?;
        let signature = request.header("x-slack-signature").ok_or(Refusal::Unsigned)?;
        signature::verify_slack(&key, timestamp, signature, request.body, now)?;
        // Clicks on buttons come as a form with one field. People could imitate one inside an event.
        let is_form = request.body.starts_with(b"payload=");
        let mut fields = url::form_urlencoded::parse(if is_form { request.body } else { b"" });
        let payload = fields.next().map(|(_, json)| json.into_owned().into_bytes());
        muster_json::from_slice(payload.as_deref().unwrap_or(request.body))
            .map_err(|_| Refusal::Malformed("The body is not an event of Slack.".into()))
    }

    /// The token goes only to Slack's file host.
    async fn download_file(&self, file: &RemoteFile, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        self.api.download(file.url_at("Slack", &self.files)?, to, most).await
    }
}

impl Transport for Slack {
    fn traits(&self) -> &'static Traits {
        Self::TRAITS
    }

    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(self.identify())
    }

    fn receive(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<Received, Refusal> {
        let payload = self.verify_request(request, now)?;
        if payload["type"] == "url_verification" {
            let challenge = payload["challenge"].as_str().unwrap_or_default().to_owned();
            return Ok(Received {
                events: Vec::new(),
                reply: Reply { body: Bytes::from(challenge), ..Reply::done() },
            });
        }
        // A rejected event would come again, and too many rejections switch the app's events off.
        let event = events::decode(&payload, Proof::Signed).unwrap_or_else(|refusal| {
            tracing::warn!(%refusal, "an event of Slack's is skipped");
            None
        });
        Ok(Received { events: event.into_iter().collect(), reply: Reply::done() })
    }

    fn listen<'a>(
        &'a self,
        _: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(async move {
            match &self.config.inlet {
                SlackInlet::Socket(token) => socket::listen(&self.api.with(token.clone()), sink).await,
                SlackInlet::Events(_) => {
                    Err(Failure::Refused("This app gets its events by the Events API.".into()))
                }
            }
        })
    }

    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(outgoing::send(&self.api, part))
    }

    fn reconcile<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Option<Receipt>, Failure>> {
        Box::pin(outgoing::find_sent(&self.api, part))
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
        Box::pin(self.download_file(file, to, most.min(TRAITS.largest_in)))
    }

    fn typing<'a>(&'a self, target: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(outgoing::show_typing(&self.api, target))
    }

    fn answer<'a>(&'a self, press: &'a ButtonPress, text: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let said = json!({"channel": self.chat(&press.target), "user": press.reply_to, "text": text});
            self.api.call_json("chat.postEphemeral", &said).await.map(drop)
        })
    }

    fn chat<'a>(&self, target: &'a str) -> &'a str {
        outgoing::split_target(target).0
    }
}
