//! HTTP calls to models and MCP servers: the only code that creates a client.

use std::sync::{Arc, OnceLock};

use reqwest::redirect::Policy;

use crate::bounds::{ANSWER_WAIT, NETWORK_WAIT};

/// Makes the client when someone needs it: to read the system's certificates takes longer than everything else at the
/// start, and an agent without a model may never need them.
#[derive(Clone, Default)]
pub struct Http(Arc<OnceLock<reqwest::Client>>);

impl Http {
    /// The client. Redirects are not followed: they could lead anywhere.
    pub fn client(&self) -> reqwest::Result<reqwest::Client> {
        if let Some(client) = self.0.get() {
            return Ok(client.clone());
        }
        // Fails only if a provider is already installed, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let builder = reqwest::Client::builder().redirect(Policy::none());
            builder.connect_timeout(NETWORK_WAIT).read_timeout(ANSWER_WAIT)
        };
        // An image may have no certificates. The way to the gate needs none, and without them nothing else is trusted.
        let client = builder().build().or_else(|_| builder().tls_certs_only([]).build())?;
        Ok(self.0.get_or_init(|| client).clone())
    }
}
