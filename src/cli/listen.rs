//! Binds the address to serve on before any other work, with clear messages if that fails.

use std::{io::ErrorKind, net::SocketAddr};

use tokio::net::TcpSocket;

use super::Failure;
use crate::base::bounds::QUEUE;

/// An address that is bound but not listening yet: until it listens, clients are refused instead of kept waiting.
#[derive(Debug)]
pub(super) struct BoundAddress(TcpSocket);

/// Binds `address`; `setting` says, with `{}`, how to choose another one.
///
/// # Errors
/// The address is in use, or does not belong to this machine.
pub(super) fn bind(address: SocketAddr, setting: &'static str) -> Result<BoundAddress, Failure> {
    let try_bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Connections of the previous process that are still closing must not prevent a start.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(BoundAddress(socket))
    };
    try_bind().map_err(|error| failed(address, setting, &error))
}

impl BoundAddress {
    /// The address, with the actual port if port 0 was requested.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Starts to listen.
    ///
    /// # Errors
    /// Another program took the address in the meantime.
    pub fn listen(self, setting: &'static str) -> Result<tokio::net::TcpListener, Failure> {
        let address = self.address()?;
        self.0.listen(QUEUE as u32).map_err(|error| failed(address, setting, &error))
    }
}

fn failed(address: SocketAddr, setting: &str, error: &std::io::Error) -> Failure {
    Failure::new(match error.kind() {
        ErrorKind::AddrInUse => {
            let mut next = address;
            next.set_port(address.port().checked_add(1).unwrap_or(8080));
            let another = setting.replace("{}", &next.to_string());
            format!("{address} is in use by another program. Choose another address: {another}")
        }
        ErrorKind::AddrNotAvailable => {
            let another = setting.replace("{}", &SocketAddr::from(([127, 0, 0, 1], 8080)).to_string());
            format!("{address} is not an address of this machine. Choose another address: {another}")
        }
        ErrorKind::PermissionDenied => {
            let another = setting.replace("{}", &SocketAddr::new(address.ip(), 8080).to_string());
            format!(
                "This user is not allowed to serve on {address}: {error}. Choose another address: {another}"
            )
        }
        _ => format!("Can't serve on {address}: {error}"),
    })
}
