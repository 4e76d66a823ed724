//! Taking an address to serve on: before anything else is done, and with words for who can't have it.

use std::{io::ErrorKind, net::SocketAddr};

use tokio::net::TcpSocket;

use super::Failure;

/// An address that is taken, and answers only once it listens: until then who connects is refused, and does not wait.
#[derive(Debug)]
pub(super) struct Taken(TcpSocket);

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Takes `address`; `setting` says with `{}` how another one is named.
///
/// # Errors
/// Somebody else has it, or it is not an address of this machine.
pub(super) fn take(address: SocketAddr, setting: &'static str) -> Result<Taken, Failure> {
    let bound = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // What waits for lost packets of the one before does not keep the next one from starting.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Taken(socket))
    };
    bound().map_err(|error| failed(address, setting, &error))
}

impl Taken {
    /// The address, with the port that was found where none was asked for.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Listens.
    ///
    /// # Errors
    /// Somebody was faster.
    pub fn listen(self, setting: &'static str) -> Result<tokio::net::TcpListener, Failure> {
        let address = self.address()?;
        self.0.listen(BACKLOG).map_err(|error| failed(address, setting, &error))
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
            format!("This user may not serve on {address}: {error}. Choose another address: {another}")
        }
        _ => format!("{address} can't be served on: {error}"),
    })
}
