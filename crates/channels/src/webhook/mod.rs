//! Webhooks: signed HTTP requests in and out, by [Standard Webhooks](https://www.standardwebhooks.com/) and, if the
//! channel names a header, `sha256=<hex>` over the body.
//!
//! - `outgoing.rs`: sending, and responses; `incoming.rs`: incoming requests; `raw_json.rs`: JSON as written.

mod incoming;
mod outgoing;
mod raw_json;

#[cfg(test)]
pub use self::incoming::decode;

use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::de::IgnoredAny;

use crate::{
    contract::{
        Abilities, Cause, Dialect, Failure, Files, Identity, Inlet, Kind, Limit, Longest, Part, RawRequest,
        Receipt, Received, Refusal, RemoteFile, Scope, Spool, Traits, Transport, Unit, WebhookConfig,
    },
    network::Network,
    signature::{self, Key, KeyError, SignedFields},
};

/// How long a post may take.
pub const LONGEST_POST: Duration = Duration::from_secs(45);

/// Our own choice of length: receivers limit their bodies.
static TRAITS: Traits = Traits {
    kind: Kind::Webhook,
    dialect: Dialect::Markdown,
    longest: Longest { count: 100_000, unit: Unit::Characters },
    limits: &[Limit { scope: Scope::Channel, count: 50, per: Duration::from_secs(1) }],
    longest_send: LONGEST_POST,
    idempotent_send: true,
    reconciles: false,
    inlet: Inlet::Push,
    files: Files::Together,
    abilities: Abilities { buttons: false, edits: false, typing: None },
    actions: &[],
    largest_in: 25 * 1024 * 1024,
    largest_out: 5 * 1024 * 1024,
};

pub struct Webhook {
    config: WebhookConfig,
    network: Network,
}

impl Webhook {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: WebhookConfig, network: Network) -> Self {
        Self { config, network }
    }

    /// An unreadable secret counts as a wrong credential: a person must set a new one.
    fn outbound_keys(&self) -> Result<Vec<Key>, Failure> {
        Key::all(&self.config.outbound_secrets).map_err(unreadable_secret)
    }

    /// Verifies the signature with the channel's secrets.
    fn verify_request(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<(), Refusal> {
        let keys = Key::all(&self.config.inbound_secrets).map_err(|_| Refusal::NotConfigured)?;
        if keys.is_empty() {
            return Err(Refusal::NotConfigured);
        }
        if let Some(signatures) = request.header("webhook-signature") {
            let id = request.header("webhook-id").ok_or(Refusal::BadSignature)?;
            let timestamp = request.header("webhook-timestamp").ok_or(Refusal::BadSignature)?;
            // Signed content must be recognizable wherever it turns up.
            if !is_id(id) || !is_time(timestamp.as_bytes()) {
                return Err(Refusal::BadSignature);
            }
            return signature::verify(&keys, SignedFields { id, timestamp }, signatures, request.body, now);
        }
        if request.headers.contains_key("webhook-signature") {
            return Err(Refusal::BadSignature);
        }
        let name = self.config.signature_header.as_deref().ok_or(Refusal::Unsigned)?;
        let given = request.header(name).ok_or(Refusal::Unsigned)?;
        signature::verify_body(&keys, given, request.body)?;
        if is_signed_content(request.body) { Err(Refusal::BadSignature) } else { Ok(()) }
    }

    async fn post(&self, part: &Part<'_>) -> Result<Receipt, Failure> {
        let url = self.config.outbound_url.as_deref().ok_or_else(no_destination)?;
        let (keys, header) = (self.outbound_keys()?, self.config.signature_header.as_deref());
        post(&self.network, url, part.id, (&keys, header), outgoing::write_body(part)).await
    }
}

/// Posts a body to a receiver, signed with each of the secrets: an event rather than a message of a channel. `id` is the
/// same for every attempt.
///
/// # Errors
/// See [`Failure`]. An unreadable secret counts as a wrong credential.
pub async fn post_signed(
    network: &Network,
    url: &str,
    id: &str,
    secrets: &[SecretString],
    body: Vec<u8>,
) -> Result<(), Failure> {
    let keys = Key::all(secrets).map_err(unreadable_secret)?;
    post(network, url, id, (&keys, None), body).await.map(drop)
}

async fn post(
    network: &Network,
    url: &str,
    id: &str,
    (keys, signature_header): (&[Key], Option<&str>),
    body: Vec<u8>,
) -> Result<Receipt, Failure> {
    let (url, now) = (network.guard.check(url)?, (network.clock)());
    let headers = outgoing::write_headers(id, keys, signature_header, &body, now)?;
    let request = network.guard.http().request(Method::POST, url).headers(headers).body(body).build();
    let request = request.map_err(|_| Failure::Refused("The request can't be made.".into()))?;
    outgoing::read_response(&network.guard.call(request).await?, now)
}

/// Bytes of a request's id.
const LONGEST_ID: usize = 256;
/// Digits of a request's timestamp.
const LONGEST_TIME: usize = 11;

/// Whether a request may have this id. No id can begin a JSON text that a timestamp and a body complete.
fn is_id(id: &str) -> bool {
    let fits = |byte: &u8| byte.is_ascii_graphic() && !b"{}[]\"".contains(byte);
    (1..=LONGEST_ID).contains(&id.len()) && id.as_bytes().iter().all(fits)
}

/// Whether this is a request's timestamp, in seconds.
fn is_time(piece: &[u8]) -> bool {
    (9..=LONGEST_TIME).contains(&piece.len()) && piece.iter().all(u8::is_ascii_digit)
}

/// Whether a body may be the content signed by Standard Webhooks, `<id>.<seconds>.<body>`: an intercepted signature
/// must not be accepted as one of that text.
fn is_signed_content(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let start = &body[..body.len().min(LONGEST_ID + LONGEST_TIME + 2)];
    start.split(|byte| *byte == b'.').skip(1).any(is_time)
        && muster_json::from_slice::<IgnoredAny>(body).is_err()
}

impl Transport for Webhook {
    fn traits(&self) -> &'static Traits {
        Self::TRAITS
    }

    /// Without a service to ask, checks the configuration only.
    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(async {
            self.outbound_keys()?;
            Key::all(&self.config.inbound_secrets).map_err(unreadable_secret)?;
            if let Some(url) = &self.config.outbound_url {
                self.network.guard.check(url)?;
            }
            Ok(Identity::default())
        })
    }

    fn receive(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<Received, Refusal> {
        self.verify_request(request, now)?;
        incoming::decode(request, &self.config.actor_paths, now)
    }

    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(self.post(part))
    }

    fn fetch<'a>(
        &'a self,
        file: &'a RemoteFile,
        to: Spool<'a>,
        most: u64,
    ) -> BoxFuture<'a, Result<u64, Failure>> {
        Box::pin(async move {
            let url = self.network.guard.check(file.handle()?)?;
            let request = self.network.guard.http().get(url).build();
            let request = request.map_err(|_| Failure::Refused("The file has no usable address.".into()))?;
            self.network.guard.download(request, to, most).await
        })
    }
}

fn unreadable_secret(error: KeyError) -> Failure {
    Failure::Credentials(Cause::from(error.to_string()))
}

fn no_destination() -> Failure {
    Failure::Refused("The channel has no outbound_url, so nothing can be sent.".into())
}
