//! Addresses of clients.

use std::net::IpAddr;

/// The unit that counts as one client: an IPv4 address, or for IPv6 the network that a provider assigns to one
/// customer.
#[must_use]
pub fn client_network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() >> 64 << 64).into()),
        ip @ IpAddr::V4(_) => ip,
    }
}
