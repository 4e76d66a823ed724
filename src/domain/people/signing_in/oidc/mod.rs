//! Signing in with an account at another provider: OpenID Connect, code flow with PKCE.
//!
//! - `provider.rs`: a configured provider, its metadata, and the two calls to it.
//! - `client.rs`: the library's client; `http.rs`: its calls, and responses that it can read.
//! - `words.rs`: descriptions of its errors for the log.
//! - `claims.rs`: the accepted claims of a provider.
//! - `api/web/oidc.rs`: the pages the browser visits, `/auth/oidc/{provider}/start` and `/callback`.
//! - `account.rs`: which account a sign-in opens.
//! - `trial.rs`: tries a provider without a browser, for `muster doctor --oidc`.
//!
//! The data needed between the two visits (state, nonce, PKCE verifier) is sealed in a cookie of the browser that
//! started, so that strangers can't fill a table, and a callback started in another browser is worthless. The visit
//! ends at the panel with a one-time code, valid for a minute, after the `#`. The panel exchanges it over GraphQL
//! (`exchangeSignInCode`), so that no token ever appears in a URL. The second factor follows, as after a password.

mod account;
mod claims;
mod client;
mod http;
mod provider;
mod trial;
mod words;

use std::sync::Arc;

use secrecy::SecretString;

pub use self::{
    account::Refusal,
    claims::joined,
    provider::{Memory, Provider, Providers},
    trial::try_out,
    words::shown,
};
use super::{
    sign_in::issue_code,
    throttle::{self, Key},
};
use crate::core::Request;

/// The parameters with which a provider sent the browser back.
pub struct Returned {
    /// To be exchanged for tokens.
    pub code: SecretString,
    /// A name, which the person may have changed. Apple sends it nowhere else, and only the first time.
    pub name: Option<String>,
}

/// Ends the visit to a provider. Returns a one-time code for the panel.
///
/// # Errors
/// Why the sign-in was refused.
pub async fn complete(
    request: &Arc<Request>,
    provider: &Provider,
    memory: &Memory,
    returned: Returned,
) -> Result<SecretString, Refusal> {
    let core = &request.core;
    let address = Key::elsewhere(request.ip);
    throttle::charge(core, std::slice::from_ref(&address)).await?;
    let found = provider.finish_sign_in(core.clock.now(), memory, returned.code).await;
    let mut provider_user = found.map_err(|error| Refusal::Provider(format!("{error:#}")))?;
    provider_user.name = provider_user.name.or(returned.name);
    let user = account::open(request, provider, &provider_user).await?;
    throttle::forgive(&core.db.installation(), &[address]).await?;
    Ok(issue_code(core, user).await?)
}
