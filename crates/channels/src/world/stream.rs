//! Connections that are not HTTP: mail, and Slack's socket.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// How long the encryption may take to begin.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A connection, encrypted or not.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync + std::fmt::Debug {}

impl Stream for Box<dyn Stream> {}
impl Stream for TcpStream {}
impl<S: Stream> Stream for TlsStream<S> {}
impl<S: Stream> Stream for Metered<S> {}

/// A connection whose other end may say only so much to each thing that it is told: libraries that read lines
/// would keep all of an endless one.
#[derive(Debug)]
pub struct Metered<S> {
    stream: S,
    /// In bytes.
    most: u64,
    read: u64,
}

impl<S: Stream> Metered<S> {
    /// Allows `most` bytes between two things that are written.
    pub const fn new(stream: S, most: u64) -> Self {
        Self { stream, most, read: 0 }
    }
}

impl<S: Stream> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // More room than that was made for what was announced, and would not be read to its end.
        if self.read >= self.most || to.remaining() as u64 > self.most {
            return Poll::Ready(Err(io::Error::other("its answer is too long")));
        }
        let before = to.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, to);
        self.read += (to.filled().len() - before) as u64;
        polled
    }
}

impl<S: Stream> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.read = 0;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Encrypts a connection; the certificate must be the host's.
pub async fn handshake<S: Stream>(tls: &Arc<ClientConfig>, host: &str, on: S) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let shaken = TlsConnector::from(Arc::clone(tls)).connect(name, on);
    timeout(HANDSHAKE, shaken).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
