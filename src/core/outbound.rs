//! HTTP calls to other services: the only code that creates clients.
//!
//! Redirects are not followed, since they could lead anywhere, and every call has a timeout, so that a missing answer
//! blocks nothing. Each call carries its trace (`traceparent`), if there is one.

use std::sync::Once;

use muster_addresses::Addresses;
use muster_channels::{Network, VendorUrls};
use reqwest::{Request, Response, redirect::Policy};

use crate::{
    base::bounds,
    core::{config::Config, telemetry::traces},
};

/// Chooses the cryptography provider for TLS, once per process. Must be called before any client is created.
pub fn provide_tls() {
    static PROVIDED: Once = Once::new();
    PROVIDED.call_once(|| {
        // Fails only if a provider is already installed, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// The network, as transports of channels use it: their own clients, which are guarded where tenants type the address.
///
/// # Errors
/// The system's certificates can't be read.
#[expect(clippy::disallowed_methods, reason = "signatures and TLS need the real time")]
pub fn network(config: &Config) -> reqwest::Result<Network> {
    provide_tls();
    let channels = &config.channels;
    let vendors = VendorUrls {
        slack: channels.slack_url.clone(),
        slack_files: channels.slack_files_url.clone(),
        telegram: channels.telegram_url.clone(),
    };
    Network::new(Addresses::new(channels.networks.clone()), vendors, jiff::Timestamp::now)
}

/// Calls other services.
#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

impl Client {
    /// A new client; its clones share its connections.
    ///
    /// # Errors
    /// The system's certificates can't be read.
    pub fn new() -> reqwest::Result<Self> {
        provide_tls();
        Ok(Self(reqwest::Client::builder().redirect(Policy::none()).timeout(bounds::NETWORK_WAIT).build()?))
    }

    /// Sends a request as part of the active span's trace.
    ///
    /// # Errors
    /// No answer arrives, or none in time.
    pub async fn execute(&self, mut request: Request) -> reqwest::Result<Response> {
        traces::inject(request.headers_mut());
        self.0.execute(request).await
    }
}
