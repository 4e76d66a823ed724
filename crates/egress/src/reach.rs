//! Outgoing connections: a name is resolved once, all addresses are checked, and only a checked address is connected
//! to.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use ipnet::IpNet;
use muster_addresses::{AddressError, Addresses, Resolve, System};
use muster_certificates::Remedy;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{bounds::NETWORK_WAIT, call_counts::CallCounts, memory};

/// Why a host can't be reached.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// Unknown name.
    #[error("{host} can't be resolved: {source}")]
    Unresolved {
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// An address is not public.
    #[error(
        "{host} has an address that is not public. Only the owner of the agent's host can allow its network, with --allow-net"
    )]
    NotPublic { host: String },
    /// No connection.
    #[error("{host}, port {port}, can't be reached: {source}")]
    Unreachable {
        host: String,
        port: u16,
        /// The cause.
        source: io::Error,
    },
    /// TLS failed.
    #[error("{host} can't be reached securely: {source}")]
    Tls {
        host: String,
        /// The cause.
        source: io::Error,
    },
}

/// A host's outgoing connections, shared by all its gates.
#[derive(Debug)]
pub struct Reach {
    /// Memory budget of all gates.
    pub(crate) memory: Arc<Semaphore>,
    /// Calls of all gates.
    pub calls: CallCounts,
    addresses: Addresses,
    tls: TlsConfig,
}

#[derive(Clone)]
struct TlsConfig(Arc<ClientConfig>);

impl std::fmt::Debug for TlsConfig {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("TlsConfig")
    }
}

impl Reach {
    /// With the system's resolver and certificates. `networks` are the private networks that the host's owner allows.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self::with(networks, Arc::new(System), muster_certificates::with_system(&[]))
    }

    /// With another resolver and other certificates.
    pub fn with(networks: Vec<IpNet>, resolver: Arc<dyn Resolve>, roots: RootCertStore) -> Self {
        let config = muster_certificates::client_config(roots);
        let addresses = Addresses::with(networks, resolver);
        Self {
            memory: memory::of_host(),
            calls: CallCounts::default(),
            addresses,
            tls: TlsConfig(Arc::new(config)),
        }
    }

    /// Connects after checking all addresses of the host.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ReachError> {
        let addresses = self.addresses(host).await?;
        let unreachable = |source| ReachError::Unreachable { host: host.to_owned(), port, source };
        let mut last = io::ErrorKind::AddrNotAvailable.into();
        for address in addresses {
            match tokio::time::timeout(NETWORK_WAIT, TcpStream::connect(SocketAddr::new(address, port))).await
            {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true).map_err(unreachable)?;
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(unreachable(last))
    }

    /// Connects with TLS.
    pub async fn connect_tls(&self, host: &str, port: u16) -> Result<TlsStream<TcpStream>, ReachError> {
        let failed = |source| ReachError::Tls {
            host: host.to_owned(),
            source: muster_certificates::explained(source, Remedy::HostSystem),
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(io::Error::other(error)))?;
        let stream = self.connect(host, port).await?;
        let shaken = TlsConnector::from(Arc::clone(&self.tls.0)).connect(name, stream);
        match tokio::time::timeout(NETWORK_WAIT, shaken).await {
            Ok(stream) => stream.map_err(failed),
            Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
        }
    }

    /// The addresses of a host, all of them allowed.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ReachError> {
        self.addresses.of(host).await.map_err(|error| match error {
            AddressError::Unresolved(source) => ReachError::Unresolved { host: host.to_owned(), source },
            AddressError::NotPublic => ReachError::NotPublic { host: host.to_owned() },
        })
    }
}
