//! HTTP calls to models and MCP servers: the only code that creates a client.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::redirect::Policy;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the other side may be silent.
const SILENCE: Duration = Duration::from_mins(10);

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
            builder.connect_timeout(CONNECT).read_timeout(SILENCE)
        };
        // An image may have no certificates. The way to the gate needs none, and without them nothing else is trusted.
        let client = builder().build().or_else(|_| builder().tls_certs_only([]).build())?;
        Ok(self.0.get_or_init(|| client).clone())
    }
}
