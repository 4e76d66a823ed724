//! The HTTP client for models and MCP servers.

use std::sync::{Arc, OnceLock};

use reqwest::redirect::Policy;

use crate::bounds::{ANSWER_WAIT, NETWORK_WAIT};

/// Creates the client at first use: reading the system's certificates takes longer than the rest of the start, and an
/// agent without a model may never need it.
#[derive(Clone, Default)]
pub struct Http(Arc<OnceLock<reqwest::Client>>);

impl Http {
    /// Redirects are not followed: they could lead to any host.
    pub fn client(&self) -> reqwest::Result<reqwest::Client> {
        if let Some(client) = self.0.get() {
            return Ok(client.clone());
        }
        // Fails only if a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let builder = reqwest::Client::builder().redirect(Policy::none());
            builder.connect_timeout(NETWORK_WAIT).read_timeout(ANSWER_WAIT)
        };
        // An image may have no certificates. The gate needs none, and without them no other host is trusted.
        let client = builder().build().or_else(|_| builder().tls_certs_only([]).build())?;
        Ok(self.0.get_or_init(|| client).clone())
    }
}
