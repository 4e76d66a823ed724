//! The interface between the core and the transports.
//!
//! - `transport.rs`: the trait; `traits.rs`: vendors' differences as data; `config.rs`: a transport's configuration.
//! - `inbound.rs`: input from the vendor; `outbound.rs`: output to the vendor; `failure.rs`: failures and their
//!   consequences.
//! - `memory.rs`: memory for input.

mod config;
mod failure;
mod inbound;
mod memory;
mod outbound;
mod traits;
mod transport;

#[cfg(test)]
pub use self::memory::Unlimited;
pub use self::{
    config::{
        Attention, CalendarAccount, CalendarConfig, CodeHostAccount, CodeHostConfig, CodeHostLogin,
        CodeHostRules, Config, DiscordConfig, DriveConfig, DriveLogin, EmailConfig, GithubApp,
        GithubInstallation, MailServer, SlackConfig, SlackInlet, SlackTokenError, Software, TelegramConfig,
        WebhookConfig,
    },
    failure::{Cause, Failure, Refusal},
    inbound::{
        Bounce, ButtonPress, Content, Cursor, Event, Inbound, Link, OneLine, Origin, Proof, RawRequest,
        Reading, Received, RemoteFile, Reply, Sink, Skipped, Stopped, Thread,
    },
    memory::{MemoryBudget, MemoryGrant},
    outbound::{ActionCall, Attachment, Button, NamedId, Part, Participants, Receipt, Rendered},
    traits::{Abilities, Action, Dialect, Files, Inlet, Kind, Limit, Longest, Scope, Traits, Unit},
    transport::{Choice, Identity, Spool, Transport},
};
