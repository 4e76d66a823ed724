//! Calls to Discord's HTTP API. Limits are in its responses only: a route without calls left is not called before its
//! reset. <https://discord.com/developers/docs/topics/rate-limits>

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{
    HeaderMap, Method,
    header::{AUTHORIZATION, USER_AGENT},
};
use jiff::Timestamp;
use reqwest::{RequestBuilder, multipart::Form};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use crate::{
    bounds,
    contract::{Cause, Failure, Scope, Spool},
    network::{HttpResponse, Network, Stream, VendorClient},
};

const PEER: &str = "Discord";
/// Discord blocks callers without a name in this form.
const NAME: &str = concat!("DiscordBot (muster, ", env!("CARGO_PKG_VERSION"), ")");

/// Discord's HTTP API with a bot's token.
pub struct Api {
    vendor: VendorClient,
    base: Url,
    token: SecretString,
    clock: fn() -> Timestamp,
    exhausted: Exhausted,
}

impl Api {
    pub fn new(network: &Network, token: SecretString) -> Self {
        Self {
            vendor: network.vendor.clone(),
            base: network.vendors.discord.clone(),
            token,
            clock: network.clock,
            exhausted: Exhausted::default(),
        }
    }

    pub fn token(&self) -> &str {
        self.token.expose_secret()
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        let (route, request) = self.request(Method::GET, path)?;
        self.call(route, request, bounds::ANSWER).await
    }

    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, Failure> {
        let (route, request) = self.request(method, path)?;
        self.call(route, request.json(body), bounds::ANSWER).await
    }

    pub async fn upload(&self, path: &str, form: Form) -> Result<Value, Failure> {
        let (route, request) = self.request(Method::POST, path)?;
        self.call(route, request.multipart(form), bounds::TRANSFER).await
    }

    /// Downloads a file. Its address is signed, and gets no token.
    pub async fn download(&self, url: Url, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        self.vendor.download(PEER, self.vendor.http.get(url), to, most).await
    }

    /// Connects to the gateway, which gets the token: encrypted, unless the operator's API isn't either.
    pub async fn connect(&self, url: &Url) -> io::Result<Box<dyn Stream>> {
        let is_allowed = url.scheme() == "wss" || (url.scheme() == "ws" && self.base.scheme() == "http");
        if is_allowed { self.vendor.connect(url).await } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    fn request(&self, method: Method, path: &str) -> Result<(String, RequestBuilder), Failure> {
        let token = self.token();
        let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if token.is_empty() || !token.chars().all(is_token) {
            return Err(Failure::Credentials("This is not a token of a Discord bot.".into()));
        }
        let url =
            self.base.join(path).map_err(|_| Failure::NotSent("Discord's address can't be used.".into()))?;
        // Discord counts calls of a method and kind in each chat.
        let of = path.split(['/', '?']).take(3).collect::<Vec<_>>().join("/");
        let route = format!("{method} {of}");
        let request = self.vendor.http.request(method, url).header(USER_AGENT, NAME);
        Ok((route, request.header(AUTHORIZATION, format!("Bot {token}"))))
    }

    async fn call(&self, route: String, request: RequestBuilder, most: Duration) -> Result<Value, Failure> {
        if let Some(wait) = self.exhausted.wait(&route) {
            let cause = "Discord takes no more calls of this kind at the moment.".into();
            return Err(Failure::RateLimited { wait, scope: Scope::Target, cause });
        }
        let answer = self.vendor.call(PEER, request, most).await?;
        self.exhausted.note(route, &answer.headers);
        read_response(&answer, (self.clock)())
    }
}

/// Routes without calls left, and their resets.
#[derive(Default)]
struct Exhausted(Mutex<HashMap<String, Instant>>);

impl Exhausted {
    fn wait(&self, route: &str) -> Option<Duration> {
        let reset = self.all().get(route).copied()?;
        Some(reset.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    fn note(&self, route: String, headers: &HeaderMap) {
        let text = |name| headers.get(name).and_then(|text| text.to_str().ok());
        let (mut all, now) = (self.all(), Instant::now());
        all.retain(|_, reset| *reset > now);
        let wait = text("x-ratelimit-reset-after").and_then(|seconds| duration(seconds.parse().ok()?));
        if text("x-ratelimit-remaining") == Some("0")
            && let Some(reset) = wait.and_then(|wait| now.checked_add(wait))
        {
            all.insert(route, reset);
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Maps a response to a result.
fn read_response(answer: &HttpResponse, now: Timestamp) -> Result<Value, Failure> {
    let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status.is_success() {
        return Ok(said);
    }
    let status = answer.status.as_u16();
    let cause = match said["message"].as_str() {
        Some(words) => Cause::from(format!("Discord: {words}")),
        None => Cause::from(format!("Discord answered with status {status}.")),
    };
    Err(match (status, said["code"].as_u64()) {
        (401, _) | (_, Some(50_014)) => Failure::Credentials(cause),
        (429, _) => {
            let asked = said["retry_after"].as_f64().and_then(duration);
            let wait = asked.or_else(|| answer.retry_after(now)).unwrap_or(bounds::RETRY);
            // Without JSON, the shield before Discord answers, to our address as a whole.
            let scope = if said["global"] == false { Scope::Target } else { Scope::Channel };
            Failure::RateLimited { wait, scope, cause }
        }
        // The shield again.
        (403, None) => Failure::NotSent(cause),
        (403, _) | (404, Some(10_003)) => Failure::TargetGone(cause),
        (400..500, _) => Failure::Refused(cause),
        _ => Failure::Unknown(cause),
    })
}
