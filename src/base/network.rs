//! Addresses that requests come from.

use std::net::IpAddr;

/// What counts as one: an address, or of IPv6 the network that one customer gets.
#[must_use]
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() >> 64 << 64).into()),
        ip @ IpAddr::V4(_) => ip,
    }
}
