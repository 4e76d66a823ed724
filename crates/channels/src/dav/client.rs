//! Calls to a WebDAV server. Its address is the tenant's, so it is guarded, and the password goes nowhere else.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header::CONTENT_TYPE};
use jiff::Timestamp;
use reqwest::{Body, Request};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::Multistatus;
use crate::{
    bounds,
    contract::{Cause, Failure, Scope, Spool},
    network::{Guard, HttpResponse, Network},
};

/// A WebDAV server with an account there.
#[derive(Clone)]
pub struct DavClient {
    guard: Guard,
    clock: fn() -> Timestamp,
    pub url: String,
    pub user: String,
    pass: SecretString,
}

impl DavClient {
    pub fn new(network: &Network, url: String, user: String, pass: SecretString) -> Self {
        Self { guard: network.guard.clone(), clock: network.clock, url, user, pass }
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The address of a resource. `href` is relative to the channel's address.
    ///
    /// # Errors
    /// It leads to another server.
    pub fn resolve(&self, href: &str) -> Result<Url, Failure> {
        let base = self.guard.check(&self.url)?;
        let url = base.join(href).ok().filter(|url| url.origin() == base.origin());
        url.ok_or_else(|| Failure::Refused("The server refers to another server.".into()))
    }

    /// Lists properties of a resource, and with `depth` 1 of those in it.
    pub async fn propfind(&self, href: &str, depth: u8, properties: &str) -> Result<Multistatus, Failure> {
        let body = format!(
            "<d:propfind xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"><d:prop>{properties}</d:prop></d:propfind>"
        );
        let answer = self.query(b"PROPFIND", href, depth, body).await?;
        self.read(&answer)
    }

    /// Asks for a report. `None`: the server does not make it.
    pub async fn report(&self, href: &str, depth: u8, body: String) -> Result<Option<Multistatus>, Failure> {
        let answer = self.query(b"REPORT", href, depth, body).await?;
        if matches!(answer.status.as_u16(), 400 | 403 | 405 | 409 | 412 | 415 | 501 | 507) {
            return Ok(None);
        }
        self.read(&answer).map(Some)
    }

    fn read(&self, answer: &HttpResponse) -> Result<Multistatus, Failure> {
        let time = answer.date().unwrap_or_else(|| self.now());
        Ok(Multistatus { time, ..Multistatus::read(&self.done(answer)?.body)? })
    }

    /// Reads a resource, with its `ETag`.
    pub async fn get(&self, href: &str) -> Result<HttpResponse, Failure> {
        let request = self.request(Method::GET, href, HeaderMap::new())?;
        let answer = self.call(request).await?;
        self.done(&answer)?;
        Ok(answer)
    }

    /// Downloads a resource of at most `most` bytes. Returns its length.
    pub async fn download(&self, href: &str, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        let mut request = self.request(Method::GET, href, HeaderMap::new())?;
        *request.timeout_mut() = Some(bounds::TRANSFER);
        self.check_secrets(request.url()).await?;
        self.guard.download(request, to, most).await
    }

    /// Writes a resource, on a condition. The caller judges the status.
    pub async fn put(
        &self,
        href: &str,
        (condition, value): (HeaderName, &str),
        media_type: &str,
        content: impl Into<Body>,
    ) -> Result<HttpResponse, Failure> {
        let header = |value: &str| {
            HeaderValue::from_str(value)
                .map_err(|_| Failure::Refused("The ETag or the type is invalid.".into()))
        };
        let headers = [(condition, header(value)?), (CONTENT_TYPE, header(media_type)?)];
        let mut request = self.request(Method::PUT, href, headers.into_iter().collect())?;
        *request.body_mut() = Some(content.into());
        *request.timeout_mut() = Some(bounds::TRANSFER);
        self.call(request).await
    }

    /// The failure that an answer means, unless it is a success.
    pub fn done<'a>(&self, answer: &'a HttpResponse) -> Result<&'a HttpResponse, Failure> {
        let status = answer.status.as_u16();
        let cause = |what: &str| Cause::from(format!("The server {what} (status {status})."));
        Err(match status {
            200..300 => return Ok(answer),
            300..400 => Failure::Refused(cause("is at another address")),
            401 => Failure::Credentials("The server rejects the user or the password.".into()),
            404 | 409 | 410 => Failure::TargetGone(cause("has no such file or folder")),
            // Locked; no space is left.
            423 | 507 => Failure::NotSent(cause("can't write at the moment")),
            429 | 503 => {
                let wait = answer.retry_after(self.now()).unwrap_or(bounds::RETRY);
                Failure::RateLimited { wait, scope: Scope::Channel, cause: cause("asks to wait") }
            }
            400..500 => Failure::Refused(cause("refuses this")),
            _ => Failure::Unknown(cause("failed")),
        })
    }

    async fn query(
        &self,
        method: &[u8],
        href: &str,
        depth: u8,
        body: String,
    ) -> Result<HttpResponse, Failure> {
        let method =
            Method::from_bytes(method).map_err(|_| Failure::Refused("The method is invalid.".into()))?;
        let headers = [
            (HeaderName::from_static("depth"), HeaderValue::from(u16::from(depth))),
            (CONTENT_TYPE, HeaderValue::from_static("application/xml; charset=utf-8")),
        ];
        let mut request = self.request(method, href, headers.into_iter().collect())?;
        *request.body_mut() = Some(body.into());
        self.call(request).await
    }

    fn request(&self, method: Method, href: &str, headers: HeaderMap) -> Result<Request, Failure> {
        let request = self.guard.http().request(method, self.resolve(href)?).headers(headers);
        let request = request.basic_auth(&self.user, Some(self.pass.expose_secret())).build();
        request.map_err(|_| Failure::Refused("The address can't be called.".into()))
    }

    async fn call(&self, request: Request) -> Result<HttpResponse, Failure> {
        self.check_secrets(request.url()).await?;
        // As many bytes as a vendor's answer.
        self.guard.call_within(request, 8 << 20).await
    }

    async fn check_secrets(&self, url: &Url) -> Result<(), Failure> {
        if self.guard.may_have_secrets(url).await? {
            return Ok(());
        }
        Err(Failure::Refused(
            "A password is only sent over TLS: the address must begin with https://.".into(),
        ))
    }
}
