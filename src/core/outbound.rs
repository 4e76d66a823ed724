//! Calls to others over HTTP: the one place that makes clients.
//!
//! Nothing is followed and nothing waits for ever: a redirect could lead anywhere, and an answer that never comes would
//! hold what waits for it. Each call says which trace it belongs to (`traceparent`), where there is one.

use std::{sync::Once, time::Duration};

use reqwest::{Request, Response, redirect::Policy};

use crate::core::telemetry::traces;

/// How long an answer may take, its body included.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Says once in a process which implementation of cryptography TLS uses. Clients can't be made before.
pub fn provide_tls() {
    static PROVIDED: Once = Once::new();
    PROVIDED.call_once(|| {
        // Refused only if somebody else has chosen already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// What calls other people's servers.
#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

impl Client {
    /// A client of its own: connections are shared by those who share it.
    ///
    /// # Errors
    /// The system's certificates can't be read.
    pub fn new() -> reqwest::Result<Self> {
        provide_tls();
        Ok(Self(reqwest::Client::builder().redirect(Policy::none()).timeout(TIMEOUT).build()?))
    }

    /// Sends a request, as a part of the trace that the active span belongs to.
    ///
    /// # Errors
    /// Nobody answers, or not in time.
    pub async fn execute(&self, mut request: Request) -> reqwest::Result<Response> {
        traces::inject(request.headers_mut());
        self.0.execute(request).await
    }
}
