//! Calls to code hosts, and their errors.

use std::time::Duration;

use http::{
    Method, StatusCode,
    header::{ACCEPT, USER_AGENT},
};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use super::host::Host;
use crate::{
    bounds,
    contract::{Cause, Failure, Scope},
    network::{HttpResponse, Network, VendorClient},
};

/// Calls to one host.
pub struct Caller {
    host: &'static Host,
    base: Url,
    vendor: VendorClient,
    clock: fn() -> Timestamp,
}

impl Caller {
    pub fn new(host: &'static Host, base: Url, network: &Network) -> Self {
        Self { host, base, vendor: network.vendor.clone(), clock: network.clock }
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Makes one call with this token.
    pub async fn try_call(
        &self,
        token: &SecretString,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<HttpResponse, Failure> {
        let name = self.host.name;
        let url = self.base.join(path);
        let url = url.map_err(|_| Failure::NotSent(format!("{name}'s address can't be used.").into()))?;
        let request = self.vendor.http.request(method, url).bearer_auth(token.expose_secret());
        let request = request.header(ACCEPT, "application/json").header(USER_AGENT, "muster");
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.vendor.call(name, request, bounds::ANSWER).await
    }

    /// As [`Self::try_call`], with the meaning of the response.
    pub async fn call(
        &self,
        token: &SecretString,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        read_response(self.host.name, &self.try_call(token, method, path, body).await?, self.now())
    }
}

/// Maps a response to a result.
/// <https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api>
pub fn read_response(name: &str, answer: &HttpResponse, now: Timestamp) -> Result<Value, Failure> {
    let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status.is_success() {
        return Ok(said);
    }
    let status = answer.status.as_u16();
    let words = said["message"].as_str().or_else(|| said["error"].as_str());
    let cause = match words {
        Some(words) => Cause::from(format!("{name}: {words}")),
        None => Cause::from(format!("{name} answered with status {status}.")),
    };
    if matches!(status, 403 | 429)
        && let Some(wait) = limited(answer, words, now)
    {
        return Err(Failure::RateLimited { wait, scope: Scope::Channel, cause });
    }
    Err(match status {
        401 => Failure::Credentials(cause),
        403 | 404 | 410 => Failure::TargetGone(cause),
        300..500 => Failure::Refused(cause),
        _ => Failure::Unknown(cause),
    })
}

/// How long to wait. `None`: the call was not refused for a limit, although GitHub uses status 403 for limits, too.
fn limited(answer: &HttpResponse, words: Option<&str>, now: Timestamp) -> Option<Duration> {
    let number = |name| answer.headers.get(name)?.to_str().ok()?.parse::<i64>().ok();
    if let Some(wait) = answer.retry_after(now) {
        return Some(wait);
    }
    if number("x-ratelimit-remaining") == Some(0) {
        let reset = number("x-ratelimit-reset")? - now.as_second();
        return Some(Duration::from_secs(u64::try_from(reset).unwrap_or_default().clamp(1, 24 * 60 * 60)));
    }
    let is_limit = answer.status == StatusCode::TOO_MANY_REQUESTS
        || words.is_some_and(|words| words.to_ascii_lowercase().contains("rate limit"));
    // As GitHub asks where it names no time.
    is_limit.then_some(Duration::from_secs(60))
}
