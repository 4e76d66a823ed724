//! Calls to a WebDAV server. Its address is the tenant's, so it is guarded, and the password goes nowhere else.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header::CONTENT_TYPE};
use jiff::Timestamp;
use reqwest::Request;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::Multistatus;
use crate::{
    bounds,
    contract::{Cause, Failure, Scope},
    network::{HttpResponse, Network},
};

/// A WebDAV server with an account there.
#[derive(Clone)]
pub struct DavClient {
    network: Network,
    url: String,
    pub user: String,
    pass: SecretString,
}

impl DavClient {
    pub fn new(network: Network, url: String, user: String, pass: SecretString) -> Self {
        Self { network, url, user, pass }
    }

    pub fn now(&self) -> Timestamp {
        (self.network.clock)()
    }

    /// The address of a resource. `href` is relative to the channel's address.
    ///
    /// # Errors
    /// It leads to another server.
    pub fn resolve(&self, href: &str) -> Result<Url, Failure> {
        let base = self.network.guard.check(&self.url)?;
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

    /// Writes a resource, on a condition. The caller judges the status.
    pub async fn put(
        &self,
        href: &str,
        (condition, value): (HeaderName, &str),
        media_type: &'static str,
        content: String,
    ) -> Result<HttpResponse, Failure> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| Failure::NotSent("The server's ETag is invalid.".into()))?;
        let headers = [(condition, value), (CONTENT_TYPE, HeaderValue::from_static(media_type))];
        let mut request = self.request(Method::PUT, href, headers.into_iter().collect())?;
        *request.body_mut() = Some(content.into());
        self.call(request).await
    }

    /// The failure that an answer means, unless it is a success.
    pub fn done<'a>(&self, answer: &'a HttpResponse) -> Result<&'a HttpResponse, Failure> {
        let status = answer.status.as_u16();
        let cause = || Cause::from(format!("The server answered with status {status}."));
        match status {
            200..300 => Ok(answer),
            401 => Err(Failure::Credentials("The server rejects the user or the password.".into())),
            403 | 404 | 410 => Err(Failure::TargetGone(cause())),
            429 | 503 => {
                let wait = answer.retry_after(self.now()).unwrap_or(bounds::RETRY);
                Err(Failure::RateLimited { wait, scope: Scope::Channel, cause: cause() })
            }
            300..500 => Err(Failure::Refused(cause())),
            _ => Err(Failure::Unknown(cause())),
        }
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
        let request = self.network.guard.http().request(method, self.resolve(href)?).headers(headers);
        let request = request.basic_auth(&self.user, Some(self.pass.expose_secret())).build();
        request.map_err(|_| Failure::Refused("The address can't be called.".into()))
    }

    async fn call(&self, request: Request) -> Result<HttpResponse, Failure> {
        if !self.network.guard.may_have_secrets(request.url()).await? {
            return Err(Failure::Refused(
                "A password is only sent over TLS: the address must begin with https://.".into(),
            ));
        }
        // As many bytes as a vendor's answer.
        self.network.guard.call_within(request, 8 << 20).await
    }
}
