//! HTTP calls to other services: the only code that creates clients.
//!
//! Redirects are not followed, since they could lead anywhere, and every call has a timeout, so that a missing answer
//! does not block what waits for it. Each call carries its trace (`traceparent`), if there is one.

use std::{sync::Once, time::Duration};

use reqwest::{Request, Response, redirect::Policy};

use crate::core::telemetry::traces;

/// The time limit for an answer, including its body.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Chooses the cryptography provider for TLS, once per process. Must be called before any client is created.
pub fn provide_tls() {
    static PROVIDED: Once = Once::new();
    PROVIDED.call_once(|| {
        // Fails only if a provider is already installed, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Calls other services.
#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

impl Client {
    /// A new client; whoever shares it shares its connections.
    ///
    /// # Errors
    /// The system's certificates can't be read.
    pub fn new() -> reqwest::Result<Self> {
        provide_tls();
        Ok(Self(reqwest::Client::builder().redirect(Policy::none()).timeout(TIMEOUT).build()?))
    }

    /// Sends a request as part of the active span's trace.
    ///
    /// # Errors
    /// There is no answer, or none in time.
    pub async fn execute(&self, mut request: Request) -> reqwest::Result<Response> {
        traces::inject(request.headers_mut());
        self.0.execute(request).await
    }
}
