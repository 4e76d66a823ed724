//! OAuth 2 at vendors: a person grants Muster access to an account of theirs.
//!
//! The authorization code flow with PKCE (RFC 6749, RFC 7636), refreshing, and revoking. Vendors differ in data
//! (`vendors.rs`). The core keeps the tokens, and decides when to refresh them.

mod vendors;

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use reqwest::{RequestBuilder, header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

pub use self::vendors::{Access, GITHUB_USER, GOOGLE_CALENDAR, GOOGLE_DRIVE};
use self::vendors::{Endpoint, Revocation};
use crate::{
    bounds,
    contract::{Cause, Failure},
    network::{HttpResponse, Network, with_form},
};

/// Returns a valid access token. For transports that listen longer than a token lasts.
pub type TokenSource = Arc<dyn Fn() -> BoxFuture<'static, Result<SecretString, Failure>> + Send + Sync>;

/// Our application at a vendor.
#[derive(Clone, Debug)]
pub struct Client {
    pub id: String,
    pub secret: SecretString,
}

/// The tokens that a vendor issued.
#[derive(Debug)]
pub struct Tokens {
    pub access: SecretString,
    /// How long the access token is valid. `None`: until it is revoked.
    pub lifetime: Option<Duration>,
    /// `None`: the access token can't be refreshed, or the earlier refresh token stays valid.
    pub refresh: Option<SecretString>,
    /// How long the refresh token is valid. `None`: until it is revoked.
    pub refresh_lifetime: Option<Duration>,
    /// The scopes granted, if the vendor lists them.
    scopes: Option<String>,
}

/// A vendor's authorization server, as one of its applications.
pub struct Server {
    access: &'static Access,
    client: Client,
    network: Network,
}

impl Server {
    pub fn new(access: &'static Access, client: Client, network: &Network) -> Self {
        Self { access, client, network: network.clone() }
    }

    /// The address of the page on which a person grants access. The page leads back to `redirect`.
    ///
    /// # Errors
    /// The operator's setting for the vendor's address can't be used.
    pub fn authorization_url(&self, redirect: &str, state: &str, challenge: &str) -> Result<Url, Failure> {
        let vendor = self.access.vendor;
        let mut url = self.url(&vendor.authorization, "")?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", redirect)
            .append_pair("state", state)
            .append_pair("code_challenge", challenge)
            .append_pair("code_challenge_method", "S256")
            .extend_pairs(vendor.parameters);
        if !self.access.scopes.is_empty() {
            url.query_pairs_mut().append_pair("scope", self.access.scopes);
        }
        Ok(url)
    }

    /// Exchanges the code that a person brings back for tokens.
    ///
    /// # Errors
    /// [`Failure::Credentials`]: the vendor refuses the code. [`Failure::Refused`]: the person granted only a part.
    pub async fn exchange(
        &self,
        code: &SecretString,
        verifier: &str,
        redirect: &str,
    ) -> Result<Tokens, Failure> {
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.expose_secret()),
            ("code_verifier", verifier),
            ("redirect_uri", redirect),
        ];
        let tokens = self.request_tokens(&grant).await?;
        if self.access.lacks_scopes(tokens.scopes.as_deref()) {
            let name = self.access.vendor.name;
            let cause =
                format!("{name} granted only some of the permissions. Connect again, and allow all of them.");
            return Err(Failure::Refused(cause.into()));
        }
        Ok(tokens)
    }

    /// Requests a new access token.
    ///
    /// # Errors
    /// [`Failure::Credentials`]: the authorization has ended.
    pub async fn refresh(&self, token: &SecretString) -> Result<Tokens, Failure> {
        self.request_tokens(&[("grant_type", "refresh_token"), ("refresh_token", token.expose_secret())])
            .await
    }

    /// Revokes the authorization to which these tokens belong.
    ///
    /// # Errors
    /// The vendor did not do it.
    pub async fn revoke(&self, access: &SecretString, refresh: Option<&SecretString>) -> Result<(), Failure> {
        let http = &self.network.vendor.http;
        let request = match &self.access.vendor.revocation {
            Revocation::Token(endpoint) => {
                // An access token may have lapsed, and its end need not end the refresh token.
                let token = refresh.unwrap_or(access).expose_secret();
                with_form(http.post(self.url(endpoint, "")?), &self.with_client(&[("token", token)]))
            }
            Revocation::Grant(endpoint) => http
                .delete(self.url(endpoint, &format!("{}/grant", self.client.id))?)
                .basic_auth(&self.client.id, Some(self.client.secret.expose_secret()))
                .json(&json!({ "access_token": access.expose_secret() })),
        };
        let answer = self.call(request).await?;
        if answer.status.is_success() { Ok(()) } else { Err(self.unexpected(&answer)) }
    }

    /// The name of the account that granted a token.
    pub async fn account(&self, access: &SecretString) -> Result<String, Failure> {
        let vendor = self.access.vendor;
        let request = self.network.vendor.http.get(self.url(&vendor.account, "")?);
        let answer = self.call(request.bearer_auth(access.expose_secret())).await?;
        let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
        let name = said[vendor.account_field].as_str().filter(|name| !name.is_empty());
        name.map(str::to_owned).ok_or_else(|| self.unexpected(&answer))
    }

    async fn request_tokens(&self, grant: &[(&str, &str)]) -> Result<Tokens, Failure> {
        let url = self.url(&self.access.vendor.token, "")?;
        let request = with_form(self.network.vendor.http.post(url), &self.with_client(grant));
        let answer = self.call(request).await?;
        self.read_tokens(&answer)
    }

    /// GitHub reports errors with status 200.
    fn read_tokens(&self, answer: &HttpResponse) -> Result<Tokens, Failure> {
        let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
        let token = |field: &str| {
            said[field]
                .as_str()
                .filter(|text| !text.is_empty())
                .map(|text| SecretString::from(text.to_owned()))
        };
        if let Some(access) = token("access_token").filter(|_| answer.status.is_success()) {
            return Ok(Tokens {
                access,
                lifetime: seconds(&said["expires_in"]),
                refresh: token("refresh_token"),
                refresh_lifetime: seconds(&said["refresh_token_expires_in"]),
                scopes: said["scope"].as_str().map(str::to_owned),
            });
        }
        let name = self.access.vendor.name;
        let word = said["error"].as_str().unwrap_or_default();
        let said = |what: &str| Cause::from(format!("{name} {what} ({word})."));
        Err(match word {
            "invalid_grant" | "bad_refresh_token" | "bad_verification_code" => {
                Failure::Credentials(said("does not accept the authorization, or no longer does"))
            }
            "" => self.unexpected(answer),
            _ => Failure::NotSent(said(
                "refuses Muster's application: check its client ID, client secret and redirect address",
            )),
        })
    }

    fn unexpected(&self, answer: &HttpResponse) -> Failure {
        let (name, status) = (self.access.vendor.name, answer.status.as_u16());
        Failure::NotSent(format!("{name} answered with status {status}.").into())
    }

    fn with_client<'a>(&'a self, fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let client =
            [("client_id", self.client.id.as_str()), ("client_secret", self.client.secret.expose_secret())];
        fields.iter().copied().chain(client).collect()
    }

    fn url(&self, endpoint: &Endpoint, rest: &str) -> Result<Url, Failure> {
        let base = (endpoint.base)(&self.network.vendors);
        let unusable =
            |_| Failure::NotSent(format!("{}'s address can't be used.", self.access.vendor.name).into());
        base.join(&format!("{}{rest}", endpoint.path)).map_err(unusable)
    }

    async fn call(&self, request: RequestBuilder) -> Result<HttpResponse, Failure> {
        // GitHub answers in JSON only if asked, and no one without a name.
        let request = request.header(header::ACCEPT, "application/json").header(header::USER_AGENT, "muster");
        self.network.vendor.call(self.access.vendor.name, request, bounds::ANSWER).await
    }
}

/// Some servers write numbers as texts.
fn seconds(value: &Value) -> Option<Duration> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    Some(Duration::from_secs(number))
}
