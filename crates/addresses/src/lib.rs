//! Which addresses may be connected to.
//!
//! Anyone who connects to a host that a tenant or an agent names asks here first, and connects to what was answered: a name is
//! resolved once, and every one of its addresses must be public, or in a network that the operator lists. A name with one
//! public and one private address is refused as a whole.

mod public;

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use ipnet::IpNet;

pub use self::public::is_public;

/// Why a host may not be connected to.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The name is unknown.
    #[error("the name can't be resolved: {0}")]
    Unresolved(#[source] io::Error),
    /// One of its addresses is not public.
    #[error("it has an address that is not public")]
    Inward,
}

/// Finds the addresses of a name.
pub trait Resolve: std::fmt::Debug + Send + Sync + 'static {
    /// All addresses of the name.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// As the system does it.
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

/// The public internet, and the networks that the operator lists.
#[derive(Clone, Debug)]
pub struct Addresses {
    networks: Arc<[IpNet]>,
    resolver: Arc<dyn Resolve>,
}

impl Addresses {
    /// With the system's names. `networks` are those beside the public ones.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self::with(networks, Arc::new(System))
    }

    /// With other names.
    pub fn with(networks: Vec<IpNet>, resolver: Arc<dyn Resolve>) -> Self {
        Self { networks: networks.into(), resolver }
    }

    /// The addresses of a host, all of them allowed. Connect to these, and don't resolve the name again.
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
        if found.iter().all(|address| self.allow(*address)) { Ok(found) } else { Err(AddressError::Inward) }
    }

    /// Whether this address may be connected to.
    pub fn allow(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.lists(address)
    }

    /// Whether the operator lists this address: it is trusted more than the public internet.
    pub fn lists(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// An address in digits, also as it stands in a URL.
fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_lists_networks() {
        let none = Addresses::new(Vec::new());
        assert!(!none.allow("10.1.2.3".parse().unwrap()));
        let listed = Addresses::new(vec!["10.1.0.0/16".parse().unwrap()]);
        assert!(
            listed.allow("10.1.2.3".parse().unwrap()) && listed.allow("::ffff:10.1.2.3".parse().unwrap())
        );
        assert!(!listed.allow("10.2.0.1".parse().unwrap()));
        assert!(!listed.lists("1.1.1.1".parse().unwrap()));
    }

    /// One name, and its addresses.
    #[derive(Debug)]
    struct Fixed(Vec<IpAddr>);

    impl Resolve for Fixed {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }

    #[tokio::test]
    async fn one_address_inward_refuses_the_name() {
        let of = async |found: &[&str]| {
            let found = found.iter().map(|text| text.parse().unwrap()).collect();
            Addresses::with(Vec::new(), Arc::new(Fixed(found))).of("a.test").await
        };
        assert!(matches!(of(&["1.1.1.1", "10.0.0.1"]).await, Err(AddressError::Inward)));
        assert!(matches!(of(&[]).await, Err(AddressError::Unresolved(_))));
        assert_eq!(of(&["1.1.1.1"]).await.unwrap(), ["1.1.1.1".parse::<IpAddr>().unwrap()]);
    }

    #[tokio::test]
    async fn digits_are_checked_too() {
        let addresses = Addresses::new(Vec::new());
        for inward in ["127.0.0.1", "::1", "[::1]", "[::ffff:127.0.0.1]"] {
            assert!(matches!(addresses.of(inward).await, Err(AddressError::Inward)), "{inward}");
        }
    }
}
