//! Transports between messaging vendors and agents.
//!
//! ```text
//!            vendor ──▶ receive / listen ──▶ Event ──▶ core: whose, wanted, new? ──▶ rows, turn ──▶ acknowledged
//!            vendor ◀── send ◀── Part ◀── core: queue, order, limits, retries ◀── the agent's markdown
//! ```
//!
//! A **transport** is thin. It knows one vendor: it verifies, decodes, and sends once. It has no database, keeps no
//! state between calls except what a vendor said about its limits, never retries, and decides nothing about a message.
//!
//! The **core** (the control plane) is shared by all transports. It owns the whitelists, `mention_off`, the echo
//! filter, deduplication, contacts and conversations, turns, order, retries and back-off, rate limits, button
//! decisions, attachment files, the cursor, leases, and the channel's state.
//!
//! Differences between vendors that fit a number or a word are data: [`Traits`]. A vendor's error is a [`Failure`], and
//! each variant documents its single consequence for the queue.
//!
//! - `contract/`: the interface between core and transports. [`Transport`] is the trait, [`open`] makes one.
//! - `network/`: HTTP, DNS, TLS and the clock; its guard keeps tenants' addresses from leading to private networks.
//! - `signature.rs`: request signatures; `markdown/`: one text in each vendor's dialect, split into parts.
//! - [`oauth`]: access to people's accounts at vendors.
//! - `calendar/`, `code_host/`, `discord/`, `drive/`, `email/`, `slack/`, `telegram/`, `webhook/`: the transports.
//! - `dav/`: calls to WebDAV servers; `icalendar/`: events; `reaction.rs`: an action of several vendors.
//! - `bounds.rs`: default limits; `backoff.rs`: pauses between a listener's attempts; `quoting.rs`: quotes and notes
//!   inside a message.

mod backoff;
mod bounds;
mod calendar;
mod code_host;
mod contract;
mod dav;
mod discord;
mod drive;
mod email;
#[cfg(test)]
mod hostile_input;
mod icalendar;
mod markdown;
mod network;
pub mod oauth;
mod quoting;
mod reaction;
#[cfg(test)]
mod samples;
mod signature;
mod slack;
mod telegram;
mod webhook;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

pub use self::{
    code_host::{read_installation, thread_root},
    contract::{
        Abilities, Action, ActionCall, Attachment, Attention, Bounce, Button, ButtonPress, CalendarAccount,
        CalendarConfig, Cause, Choice, CodeHostAccount, CodeHostConfig, CodeHostLogin, CodeHostRules, Config,
        Content, Cursor, Dialect, DiscordConfig, DriveConfig, DriveLogin, EmailConfig, Event, Failure, Files,
        GithubApp, GithubInstallation, Identity, Inbound, Inlet, Kind, Limit, Link, Longest, MailServer,
        MemoryBudget, MemoryGrant, NamedId, OneLine, Origin, Part, Participants, Proof, RawRequest, Reading,
        Receipt, Received, Refusal, RemoteFile, Rendered, Reply, Scope, Sink, Skipped, SlackConfig,
        SlackInlet, SlackTokenError, Software, Spool, Stopped, TelegramConfig, Thread, Traits, Transport,
        Unit, WebhookConfig,
    },
    email::{TOPMOST as TOPMOST_RESULTS, origin as email_origin},
    markdown::{render, render_plain},
    network::{Guard, GuardError, Network, VendorUrls},
    signature::{Key, KeyError},
    webhook::{LONGEST_POST, post_signed},
};

/// Opens a channel. Cheap: makes no call.
pub fn open(config: Config, network: &Network) -> Arc<dyn Transport> {
    let network = network.clone();
    match config {
        Config::Calendar(config) => Arc::new(calendar::Calendars::new(*config, &network)),
        Config::CodeHost(config) => Arc::new(code_host::CodeHost::new(*config, &network)),
        Config::Discord(config) => Arc::new(discord::Discord::new(config, &network)),
        Config::Drive(config) => Arc::new(drive::Drive::new(config, &network)),
        Config::Email(config) => Arc::new(email::Email::new(*config, network)),
        Config::Slack(config) => Arc::new(slack::Slack::new(config, &network)),
        Config::Telegram(config) => Arc::new(telegram::Telegram::new(config, &network)),
        Config::Webhook(config) => Arc::new(webhook::Webhook::new(*config, network)),
    }
}

/// Reads a stored raw message ([`Inbound::source`]) again, off the async workers. `None`: not a message.
///
/// # Errors
/// The reason, as a sentence.
pub async fn reread(source: Bytes, now: Timestamp) -> Result<Option<Inbound>, String> {
    email::reread(source, now).await
}

/// The vendor's traits.
pub fn traits(kind: Kind) -> &'static Traits {
    match kind {
        Kind::Calendar => calendar::Calendars::TRAITS,
        Kind::CodeHost => code_host::CodeHost::TRAITS,
        Kind::Discord => discord::Discord::TRAITS,
        Kind::Drive => drive::Drive::TRAITS,
        Kind::Email => email::Email::TRAITS,
        Kind::Slack => slack::Slack::TRAITS,
        Kind::Telegram => telegram::Telegram::TRAITS,
        Kind::Webhook => webhook::Webhook::TRAITS,
    }
}

/// The risk of an action, from 0 to 100: the highest of all vendors that have an action with this name.
pub fn action_risk(name: &str) -> Option<i64> {
    Kind::ALL.iter().filter_map(|kind| traits(*kind).action(name)).map(|action| action.risk).max()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn actions_are_complete() {
        for kind in Kind::ALL {
            assert_eq!(traits(kind).kind, kind);
            for action in traits(kind).actions {
                let schema: Value = muster_json::from_str(action.schema).unwrap();
                let is_closed = schema["type"] == "object" && schema["additionalProperties"] == false;
                assert!(is_closed, "{kind:?} {}: {schema}", action.name);
                let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
                assert!(action.name.chars().all(is_name) && (0..=100).contains(&action.risk));
                let unknown = (action.check)(&json!({ "unknown": 1 })).unwrap_err();
                assert!(unknown.as_str().contains("unknown"), "{unknown}");
            }
        }
        assert_eq!((action_risk("react"), action_risk("unknown")), (Some(20), None));
    }
}
