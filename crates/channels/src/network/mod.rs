//! The transports' network access: two HTTP clients, connections, TLS, the clock.
//!
//! - `guard.rs`: towards hosts that tenants name. No private address, no redirect, no proxy, short responses.
//! - `vendor_client.rs`: towards the vendors, whose addresses are the operator's settings.
//! - `response.rs`: responses of both; `stream.rs`: connections of mail and sockets; `github_memory.rs`: what all
//!   channels share at GitHub.

mod github_memory;
mod guard;
mod response;
mod stream;
mod vendor_client;

use std::sync::Arc;

use jiff::Timestamp;
use muster_addresses::Addresses;
use rustls::RootCertStore;
use url::Url;

pub use self::guard::{Guard, GuardError};
pub(crate) use self::{
    github_memory::{GithubMemory, Page},
    response::{HttpResponse, parse_date},
    stream::{Metered, ReadLimit, Stream},
    vendor_client::{VendorClient, file_part, with_form},
};

/// The vendors' addresses: settings of the installation, never of a channel.
#[derive(Clone, Debug)]
pub struct VendorUrls {
    /// `https://discord.com/api/v10/`
    pub discord: Url,
    /// The host of Discord's files.
    pub discord_files: Url,
    /// `https://slack.com/api/`
    pub slack: Url,
    /// The host of Slack's files: the only one that gets the bot's token.
    pub slack_files: Url,
    /// `https://api.telegram.org/`
    pub telegram: Url,
    /// Where people grant access to their accounts: `https://accounts.google.com/`
    pub google_accounts: Url,
    /// `https://oauth2.googleapis.com/`
    pub google_tokens: Url,
    /// `https://www.googleapis.com/`
    pub google_api: Url,
    /// `https://github.com/`
    pub github: Url,
    /// `https://api.github.com/`
    pub github_api: Url,
}

/// The transports' network access, shared by all channels of a process.
#[derive(Clone)]
pub struct Network {
    /// Towards hosts that tenants name.
    pub guard: Guard,
    /// The vendors' addresses.
    pub vendors: VendorUrls,
    pub clock: fn() -> Timestamp,
    pub(crate) vendor: VendorClient,
    pub(crate) github: Arc<GithubMemory>,
}

impl Network {
    /// Trusts the authorities `roots`. Tenants may name `addresses`.
    pub fn new(
        addresses: Addresses,
        vendors: VendorUrls,
        clock: fn() -> Timestamp,
        roots: RootCertStore,
    ) -> reqwest::Result<Self> {
        let tls = muster_certificates::client_config(roots);
        Ok(Self {
            guard: Guard::new(addresses, tls.clone())?,
            vendors,
            clock,
            vendor: VendorClient::new(tls)?,
            github: Arc::default(),
        })
    }
}
