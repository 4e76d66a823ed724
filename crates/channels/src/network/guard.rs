//! Calls and connections to hosts that tenants name: webhooks, mail servers.
//!
//! An IP address in a URL is checked here, since the HTTP client resolves only names; a name is resolved once, every
//! address is checked, and a checked one is connected to. Redirects are not followed and proxies of the environment are
//! not used: both would bypass the checks. At most 64 KiB of a response's body are read, of a WebDAV server's 8 MiB.

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
    response::{HttpResponse, call_failure, copy_body},
    stream::{self, Stream},
};
use crate::{
    bounds,
    contract::{Cause, Failure, Spool},
};

/// Why a call or connection is refused.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The text is not a URL.
    #[error("it is not a URL: {0}")]
    NoUrl(#[from] url::ParseError),
    /// The URL is neither http nor https.
    #[error("only http and https addresses can be called")]
    Scheme,
    /// The URL holds a user or a password.
    #[error("an address must not hold a user or a password")]
    Login,
    /// The host has a private address.
    #[error(
        "{0} has an address that is not public. Only the installation's operator can allow its network, with \
         channels.networks"
    )]
    NotPublic(String),
    /// The name can't be resolved.
    #[error("{host} can't be found: {source}")]
    Unresolved {
        /// The host name.
        host: String,
        source: io::Error,
    },
    /// The host doesn't accept connections.
    #[error("{host}, port {port}, can't be reached: {source}")]
    Unreachable { host: String, port: u16, source: io::Error },
}

impl From<GuardError> for Failure {
    /// The address is wrong, or the host is unreachable at the moment.
    fn from(error: GuardError) -> Self {
        let cause = Cause::from(error.to_string());
        match error {
            GuardError::Unresolved { .. } | GuardError::Unreachable { .. } => Self::NotSent(cause),
            GuardError::NotPublic(_) => Self::NotPublic(cause),
            _ => Self::Refused(cause),
        }
    }
}

/// Calls and connects to hosts that tenants name. Clones share connections.
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
            .dns_resolver(Arc::new(CheckedResolver(addresses.clone())))
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(bounds::NETWORK_WAIT)
            .timeout(bounds::ANSWER)
            .build()?;
        Ok(Self { addresses, http, tls: Arc::new(tls) })
    }

    /// Checks an address without resolving its name. Called when it is saved, and again before each call.
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
            Some(address) if !self.addresses.allow(address) => {
                Err(GuardError::NotPublic(address.to_string()))
            }
            _ => Ok(url),
        }
    }

    pub(crate) fn http(&self) -> &Client {
        &self.http
    }

    /// Makes one call.
    pub(crate) async fn call(&self, request: Request) -> Result<HttpResponse, Failure> {
        self.call_within(request, bounds::TEXT).await
    }

    /// Makes one call, of whose answer at most `most` bytes are read.
    pub(crate) async fn call_within(&self, request: Request, most: usize) -> Result<HttpResponse, Failure> {
        self.check(request.url().as_str())?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let response = self.http.execute(request).await.map_err(|error| guarded_failure(&host, &error))?;
        HttpResponse::read(response, most).await.map_err(|error| call_failure(&host, &error))
    }

    /// Downloads a file of at most `most` bytes. Returns its length.
    pub(crate) async fn download(&self, request: Request, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        self.check(request.url().as_str())?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let response = self.http.execute(request).await.map_err(|error| guarded_failure(&host, &error))?;
        copy_body(&host, response, to, most).await
    }

    /// Connects to a host after checking all its addresses.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, GuardError> {
        let addresses = self.addresses.of(host).await.map_err(|error| address_failure(host, error))?;
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

    /// Starts TLS on a connection to a host.
    pub(crate) async fn secure<S: Stream>(
        &self,
        host: &str,
        port: u16,
        on: S,
    ) -> Result<TlsStream<S>, GuardError> {
        let failed = |source| GuardError::Unreachable { host: host.to_owned(), port, source };
        stream::start_tls(&self.tls, host, on).await.map_err(failed)
    }

    /// Whether a password may be sent there: over TLS, or into a network that the operator lists.
    pub(crate) async fn may_have_secrets(&self, url: &Url) -> Result<bool, GuardError> {
        let host = url.host_str().unwrap_or_default();
        if url.scheme() == "https" {
            return Ok(true);
        }
        let addresses = self.addresses.of(host).await.map_err(|error| address_failure(host, error))?;
        Ok(addresses.into_iter().all(|address| self.addresses.lists(address)))
    }

    /// Whether a connection leads into a network that the operator lists: it may be unencrypted.
    pub(crate) fn is_trusted(&self, stream: &TcpStream) -> bool {
        stream.peer_addr().is_ok_and(|peer| self.addresses.lists(peer.ip()))
    }
}

/// A failed call's meaning. A private address shows up only while connecting.
fn guarded_failure(host: &str, error: &reqwest::Error) -> Failure {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(this) = cause {
        if let Some(AddressError::NotPublic) = this.downcast_ref() {
            return GuardError::NotPublic(host.to_owned()).into();
        }
        cause = this.source();
    }
    call_failure(host, error)
}

fn address_failure(host: &str, error: AddressError) -> GuardError {
    match error {
        AddressError::NotPublic => GuardError::NotPublic(host.to_owned()),
        AddressError::Unresolved(source) => GuardError::Unresolved { host: host.to_owned(), source },
    }
}

/// The HTTP client's resolver.
struct CheckedResolver(Addresses);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move {
            let found = addresses.of(name.as_str()).await?;
            let found: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(found)
        })
    }
}
