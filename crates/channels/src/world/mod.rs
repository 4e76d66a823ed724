//! What transports use of the world: two HTTP clients, connections, TLS, the time.
//!
//! - `guard.rs`: towards what tenants type. No address that leads inward, no redirect, no proxy, answers kept short.
//! - `vendor.rs`: towards the vendors, whose addresses are the operator's settings.
//! - `answer.rs`: what both bring back; `stream.rs`: connections of mail and sockets.

mod answer;
mod guard;
mod stream;
mod vendor;

use std::sync::Arc;

use jiff::Timestamp;
use muster_addresses::Addresses;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use url::Url;

pub use self::guard::{Guard, GuardError};
pub(crate) use self::{
    answer::Answer,
    stream::{Metered, Most, Stream},
    vendor::Vendor,
};

/// Where the vendors are: settings of the installation, never of a channel.
#[derive(Clone, Debug)]
pub struct Vendors {
    /// `https://slack.com/api/`
    pub slack: Url,
    /// Where Slack's files are: the bot's token goes to this host and no other.
    pub slack_files: Url,
    /// `https://api.telegram.org/`
    pub telegram: Url,
}

/// What transports use of the world. All channels of a process share one.
#[derive(Clone)]
pub struct World {
    /// Towards what tenants type.
    pub guard: Guard,
    /// Where the vendors are.
    pub vendors: Vendors,
    /// The time.
    pub clock: fn() -> Timestamp,
    pub(crate) vendor: Vendor,
}

impl World {
    /// With the system's certificates. `addresses` are those that tenants may name.
    pub fn new(addresses: Addresses, vendors: Vendors, clock: fn() -> Timestamp) -> reqwest::Result<Self> {
        let found = rustls_native_certs::load_native_certs();
        for error in found.errors {
            tracing::warn!(%error, "a certificate of the system can't be read");
        }
        Self::with(addresses, vendors, clock, &found.certs)
    }

    /// With other certificates.
    pub fn with(
        addresses: Addresses,
        vendors: Vendors,
        clock: fn() -> Timestamp,
        roots: &[CertificateDer<'static>],
    ) -> reqwest::Result<Self> {
        let tls = tls(roots);
        Ok(Self { guard: Guard::new(addresses, tls.clone())?, vendors, clock, vendor: Vendor::new(tls)? })
    }
}

/// TLS with these certificates.
fn tls(certificates: &[CertificateDer<'static>]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    match ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
        Ok(config) => config.with_root_certificates(roots).with_no_client_auth(),
        // The provider has what the default versions need.
        Err(error) => unreachable!("TLS without versions: {error}"),
    }
}
