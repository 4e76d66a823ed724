//! Checks the destination addresses of outbound connections.
//!
//! A connection to a host from a tenant or an agent goes only to addresses returned by [`Addresses::of`]. The name is
//! resolved once, and all its addresses must be public or in a listed network: the operator lists those of the service,
//! a host's owner those of the host. A name with one public and one private address is refused.

mod public;

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use ipnet::IpNet;

pub use self::public::is_public;

/// Why a connection to a host is refused.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The name can't be resolved.
    #[error("the name can't be resolved: {0}")]
    Unresolved(#[source] io::Error),
    /// The name has an address that is not public.
    #[error("it has an address that is not public")]
    NotPublic,
}

/// Resolves names.
pub trait Resolve: std::fmt::Debug + Send + Sync + 'static {
    /// Returns all addresses of a name.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug)]
pub struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The allowed addresses: the public internet, and the listed networks.
#[derive(Clone, Debug)]
pub struct Addresses {
    networks: Arc<[IpNet]>,
    resolver: Arc<dyn Resolve>,
}

impl Addresses {
    /// Allows the public internet and `networks`, with the system's resolver.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self::with(networks, Arc::new(System))
    }

    /// Like [`Addresses::new`], with another resolver.
    pub fn with(networks: Vec<IpNet>, resolver: Arc<dyn Resolve>) -> Self {
        Self { networks: networks.into(), resolver }
    }

    /// Resolves a host to allowed addresses. Connect to these instead of resolving the name again.
    pub async fn of(&self, host: &str) -> Result<Vec<IpAddr>, AddressError> {
        let found = match literal(host) {
            Some(address) => vec![address],
            None => tokio::time::timeout(Duration::from_secs(10), self.resolver.resolve(host))
                .await
                .map_err(|_| AddressError::Unresolved(io::ErrorKind::TimedOut.into()))?
                .map_err(AddressError::Unresolved)?,
        };
        if found.is_empty() {
            return Err(AddressError::Unresolved(io::ErrorKind::NotFound.into()));
        }
        if found.iter().all(|address| self.allow(*address)) {
            Ok(found)
        } else {
            Err(AddressError::NotPublic)
        }
    }

    /// Whether a connection to this address is allowed.
    pub fn allow(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.lists(address)
    }

    /// Whether the address is in a listed network. It is trusted more than a public one.
    pub fn lists(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// Parses an IP address, also in a URL's brackets.
fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_networks_are_allowed() {
        let none = Addresses::new(Vec::new());
        assert!(!none.allow("10.1.2.3".parse().unwrap()));
        let listed = Addresses::new(vec!["10.1.0.0/16".parse().unwrap()]);
        assert!(
            listed.allow("10.1.2.3".parse().unwrap()) && listed.allow("::ffff:10.1.2.3".parse().unwrap())
        );
        assert!(!listed.allow("10.2.0.1".parse().unwrap()));
        assert!(!listed.lists("1.1.1.1".parse().unwrap()));
    }

    #[derive(Debug)]
    struct Fixed(Vec<IpAddr>);

    impl Resolve for Fixed {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }

    #[tokio::test]
    async fn one_private_address_refuses_the_name() {
        let of = async |found: &[&str]| {
            let found = found.iter().map(|text| text.parse().unwrap()).collect();
            Addresses::with(Vec::new(), Arc::new(Fixed(found))).of("a.test").await
        };
        assert!(matches!(of(&["1.1.1.1", "10.0.0.1"]).await, Err(AddressError::NotPublic)));
        assert!(matches!(of(&[]).await, Err(AddressError::Unresolved(_))));
        assert_eq!(of(&["1.1.1.1"]).await.unwrap(), ["1.1.1.1".parse::<IpAddr>().unwrap()]);
    }

    #[tokio::test]
    async fn literal_addresses_are_checked() {
        let addresses = Addresses::new(Vec::new());
        for inward in ["127.0.0.1", "::1", "[::1]", "[::ffff:127.0.0.1]"] {
            assert!(matches!(addresses.of(inward).await, Err(AddressError::NotPublic)), "{inward}");
        }
    }
}
