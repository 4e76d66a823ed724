//! The server name in a ClientHello, read before any byte is forwarded. TLS inside a tunnel stays end to end.

use std::io::{self, Cursor, ErrorKind};

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::bounds;

/// Reads the agent's first bytes, and checks their host. Port 443 requires a ClientHello with the host's name; other
/// ports allow anything but a ClientHello with another name.
pub async fn read_first_bytes(
    from: &mut (impl AsyncRead + Unpin),
    host: &str,
    port: u16,
) -> io::Result<Vec<u8>> {
    let (mut acceptor, mut said) = (Acceptor::default(), Vec::new());
    loop {
        let begin = said.len();
        if begin >= bounds::TEXT {
            return Err(protocol_error("its ClientHello is too long"));
        }
        said.resize(begin + 4096, 0);
        let count = from.read(&mut said[begin..]).await?;
        said.truncate(begin + count);
        if count == 0 {
            return if said.is_empty() { Ok(said) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
        // The first byte of a TLS handshake.
        if said[0] != 0x16 {
            return if port == 443 { Err(protocol_error("it is not TLS")) } else { Ok(said) };
        }
        let mut new = Cursor::new(&said[begin..]);
        while (new.position() as usize) < count {
            acceptor.read_tls(&mut new)?;
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let named = accepted.client_hello().server_name().map(str::to_ascii_lowercase);
                    return match named {
                        Some(named) if named == host => Ok(said),
                        Some(named) => Err(protocol_error(&format!("its TLS is for {named}"))),
                        None => Err(protocol_error("its TLS names no host")),
                    };
                }
                Err((error, _)) => return Err(protocol_error(&format!("its TLS is invalid ({error})"))),
            }
        }
    }
}

fn protocol_error(what: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, what.to_owned())
}
