//! Calls to Slack's Web API. Errors have status 200 and `ok: false`.

use std::io;

use bytes::Bytes;
use reqwest::RequestBuilder;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use crate::{
    bounds,
    contract::{Cause, Failure, Scope, Spool},
    network::{HttpResponse, Network, Stream, VendorClient, with_form},
};

const PEER: &str = "Slack";

/// Slack's Web API with one token.
pub struct Api {
    vendor: VendorClient,
    base: Url,
    token: SecretString,
    clock: fn() -> jiff::Timestamp,
}

impl Api {
    pub fn new(network: &Network, token: SecretString) -> Self {
        Self {
            vendor: network.vendor.clone(),
            base: network.vendors.slack.clone(),
            token,
            clock: network.clock,
        }
    }

    pub fn with(&self, token: SecretString) -> Self {
        Self { vendor: self.vendor.clone(), base: self.base.clone(), token, clock: self.clock }
    }

    /// Calls a method with JSON parameters.
    pub async fn call_json(&self, method: &str, parameters: &Value) -> Result<Value, Failure> {
        self.send(self.request(method)?.json(parameters)).await
    }

    /// Calls a method that accepts only a form.
    pub async fn call_form(&self, method: &str, fields: &[(&str, &str)]) -> Result<Value, Failure> {
        self.send(with_form(self.request(method)?, fields)).await
    }

    /// Uploads a file to Slack's one-time address. The address is a secret itself, and gets no token.
    pub async fn upload(&self, to: &str, bytes: Bytes) -> Result<(), Failure> {
        let url =
            Url::parse(to).map_err(|_| Failure::NotSent("Slack returned no address for the file.".into()))?;
        let answer = self.vendor.call(PEER, self.vendor.http.post(url).body(bytes), bounds::TRANSFER).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(Failure::NotSent(
            format!("Slack does not take the file (status {}).", answer.status.as_u16()).into(),
        ))
    }

    pub async fn download(&self, url: Url, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        let request = self.vendor.http.get(url).bearer_auth(self.token.expose_secret());
        self.vendor.download(PEER, request, to, most).await
    }

    pub async fn connect(&self, url: &Url) -> io::Result<Box<dyn Stream>> {
        self.vendor.connect(url).await
    }

    fn request(&self, method: &str) -> Result<RequestBuilder, Failure> {
        let url =
            self.base.join(method).map_err(|_| Failure::NotSent("Slack's address can't be used.".into()))?;
        Ok(self.vendor.http.post(url).bearer_auth(self.token.expose_secret()))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let answer = self.vendor.call(PEER, request, bounds::ANSWER).await?;
        read_response(&answer, (self.clock)())
    }
}

/// Maps a response to a result.
fn read_response(answer: &HttpResponse, now: jiff::Timestamp) -> Result<Value, Failure> {
    let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status.is_success() && said["ok"] == true {
        return Ok(said);
    }
    let word = said["error"].as_str().unwrap_or_default();
    let cause = if word.is_empty() {
        Cause::from(format!("Slack answered with status {}.", answer.status.as_u16()))
    } else {
        Cause::from(format!("Slack: {word}"))
    };
    Err(match word {
        _ if answer.status.as_u16() == 429 => rate_limited(answer, now, cause),
        "ratelimited" | "rate_limited" | "message_limit_exceeded" => rate_limited(answer, now, cause),
        "invalid_auth"
        | "token_revoked"
        | "token_expired"
        | "account_inactive"
        | "not_authed"
        | "not_allowed_token_type" => Failure::Credentials(cause),
        "channel_not_found"
        | "not_in_channel"
        | "is_archived"
        | "thread_not_found"
        | "user_not_found"
        | "cannot_reply_to_message"
        | "user_is_bot" => Failure::TargetGone(cause),
        "service_unavailable" | "team_added_to_org" | "accesslimited" => Failure::NotSent(cause),
        // It may have had an effect.
        "internal_error" | "fatal_error" | "request_timeout" | "" => Failure::Unknown(cause),
        _ => Failure::Refused(cause),
    })
}

fn rate_limited(answer: &HttpResponse, now: jiff::Timestamp, cause: Cause) -> Failure {
    Failure::RateLimited {
        wait: answer.retry_after(now).unwrap_or(bounds::RETRY),
        scope: Scope::Target,
        cause,
    }
}
