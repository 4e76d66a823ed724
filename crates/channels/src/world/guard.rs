//! Calls and connections to what tenants type: webhooks' addresses, mail servers.
//!
//! A URL's host in digits is checked by itself, since the HTTP client doesn't ask its resolver about it; a name is resolved
//! once, every address is checked, and the checked one is connected to. Redirects are not followed and the environment's
//! proxies are not used: both lead past the checks. Of an answer's body, 64 KiB are read.

use std::{error::Error, io, net::SocketAddr, sync::Arc};

use muster_addresses::{AddressError, Addresses};
use reqwest::{
    Client, Request,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use super::{
    answer::{Answer, failed, pour},
    stream::{self, Stream},
};
use crate::{
    bounds,
    contract::{Cause, Failure, Spool},
};

/// Why a call or connection is not made.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The text is no URL.
    #[error("it is not a URL: {0}")]
    NoUrl(#[from] url::ParseError),
    /// The URL is neither http nor https.
    #[error("only http and https addresses can be called")]
    Scheme,
    /// The URL holds a user or a password.
    #[error("an address must not hold a user or a password")]
    Login,
    /// The host is not public.
    #[error("{0} has an address that is not public. Only the operator can allow its network")]
    Inward(String),
    /// The name is unknown.
    #[error("{host} can't be found: {source}")]
    Unresolved {
        /// The name.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// Nobody answers there.
    #[error("{host}, port {port}, can't be reached: {source}")]
    Unreachable {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
}

impl From<GuardError> for Failure {
    /// The address itself is wrong, or the host can't be reached right now.
    fn from(error: GuardError) -> Self {
        let cause = Cause::from(error.to_string());
        match error {
            GuardError::Unresolved { .. } | GuardError::Unreachable { .. } => Self::NotSent(cause),
            _ => Self::Refused(cause),
        }
    }
}

/// Calls and connects to what tenants type. Clones share their connections.
#[derive(Clone)]
pub struct Guard {
    addresses: Addresses,
    http: Client,
    tls: Arc<ClientConfig>,
}

impl Guard {
    pub(super) fn new(addresses: Addresses, tls: ClientConfig) -> reqwest::Result<Self> {
        let http = Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .dns_resolver(Arc::new(Checked(addresses.clone())))
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(bounds::NETWORK_WAIT)
            .timeout(bounds::ANSWER)
            .build()?;
        Ok(Self { addresses, http, tls: Arc::new(tls) })
    }

    /// Whether an address can be called, as far as can be said without resolving its name. Asked when it is saved, and
    /// again before each call.
    pub fn check(&self, url: &str) -> Result<Url, GuardError> {
        let url = Url::parse(url)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(GuardError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Login);
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) | None => None,
        };
        match literal {
            Some(address) if !self.addresses.allow(address) => Err(GuardError::Inward(address.to_string())),
            _ => Ok(url),
        }
    }

    /// The client, to build requests with.
    pub(crate) fn http(&self) -> &Client {
        &self.http
    }

    /// Makes one call.
    pub(crate) async fn call(&self, request: Request) -> Result<Answer, Failure> {
        self.check(request.url().as_str())?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let response = self.http.execute(request).await.map_err(|error| refused(&host, &error))?;
        Answer::read(response, bounds::TEXT).await.map_err(|error| failed(&host, &error))
    }

    /// Reads a file of at most `most` bytes. Returns its length.
    pub(crate) async fn download(&self, request: Request, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        self.check(request.url().as_str())?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let response = self.http.execute(request).await.map_err(|error| refused(&host, &error))?;
        pour(&host, response, to, most).await
    }

    /// Connects to a host, after all its addresses were checked.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, GuardError> {
        let addresses = self.addresses.of(host).await.map_err(|error| named(host, error))?;
        let unreachable = |source| GuardError::Unreachable { host: host.to_owned(), port, source };
        let mut last = io::ErrorKind::AddrNotAvailable.into();
        for address in addresses {
            match timeout(bounds::NETWORK_WAIT, TcpStream::connect(SocketAddr::new(address, port))).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(unreachable(last))
    }

    /// Encrypts a connection to a host.
    pub(crate) async fn secure<S: Stream>(
        &self,
        host: &str,
        port: u16,
        on: S,
    ) -> Result<TlsStream<S>, GuardError> {
        let failed = |source| GuardError::Unreachable { host: host.to_owned(), port, source };
        stream::handshake(&self.tls, host, on).await.map_err(failed)
    }

    /// Whether a connection leads into a network that the operator lists: it may be without encryption.
    pub(crate) fn is_trusted(&self, stream: &TcpStream) -> bool {
        stream.peer_addr().is_ok_and(|peer| self.addresses.lists(peer.ip()))
    }
}

/// What a failed call means. An address that leads inward shows only while connecting.
fn refused(host: &str, error: &reqwest::Error) -> Failure {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(this) = cause {
        if let Some(AddressError::Inward) = this.downcast_ref() {
            return GuardError::Inward(host.to_owned()).into();
        }
        cause = this.source();
    }
    failed(host, error)
}

fn named(host: &str, error: AddressError) -> GuardError {
    match error {
        AddressError::Inward => GuardError::Inward(host.to_owned()),
        AddressError::Unresolved(source) => GuardError::Unresolved { host: host.to_owned(), source },
    }
}

/// The resolver of the HTTP client.
struct Checked(Addresses);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move {
            let found = addresses.of(name.as_str()).await?;
            let found: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(found)
        })
    }
}
