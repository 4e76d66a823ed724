//! A provider: its metadata, the start of a sign-in, and the person who returns.

use std::time::Duration;

use anyhow::{Context, anyhow};
use openidconnect::{
    AccessToken, AuthorizationCode, ClaimsVerificationError, CsrfToken, DiscoveryError, IssuerUrl, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, Scope, SubjectIdentifier,
    core::{CoreAuthenticationFlow, CoreProviderMetadata},
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

use super::{
    claims::{Claims, NoEmail, ProviderUser, UserInfo, check, verify},
    client::{Client, Tokens, client},
    http::{Http, HttpError},
    words::{
        describe_claims_error, describe_discovery_error, describe_exchange_error, describe_user_info_error,
    },
};
use crate::{
    base::time::Timestamp,
    core::{
        config::{Config, OidcProvider, ResponseMode},
        outbound,
    },
};

/// The configured providers.
#[derive(Debug)]
pub struct Providers(Vec<Provider>);

/// One provider.
pub struct Provider {
    /// Its name in URLs.
    pub name: String,
    pub settings: OidcProvider,
    /// The URL to which it sends the browser back.
    pub redirect: String,
    pub(super) http: Http,
    metadata: Mutex<Option<(Timestamp, CoreProviderMetadata)>>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The state of a sign-in while the browser is at the provider.
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
        let http = Http::new(outbound::Client::new(config)?);
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

    /// A client with the provider's metadata, which is fetched when the cache is stale or `refresh` asks for it.
    async fn client(&self, now: Timestamp, refresh: bool) -> anyhow::Result<Client> {
        let mut kept = self.metadata.lock().await;
        let fresh = kept.as_ref().filter(|(at, _)| !refresh && at.plus(Duration::from_mins(10)) > now);
        let metadata = match fresh {
            Some((_, metadata)) => metadata.clone(),
            None => {
                let found = self.discover().await.map_err(describe_discovery_error)?;
                *kept = Some((now, found.clone()));
                found
            }
        };
        Ok(client(&self.settings, metadata, &self.redirect)?)
    }

    /// Fetches the provider's metadata and keys.
    pub(super) async fn discover(&self) -> Result<CoreProviderMetadata, DiscoveryError<HttpError>> {
        let issuer = IssuerUrl::new(self.settings.issuer.clone()).map_err(DiscoveryError::UrlParse)?;
        CoreProviderMetadata::discover_async(issuer, &self.http).await
    }

    /// Starts a sign-in. Returns the URL to which to send the browser, and the state to keep until it returns.
    pub async fn start_sign_in(
        &self,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> anyhow::Result<(Url, Memory)> {
        let client = self.client(now, false).await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let mut visit = client
            .authorize_url(flow, CsrfToken::new_random, Nonce::new_random)
            .set_pkce_challenge(challenge);
        for scope in &self.settings.scopes {
            visit = visit.add_scope(Scope::new(scope.clone()));
        }
        if self.settings.response_mode == ResponseMode::FormPost {
            visit = visit.add_extra_param("response_mode", "form_post");
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

    /// Exchanges `code` and verifies the person's identity.
    pub async fn finish_sign_in(
        &self,
        now: Timestamp,
        memory: &Memory,
        code: SecretString,
    ) -> anyhow::Result<ProviderUser> {
        let client = self.client(now, false).await?;
        let tokens = client
            .exchange_code(AuthorizationCode::new(code.expose_secret().to_owned()))?
            .set_pkce_verifier(PkceCodeVerifier::new(memory.verifier.clone()))
            .request_async(&self.http.for_tokens())
            .await
            .map_err(describe_exchange_error)?;
        let nonce = Nonce::new(memory.nonce.clone());
        let (client, claims) = self.verify_claims(now, client, &tokens, &nonce).await?;
        check(&self.settings, &client, &tokens, claims)?;
        let person = ProviderUser::from_token(&self.settings.issuer, claims);
        // Many providers reveal the address only at the userinfo endpoint.
        if matches!(person.email, Err(NoEmail::Missing | NoEmail::Unsaid)) && client.user_info_url().is_some()
        {
            let subject = claims.subject().clone();
            let said = self.user_info(&client, tokens.access_token().clone(), subject).await?;
            return Ok(person.with_user_info(&self.settings.issuer, &said));
        }
        Ok(person)
    }

    /// Verifies the claims. Returns a client with new keys if the provider has rotated them since they were fetched.
    async fn verify_claims<'t>(
        &self,
        now: Timestamp,
        client: Client,
        tokens: &'t Tokens,
        nonce: &Nonce,
    ) -> anyhow::Result<(Client, &'t Claims)> {
        let refused =
            |error: ClaimsVerificationError| anyhow!("the ID token: {}", describe_claims_error(&error));
        match verify(&client, tokens, nonce) {
            Ok(claims) => Ok((client, claims)),
            Err(ClaimsVerificationError::SignatureVerification(_)) => {
                let client = self.client(now, true).await?;
                let claims = verify(&client, tokens, nonce).map_err(refused)?;
                Ok((client, claims))
            }
            Err(error) => Err(refused(error)),
        }
    }

    async fn user_info(
        &self,
        client: &Client,
        token: AccessToken,
        subject: SubjectIdentifier,
    ) -> anyhow::Result<UserInfo> {
        let request = client.user_info(token, Some(subject))?;
        request.request_async(&self.http.for_user_info()).await.map_err(describe_user_info_error)
    }
}
