//! The transports' network access: two HTTP clients, connections, TLS, the clock.
//!
//! - `guard.rs`: towards hosts that tenants name. No private address, no redirect, no proxy, short responses.
//! - `vendor_client.rs`: towards the vendors, whose addresses are the operator's settings.
//! - `response.rs`: responses of both; `stream.rs`: connections of mail and sockets.

mod guard;
mod response;
mod stream;
mod vendor_client;

use std::sync::Arc;

use jiff::Timestamp;
use muster_addresses::Addresses;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use url::Url;

pub use self::guard::{Guard, GuardError};
pub(crate) use self::{
    response::HttpResponse,
    stream::{Metered, ReadLimit, Stream},
    vendor_client::VendorClient,
};

/// The vendors' addresses: settings of the installation, never of a channel.
#[derive(Clone, Debug)]
pub struct VendorUrls {
    /// `https://slack.com/api/`
    pub slack: Url,
    /// The host of Slack's files: the only one that gets the bot's token.
    pub slack_files: Url,
    /// `https://api.telegram.org/`
    pub telegram: Url,
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
}

impl Network {
    /// With the system's certificates. Tenants may name `addresses`.
    pub fn new(addresses: Addresses, vendors: VendorUrls, clock: fn() -> Timestamp) -> reqwest::Result<Self> {
        let found = rustls_native_certs::load_native_certs();
        for error in found.errors {
            tracing::warn!(%error, "a certificate of the system can't be read");
        }
        Self::with(addresses, vendors, clock, &found.certs)
    }

    /// With other certificates.
    pub fn with(
        addresses: Addresses,
        vendors: VendorUrls,
        clock: fn() -> Timestamp,
        roots: &[CertificateDer<'static>],
    ) -> reqwest::Result<Self> {
        let tls = tls_config(roots);
        Ok(Self {
            guard: Guard::new(addresses, tls.clone())?,
            vendors,
            clock,
            vendor: VendorClient::new(tls)?,
        })
    }
}

fn tls_config(certificates: &[CertificateDer<'static>]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    match ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
        Ok(config) => config.with_root_certificates(roots).with_no_client_auth(),
        // The provider supports the default versions.
        Err(error) => unreachable!("TLS without versions: {error}"),
    }
}
