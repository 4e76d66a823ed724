//! HTTP calls to other services: the only code that creates clients.
//!
//! Redirects are not followed, since they could lead anywhere, and every call has a timeout, so that a missing answer
//! blocks nothing. Each call carries its trace (`traceparent`), if there is one.

use std::{error::Error, sync::Once};

use muster_addresses::Addresses;
use muster_certificates::{FileError, Remedy};
use muster_channels::{Network, VendorUrls};
use reqwest::{Request, Response, redirect::Policy};
use rustls::{RootCertStore, pki_types::CertificateDer};

use crate::{
    base::bounds,
    core::{config::Config, telemetry::traces},
};

/// Chooses the cryptography provider for TLS, once per process. Must be called before any client is created.
pub fn install_tls_provider() {
    static PROVIDED: Once = Once::new();
    PROVIDED.call_once(|| {
        // Fails only if a provider is already installed, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Why a client could not be created.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The operator's certificates can't be read.
    #[error("ca_file: {0}")]
    Certificates(#[from] FileError),
    #[error(transparent)]
    Client(#[from] reqwest::Error),
}

/// The operator's certificates, which are trusted in addition to the system's.
///
/// # Errors
/// The file can't be read, or has none.
pub fn own_certificates(config: &Config) -> Result<Vec<CertificateDer<'static>>, FileError> {
    config.ca_file.as_deref().map_or_else(|| Ok(Vec::new()), muster_certificates::read)
}

/// The authorities that the service trusts.
fn roots(config: &Config) -> Result<RootCertStore, FileError> {
    Ok(muster_certificates::with_system(&own_certificates(config)?))
}

/// What is wrong with a server's certificate, with the remedy. `None`: the error is another one.
#[must_use]
pub fn certificate_error(error: &(dyn Error + 'static)) -> Option<String> {
    muster_certificates::explain(error, Remedy::ServiceSetting)
}

/// The network, as transports of channels use it: their own clients, which are guarded where tenants type the address.
///
/// # Errors
/// See [`OutboundError`].
#[expect(clippy::disallowed_methods, reason = "signatures and TLS need the real time")]
pub fn network(config: &Config) -> Result<Network, OutboundError> {
    install_tls_provider();
    let channels = &config.channels;
    let vendors = VendorUrls {
        discord: channels.discord_url.clone(),
        discord_files: channels.discord_files_url.clone(),
        slack: channels.slack_url.clone(),
        slack_files: channels.slack_files_url.clone(),
        telegram: channels.telegram_url.clone(),
        google_accounts: channels.google_accounts_url.clone(),
        google_tokens: channels.google_tokens_url.clone(),
        google_api: channels.google_api_url.clone(),
        github: channels.github_url.clone(),
        github_api: channels.github_api_url.clone(),
    };
    let addresses = Addresses::new(channels.networks.clone());
    Ok(Network::new(addresses, vendors, jiff::Timestamp::now, roots(config)?)?)
}

/// The body of an answer; `None` if it is longer than `most` bytes.
///
/// # Errors
/// The connection was lost.
pub async fn read_body(mut answer: Response, most: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Calls other services.
#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

impl Client {
    /// A new client; its clones share its connections.
    ///
    /// # Errors
    /// See [`OutboundError`].
    pub fn new(config: &Config) -> Result<Self, OutboundError> {
        Self::build(config, reqwest::Client::builder())
    }

    /// A new client that ignores the environment's proxies: for an address of this machine, or one that the
    /// operator names for a check.
    ///
    /// # Errors
    /// See [`OutboundError`].
    pub fn without_proxy(config: &Config) -> Result<Self, OutboundError> {
        Self::build(config, reqwest::Client::builder().no_proxy())
    }

    fn build(config: &Config, builder: reqwest::ClientBuilder) -> Result<Self, OutboundError> {
        install_tls_provider();
        let builder = builder.redirect(Policy::none()).timeout(bounds::NETWORK_WAIT);
        let tls = muster_certificates::client_config(roots(config)?);
        Ok(Self(builder.tls_backend_preconfigured(tls).build()?))
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
