//! Calls to others over HTTP: the one place that makes clients.
//!
//! Nothing is followed and nothing waits for ever: a redirect could lead anywhere, and an answer that never comes would
//! hold what waits for it.

use std::{sync::Once, time::Duration};

use reqwest::{Client, redirect::Policy};

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

/// A client for other people's servers.
///
/// # Errors
/// The system's certificates can't be read.
pub fn client() -> reqwest::Result<Client> {
    provide_tls();
    Client::builder().redirect(Policy::none()).timeout(TIMEOUT).build()
}
