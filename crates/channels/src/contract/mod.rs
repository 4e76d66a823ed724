//! What the core and the transports say to each other.
//!
//! - `transport.rs`: the trait; `traits.rs`: what differs as data; `config.rs`: what a transport gets of its channel.
//! - `inbound.rs`: what comes from the vendor; `outbound.rs`: what goes there; `failure.rs`: why something did not happen.
//! - `room.rs`: memory for what comes in.

mod config;
mod failure;
mod inbound;
mod outbound;
mod room;
mod traits;
mod transport;

#[cfg(test)]
pub use self::room::Endless;
pub use self::{
    config::{
        Config, EmailConfig, MailServer, SlackConfig, SlackInlet, SlackTokenError, TelegramConfig,
        WebhookConfig,
    },
    failure::{Cause, Failure, Refusal},
    inbound::{
        Bounce, Content, Cursor, Event, Inbound, Link, OneLine, Origin, Press, Proof, RawRequest, Reading,
        Received, RemoteFile, Reply, Sink, Skipped, Stopped, Thread,
    },
    outbound::{Attachment, Button, Named, Part, Receipt, Rendered, Scene},
    room::{Hold, Room},
    traits::{Actions, Dialect, Files, Inlet, Kind, Limit, Longest, Scope, Traits, Unit},
    transport::{Identity, Spool, Transport},
};
