//! The name in a ClientHello, read before a byte of it goes further. The TLS inside of a tunnel stays the agent's own.

use std::io::{self, Cursor, ErrorKind};

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::bounds;

/// Reads what the agent says first, and checks that it is for this host: on port 443 it must be a ClientHello with the
/// host's name; on another port it may be anything else, but no ClientHello with another name.
pub async fn first_words(from: &mut (impl AsyncRead + Unpin), host: &str, port: u16) -> io::Result<Vec<u8>> {
    let (mut acceptor, mut said) = (Acceptor::default(), Vec::new());
    loop {
        let begin = said.len();
        if begin >= bounds::TEXT {
            return Err(wrong("its ClientHello is too long"));
        }
        said.resize(begin + 4096, 0);
        let count = from.read(&mut said[begin..]).await?;
        said.truncate(begin + count);
        if count == 0 {
            return if said.is_empty() { Ok(said) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
        // The first byte of a TLS handshake.
        if said[0] != 0x16 {
            return if port == 443 { Err(wrong("it is not TLS")) } else { Ok(said) };
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
                        Some(named) => Err(wrong(&format!("its TLS is for {named}"))),
                        None => Err(wrong("its TLS names no host")),
                    };
                }
                Err((error, _)) => return Err(wrong(&format!("its TLS is invalid ({error})"))),
            }
        }
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, what.to_owned())
}
