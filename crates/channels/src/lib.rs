//! Channels: how messages travel between people and agents, over services that others run.
//!
//! ```text
//!            vendor ──▶ receive / listen ──▶ Event ──▶ core: whose, wanted, new? ──▶ rows, turn ──▶ acknowledged
//!            vendor ◀── send ◀── Part ◀── core: outbox, order, limits, retries ◀── the agent's markdown
//! ```
//!
//! A **transport** is thin. It knows one vendor: it verifies, decodes, and sends once. It has no database, keeps no state
//! between calls, never retries, and decides nothing about a message.
//!
//! The **core** (the control plane) is the same for all of them. It owns whitelist and label whitelist, `mention_off`, the
//! echo filter, duplicates, contacts and conversations, turns, order, retries and back-off, the vendors' limits, what a button
//! decides, attachments' files, the cursor, leases, and the state of a channel.
//!
//! What differs between vendors and can be written as a number or a word is data: [`Traits`]. What an answer of a vendor
//! means for the outbox is a [`Failure`]; each has exactly one consequence, which its documentation states.
//!
//! - `contract/`: what core and transports say to each other. [`Transport`] is the trait, [`open`] makes one.
//! - `world/`: HTTP, names, TLS, time; its guard keeps what tenants type from leading inward.
//! - `signature.rs`: signatures of requests; `markdown/`: one text for each vendor's eyes, in parts.
//! - `email/`, `slack/`, `telegram/`, `webhook/`: a transport each; `bounds.rs`: how much and how long;
//!   `pauses.rs`: how long a listener waits before it tries again; `quoted.rs`: words of others in a message.

mod bounds;
mod contract;
mod email;
mod markdown;
mod pauses;
mod quoted;
#[cfg(test)]
mod samples;
mod signature;
mod slack;
#[cfg(test)]
mod strangers;
mod telegram;
mod webhook;
mod world;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

pub use self::{
    contract::{
        Actions, Attachment, Bounce, Button, Cause, Config, Content, Cursor, Dialect, EmailConfig, Event,
        Failure, Files, Hold, Identity, Inbound, Inlet, Kind, Limit, Link, Longest, MailServer, Named,
        OneLine, Origin, Part, Press, Proof, RawRequest, Reading, Receipt, Received, Refusal, RemoteFile,
        Rendered, Reply, Room, Scene, Scope, Sink, Skipped, SlackConfig, SlackInlet, SlackTokenError, Spool,
        Stopped, TelegramConfig, Thread, Traits, Transport, Unit, WebhookConfig,
    },
    email::{TOPMOST as TOPMOST_RESULTS, origin as email_origin},
    markdown::{render, render_plain},
    signature::{Key, KeyError},
    world::{Guard, GuardError, Vendors, World},
};

/// Opens a channel: cheap, and without a call.
pub fn open(config: Config, world: &World) -> Arc<dyn Transport> {
    let world = world.clone();
    match config {
        Config::Email(config) => Arc::new(email::Email::new(*config, world)),
        Config::Slack(config) => Arc::new(slack::Slack::new(config, &world)),
        Config::Telegram(config) => Arc::new(telegram::Telegram::new(config, &world)),
        Config::Webhook(config) => Arc::new(webhook::Webhook::new(*config, world)),
    }
}

/// Reads a message that was kept as it came ([`Inbound::source`]), off the workers. `None`: it is no message.
///
/// # Errors
/// Why it can't be read.
pub async fn reread(source: Bytes, now: Timestamp) -> Result<Option<Inbound>, String> {
    email::reread(source, now).await
}

/// What is true of a vendor.
pub fn traits(kind: Kind) -> &'static Traits {
    match kind {
        Kind::Email => email::Email::TRAITS,
        Kind::Slack => slack::Slack::TRAITS,
        Kind::Telegram => telegram::Telegram::TRAITS,
        Kind::Webhook => webhook::Webhook::TRAITS,
    }
}
