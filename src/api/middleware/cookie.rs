//! The session cookie of browsers: where it is accepted, and how it is set.
//!
//! A browser adds the cookie to every request that any page makes it send here, so a request with the cookie must also
//! prove that one of the service's own pages sent it (decision 31):
//!
//! - `Sec-Fetch-Site` is `same-origin`, which no page can forge; or,
//! - without that header (older browsers, plain http), `Origin` is one of the service's own: that of `public_url`, or
//!   without it the loopback addresses on which it listens. The `Host` header proves nothing: its sender chooses it.
//! - A WebSocket always needs the `Origin`, because browsers let every page open one.
//!
//! The cookie is `__Host-muster-session`, which browsers only keep over TLS and on this machine. It has another name
//! without `Secure` where TLS can't be: `public_url` is unset, the listener is bound to a loopback address, and no
//! proxy has forwarded the request. The interfaces that ask a [`Visit`] accept the cookie; for all others it does not
//! exist.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::Arrival;
use crate::{
    base::problem::{Code, Problem, Result},
    core::{
        Core,
        access::{Caller, Jar, JarChange, authn::recognize_cookie},
        config::Config,
        rate_limits::Class,
    },
};

/// The name where the browser trusts the connection.
const TRUSTED: &str = "__Host-muster-session";
/// The name on this machine without TLS.
const PLAIN: &str = "muster-session";
/// The headers by which a proxy marks a forwarded request, besides `X-Forwarded-…`.
const FORWARDING: [&str; 3] = ["forwarded", "via", "x-real-ip"];

/// A request to an interface that accepts the cookie.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    core: &'a Arc<Core>,
    arrival: &'a Arrival,
    handshake: bool,
}

impl<'a> Visit<'a> {
    /// A visit by HTTP.
    #[must_use]
    pub fn new(core: &'a Arc<Core>, arrival: &'a Arrival) -> Self {
        Self { core, arrival, handshake: arrival.headers.contains_key(header::UPGRADE) }
    }

    /// Identifies the caller by bearer token or cookie, and charges the request to them by its method.
    ///
    /// # Errors
    /// Those of [`Self::caller_uncharged`]; `RATE_LIMITED`.
    pub async fn caller(self) -> Result<Caller> {
        let caller = self.caller_uncharged().await?;
        self.arrival.charge(self.core, &caller, Class::of_method(&self.arrival.method))?;
        Ok(caller)
    }

    /// Identifies the caller. A cookie whose session has ended counts as none: the browser can't take it back, and
    /// must be able to sign in again.
    ///
    /// # Errors
    /// `MALFORMED_REQUEST` for a bearer token and a cookie at once; `CROSS_ORIGIN`; `UNAUTHENTICATED` or
    /// `TOKEN_EXPIRED` for a bad bearer token; `RATE_LIMITED` after too many bad ones.
    pub async fn caller_uncharged(self) -> Result<Caller> {
        let Some(token) = self.cookie() else { return self.arrival.caller_uncharged(self.core).await };
        if self.arrival.headers.contains_key(header::AUTHORIZATION) {
            return Err(two_credentials());
        }
        self.require_own_page()?;
        let caller = match self.arrival.identify(self.core, recognize_cookie(self.core, token)).await {
            Err(problem) if problem.code == Code::Unauthenticated => Caller::Anonymous,
            found => found?,
        };
        Ok(self.arrival.record_caller(caller))
    }

    /// The value of the cookie, if the request has one. Of several, none can be trusted.
    #[must_use]
    pub fn cookie(self) -> Option<&'a str> {
        let name = self.name();
        let mut values = pairs(&self.arrival.headers).filter(|(key, _)| *key == name).map(|(_, value)| value);
        values.next().filter(|_| values.next().is_none())
    }

    /// The jar that collects changes to the cookie.
    #[must_use]
    pub fn jar(self) -> Jar {
        if self.arrival.headers.contains_key(header::AUTHORIZATION) {
            return Jar::closed("A request that sets a cookie must not have a token in `Authorization`.");
        }
        let insecure = self.public().filter(|url| url.scheme() == "http" && !is_here(url));
        if let Some(url) = insecure {
            return Jar::closed(format!(
                "Browsers only keep the session cookie over TLS, and public_url is {url}. Serve the installation over \
                 https, and set public_url to that address."
            ));
        }
        // At another address, pages would work only until they open a WebSocket, which needs the public one.
        if let Some(url) = self.public().filter(|_| self.has_own_origin() == Some(false)) {
            return Jar::closed(format!("People can sign in only at {url}: open Muster there."));
        }
        match self.require_own_page() {
            Ok(()) => Jar::open(),
            Err(problem) => Jar::closed(problem.detail),
        }
    }

    /// Refuses a request that another page may have sent.
    fn require_own_page(self) -> Result<()> {
        let site = self.arrival.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_own = || self.has_own_origin() == Some(true);
        let proven = match site {
            Some(site) => site == b"same-origin" && (!self.handshake || is_own()),
            None => is_own(),
        };
        if proven { Ok(()) } else { Err(self.foreign()) }
    }

    /// Whether the request's `Origin` is one of the service's own. None: it has none.
    fn has_own_origin(self) -> Option<bool> {
        let origin = self.arrival.headers.get(header::ORIGIN)?.as_bytes();
        Some(self.own_origins().any(|own| own.as_bytes() == origin))
    }

    fn foreign(self) -> Problem {
        let own: Vec<String> = self.own_origins().collect();
        let place = if own.is_empty() {
            "none: set public_url to the address at which people open it".to_owned()
        } else {
            own.join(", ")
        };
        let detail = format!(
            "The session cookie only counts in requests from this service's own pages, and this one does not show that \
             it is from there. Send `Sec-Fetch-Site: same-origin`, or an `Origin` of the service's own ({place}); a \
             WebSocket needs that `Origin`. Programs use a token."
        );
        Problem::new(Code::CrossOrigin, detail)
    }

    /// The origins of the service's own pages.
    fn own_origins(self) -> impl Iterator<Item = String> {
        let public = self.public();
        let here = match &public {
            Some(_) => Vec::new(),
            None => self.arrival.listener.map(loopback_urls).unwrap_or_default(),
        };
        public.into_iter().chain(here).map(|url| url.origin().ascii_serialization())
    }

    fn public(self) -> Option<Url> {
        self.config().public_url.as_deref().and_then(|url| Url::parse(url).ok())
    }

    fn config(self) -> &'a Config {
        &self.core.config
    }

    /// The name of the cookie in this request and its answer.
    fn name(self) -> &'static str {
        let here = self.arrival.listener.is_some_and(|address| address.ip().is_loopback());
        let is_plain = here && self.config().public_url.is_none() && !is_forwarded(&self.arrival.headers);
        if is_plain { PLAIN } else { TRUSTED }
    }

    /// The header that sets or removes the cookie.
    fn header(self, change: &JarChange) -> Result<HeaderValue> {
        let name = self.name();
        let secure = if name == TRUSTED { "; Secure" } else { "" };
        let none = SecretString::default();
        let (value, age) = match change {
            JarChange::Set(token) => (token, self.config().sessions.browser_max().as_secs()),
            JarChange::Clear => (&none, 0),
        };
        let value = value.expose_secret();
        let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
        let mut header = HeaderValue::from_str(&text).map_err(Problem::internal)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// Writes the changed cookie into the answer.
///
/// # Errors
/// Never, unless a token is not ASCII.
pub fn write_cookie(visit: Visit<'_>, jar: &Jar, response: &mut Response) -> Result<()> {
    if let Some(change) = jar.take_change() {
        response.headers_mut().append(header::SET_COOKIE, visit.header(&change)?);
    }
    Ok(())
}

/// The refusal of a request with both credentials: its caller is ambiguous.
#[must_use]
pub fn two_credentials() -> Problem {
    let detail = "Send either the session cookie or a token in `Authorization`, not both.";
    Problem::new(Code::MalformedRequest, detail)
}

/// The cookies of a request. Skips cookies that are not text, which another service on this host may set.
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let values = headers.get_all(header::COOKIE).into_iter().map(HeaderValue::as_bytes);
    let pairs = values.flat_map(|value| value.split(|byte| *byte == b';'));
    pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.trim().split_once('='))
}

fn is_forwarded(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .map(http::HeaderName::as_str)
        .any(|name| name.starts_with("x-forwarded-") || FORWARDING.contains(&name))
}

/// Where a browser on this machine can open a listener.
fn loopback_urls(listener: SocketAddr) -> Vec<Url> {
    let (ip, port) = (listener.ip(), listener.port());
    if !ip.is_loopback() && !ip.is_unspecified() {
        return Vec::new();
    }
    let mut hosts = vec!["localhost".to_owned()];
    match ip {
        IpAddr::V4(ip) if ip.is_loopback() => hosts.push(ip.to_string()),
        IpAddr::V6(ip) if ip.is_loopback() => hosts.push(format!("[{ip}]")),
        IpAddr::V4(_) => hosts.push("127.0.0.1".to_owned()),
        IpAddr::V6(_) => hosts.extend(["127.0.0.1".to_owned(), "[::1]".to_owned()]),
    }
    hosts.iter().filter_map(|host| Url::parse(&format!("http://{host}:{port}")).ok()).collect()
}

/// Whether a URL names this machine, where browsers trust http.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(listener: &str) -> Vec<String> {
        let urls = loopback_urls(listener.parse().unwrap());
        urls.into_iter().map(|url| url.origin().ascii_serialization()).collect()
    }

    #[test]
    fn a_listener_is_opened_at_its_loopback_addresses_alone() {
        assert_eq!(origins("127.0.0.1:8080"), ["http://localhost:8080", "http://127.0.0.1:8080"]);
        assert_eq!(origins("[::1]:80"), ["http://localhost", "http://[::1]"]);
        assert_eq!(origins("0.0.0.0:8080"), ["http://localhost:8080", "http://127.0.0.1:8080"]);
        assert_eq!(origins("[::]:1"), ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"]);
        assert_eq!(origins("192.0.2.1:8080"), [""; 0]);
    }
}
