//! The GitHub App: calls as the App itself, and the tokens of its installations.
//! <https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app>

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{
    Method, StatusCode,
    header::{DATE, LINK},
};
use jiff::{Timestamp, fmt::rfc2822};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::{
    calls::{Caller, read_response},
    host::GITHUB,
};
use crate::{
    contract::{Failure, GithubApp},
    network::{GithubMemory, HttpResponse, Network, Page},
};

pub struct App {
    caller: Caller,
    app: GithubApp,
    pub memory: Arc<GithubMemory>,
}

impl App {
    pub fn new(app: GithubApp, network: &Network) -> Self {
        let base = network.vendors.github_api.clone();
        let caller = Caller::new(&GITHUB, base, network);
        Self { caller, app, memory: Arc::clone(&network.github) }
    }

    /// Calls GitHub as the App.
    pub async fn call(&self, method: Method, path: &str) -> Result<Value, Failure> {
        read_response(GITHUB.name, &self.request(method, path).await?, self.caller.now())
    }

    /// The latest deliveries, up to fifteen seconds old.
    pub async fn latest_deliveries(&self) -> Result<Page, Failure> {
        let mut latest = self.memory.deliveries.lock().await;
        if let Some((_, page)) = latest.as_ref().filter(|(at, _)| at.elapsed() < Duration::from_secs(15)) {
            return Ok(page.clone());
        }
        let page = self.deliveries("app/hook/deliveries?per_page=100").await?;
        *latest = Some((Instant::now(), page.clone()));
        Ok(page)
    }

    /// A page of deliveries, the latest first.
    pub async fn deliveries(&self, path: &str) -> Result<Page, Failure> {
        let answer = self.request(Method::GET, path).await?;
        let said = read_response(GITHUB.name, &answer, self.caller.now())?;
        let links = answer.headers.get(LINK).and_then(|links| links.to_str().ok()).unwrap_or_default();
        let next = links.split(',').find(|link| link.contains("rel=\"next\""));
        let next = next.and_then(|link| link.split(['<', '>']).nth(1)).and_then(path_of);
        Ok(Page { deliveries: said.as_array().cloned().unwrap_or_default(), next })
    }

    /// If GitHub refuses our time, tries again with GitHub's own: our clock may be wrong.
    async fn request(&self, method: Method, path: &str) -> Result<HttpResponse, Failure> {
        let answer = self.try_call(method.clone(), path).await?;
        let is_late = answer.status == StatusCode::UNAUTHORIZED
            && date(&answer).is_some_and(|github| self.memory.learn_time(github, self.caller.now()));
        if is_late { self.try_call(method, path).await } else { Ok(answer) }
    }

    async fn try_call(&self, method: Method, path: &str) -> Result<HttpResponse, Failure> {
        let token = self.token(self.memory.github_time(self.caller.now()))?;
        self.caller.try_call(&token, method, path, None).await
    }

    /// The token of an installation. GitHub issues one for an hour.
    pub async fn installation_token(&self, installation: i64) -> Result<SecretString, Failure> {
        if let Some(token) = self.memory.token(installation, self.caller.now()) {
            return Ok(token);
        }
        let path = format!("app/installations/{installation}/access_tokens");
        let issued = match self.call(Method::POST, &path).await {
            // Suspended, or uninstalled.
            Err(Failure::TargetGone(cause)) => {
                let why = format!("GitHub no longer lets Muster act as installation {installation}: {cause}");
                return Err(Failure::Credentials(why.into()));
            }
            // Nothing was sent yet.
            Err(Failure::Unknown(cause)) => return Err(Failure::NotSent(cause)),
            issued => issued?,
        };
        let until = issued["expires_at"].as_str().and_then(|until| until.parse::<Timestamp>().ok());
        let token = issued["token"].as_str().map(|token| SecretString::from(token.to_owned()));
        let (Some(token), Some(until)) = (token, until) else {
            return Err(Failure::NotSent("GitHub returned no token.".into()));
        };
        self.memory.keep_token(installation, token.clone(), until);
        Ok(token)
    }

    /// A JSON Web Token for ten minutes at most. Begins a minute ago, as GitHub advises.
    fn token(&self, now: Timestamp) -> Result<SecretString, Failure> {
        let now = now.as_second();
        let claims = json!({"iat": now - 60, "exp": now + 9 * 60, "iss": self.app.id});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "RS256", "typ": "JWT"})), part(&claims));
        let signature = self.sign(signed.as_bytes()).ok_or_else(|| {
            let why = "The private key of the GitHub App (channels.github_app_key) can't be used. It must be an RSA key in PEM.";
            Failure::NotSent(why.into())
        })?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let key = PrivateKeyDer::from_pem_slice(self.app.key.expose_secret().as_bytes()).ok()?;
        let key = any_supported_type(&key).ok()?;
        key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])?.sign(message).ok()
    }
}

/// The path of an address that GitHub returned. The operator may call GitHub by another address.
fn path_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let path = url.path().find("/app/").map(|at| &url.path()[at + 1..])?;
    Some(format!("{path}?{}", url.query().unwrap_or_default()))
}

fn date(answer: &HttpResponse) -> Option<Timestamp> {
    let date = answer.headers.get(DATE)?.to_str().ok()?;
    Some(rfc2822::parse(date).ok()?.timestamp())
}
