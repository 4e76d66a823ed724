//! A provider: its metadata, where it sends a browser, and who it says came back.

use std::{future::Future, pin::Pin, time::Duration};

use anyhow::{Context, ensure};
use openidconnect::{
    AccessToken, AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl, Nonce, OAuth2TokenResponse,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, SubjectIdentifier, TokenResponse,
    core::{CoreAuthenticationFlow, CoreClient, CoreProviderMetadata, CoreUserInfoClaims},
};
use openidconnect::{EndpointMaybeSet, EndpointNotSet, EndpointSet};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

use crate::{
    base::time::Timestamp,
    core::{
        config::{Config, OidcProvider},
        outbound,
    },
};

/// How long a provider's metadata is cached.
const KEPT: Duration = Duration::from_mins(10);
/// The largest response accepted from a provider, in bytes.
const MAX_ANSWER: usize = 1 << 20;

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The configured providers.
#[derive(Debug)]
pub struct Providers(Vec<Provider>);

/// One provider.
pub struct Provider {
    /// Its name in URLs.
    pub name: String,
    /// As configured.
    pub settings: OidcProvider,
    redirect: String,
    http: Http,
    metadata: Mutex<Option<(Timestamp, CoreProviderMetadata)>>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What is remembered while the browser is at the provider.
#[derive(Serialize, Deserialize)]
pub struct Memory {
    /// The provider's name.
    pub provider: String,
    /// The value the provider must send back.
    pub state: String,
    /// The value the provider must sign.
    pub nonce: String,
    /// Proves to the provider that the same party started the sign-in (PKCE).
    pub verifier: String,
    /// The panel's own state, returned to it at the end.
    pub panel_state: Option<String>,
    /// In milliseconds since 1970.
    pub expires_at: i64,
}

/// The person who came back, according to the provider.
#[derive(Clone, Debug)]
pub struct ProviderUser {
    pub subject: String,
    /// The address, if the provider confirms that it belongs to the person.
    pub email: Option<String>,
    pub name: Option<String>,
}

impl Providers {
    /// Reads the providers' configuration. Doesn't connect to them yet.
    ///
    /// # Errors
    /// Names every mistake in the file.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let settings = config.oidc()?;
        if settings.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let base = config.public_url.as_deref().context("public_url: missing, which oidc_file needs")?;
        let http = Http(outbound::Client::new()?);
        let providers = settings.into_iter().map(|(name, settings)| Provider {
            redirect: format!("{base}/auth/oidc/{name}/callback"),
            name,
            settings,
            http: http.clone(),
            metadata: Mutex::default(),
        });
        Ok(Self(providers.collect()))
    }

    /// In order of name.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.0.iter()
    }

    /// The provider with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.iter().find(|provider| provider.name == name)
    }
}

impl Provider {
    /// The label of its sign-in button.
    #[must_use]
    pub fn label(&self) -> &str {
        self.settings.label.as_deref().unwrap_or(&self.name)
    }

    /// Checks that the provider answers.
    ///
    /// # Errors
    /// What is wrong with the provider.
    pub async fn check(&self, now: Timestamp) -> anyhow::Result<()> {
        self.client(now, true).await.map(drop)
    }

    /// A client with the provider's metadata, which is fetched when the cache is stale or `refresh` asks for it.
    async fn client(&self, now: Timestamp, refresh: bool) -> anyhow::Result<Client> {
        let mut kept = self.metadata.lock().await;
        let fresh = kept.as_ref().filter(|(at, _)| !refresh && at.plus(KEPT) > now);
        let metadata = match fresh {
            Some((_, metadata)) => metadata.clone(),
            None => {
                let issuer = IssuerUrl::new(self.settings.issuer.clone())?;
                let found = CoreProviderMetadata::discover_async(issuer, &self.http).await?;
                *kept = Some((now, found.clone()));
                found
            }
        };
        let secret = self.settings.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
        let id = ClientId::new(self.settings.client_id.clone());
        let redirect = RedirectUrl::new(self.redirect.clone())?;
        Ok(CoreClient::from_provider_metadata(metadata, id, secret).set_redirect_uri(redirect))
    }

    /// Where to send the browser, and what to remember until it is back.
    pub async fn begin(&self, now: Timestamp, expires_at: Timestamp) -> anyhow::Result<(Url, Memory)> {
        let client = self.client(now, false).await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let mut visit = client
            .authorize_url(flow, CsrfToken::new_random, Nonce::new_random)
            .set_pkce_challenge(challenge);
        for scope in &self.settings.scopes {
            visit = visit.add_scope(Scope::new(scope.clone()));
        }
        let (url, state, nonce) = visit.url();
        let memory = Memory {
            provider: self.name.clone(),
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            verifier: verifier.secret().clone(),
            panel_state: None,
            expires_at: expires_at.0,
        };
        Ok((url, memory))
    }

    /// Exchanges `code` and verifies who came back.
    pub async fn finish(
        &self,
        now: Timestamp,
        memory: &Memory,
        code: SecretString,
    ) -> anyhow::Result<ProviderUser> {
        let client = self.client(now, false).await?;
        let answer = client
            .exchange_code(AuthorizationCode::new(code.expose_secret().to_owned()))?
            .set_pkce_verifier(PkceCodeVerifier::new(memory.verifier.clone()))
            .request_async(&self.http)
            .await
            .context("the provider rejected the code")?;
        let token = answer.id_token().context("the provider sent no ID token")?;
        let nonce = Nonce::new(memory.nonce.clone());
        let claims = token.claims(&client.id_token_verifier(), &nonce).cloned();
        let (client, claims) = match claims {
            Ok(claims) => (client, claims),
            // The provider may have rotated its keys since we fetched them. All that follows needs the new ones.
            Err(_) => {
                let client = self.client(now, true).await?;
                let claims = token.claims(&client.id_token_verifier(), &nonce).context("ID token")?.clone();
                (client, claims)
            }
        };
        if let Some(expected) = claims.access_token_hash() {
            let verifier = client.id_token_verifier();
            let (algorithm, key) = (token.signing_alg()?, token.signing_key(&verifier)?);
            let actual = openidconnect::AccessTokenHash::from_token(answer.access_token(), algorithm, key)?;
            ensure!(actual == *expected, "the access token does not belong to the ID token");
        }
        let subject = claims.subject().clone();
        let vouched =
            |verified: Option<bool>, email: Option<String>| email.filter(|_| verified == Some(true));
        let email = claims.email().map(|email| email.as_str().to_owned());
        let name = claims.name().and_then(|name| name.get(None)).map(|name| name.as_str().to_owned());
        if email.is_some() || client.user_info_url().is_none() {
            let email = vouched(claims.email_verified(), email);
            return Ok(ProviderUser { subject: subject.to_string(), email, name });
        }
        let said = self.user_info(&client, answer.access_token().clone(), subject.clone()).await?;
        let email = said.email().map(|email| email.as_str().to_owned());
        let name = name.or_else(|| said.name().and_then(|name| name.get(None)).map(|name| name.to_string()));
        Ok(ProviderUser { subject: subject.to_string(), email: vouched(said.email_verified(), email), name })
    }

    /// Many providers reveal the address only here.
    async fn user_info(
        &self,
        client: &Client,
        token: AccessToken,
        subject: SubjectIdentifier,
    ) -> anyhow::Result<CoreUserInfoClaims> {
        Ok(client.user_info(token, Some(subject))?.request_async(&self.http).await?)
    }
}

/// Adapts our client for external servers to the library's interface.
#[derive(Clone, Debug)]
struct Http(outbound::Client);

impl<'c> openidconnect::AsyncHttpClient<'c> for Http {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<openidconnect::HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: openidconnect::HttpRequest) -> Self::Future {
        Box::pin(async move {
            let mut response = self.0.execute(request.try_into()?).await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > MAX_ANSWER {
                    return Err(HttpError::TooLarge);
                }
                body.extend_from_slice(&chunk);
            }
            let mut answer = openidconnect::HttpResponse::new(body);
            *answer.status_mut() = status;
            *answer.headers_mut() = headers;
            Ok(answer)
        })
    }
}

/// Why a call to a provider failed.
#[derive(Debug, thiserror::Error)]
enum HttpError {
    #[error("{}", without_url(.0))]
    Reqwest(#[from] reqwest::Error),
    #[error("the response is too large")]
    TooLarge,
}

/// The URL may contain secrets.
fn without_url(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        "the provider did not answer in time".to_owned()
    } else if error.is_connect() {
        "the provider is unreachable".to_owned()
    } else {
        "the connection to the provider was interrupted".to_owned()
    }
}
