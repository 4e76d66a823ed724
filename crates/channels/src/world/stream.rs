//! Connections that are not HTTP: mail, and Slack's socket.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::bounds;

/// A connection, encrypted or not.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync + std::fmt::Debug {}

impl Stream for Box<dyn Stream> {}
impl Stream for TcpStream {}
impl<S: Stream> Stream for TlsStream<S> {}
impl<S: Stream> Stream for Metered<S> {}

/// A connection whose other end may say only so much to each thing that it is told: libraries that read lines
/// would keep all of an endless one, and look at all lines again whenever one more comes.
#[derive(Debug)]
pub struct Metered<S> {
    stream: S,
    most: Most,
    read: Most,
}

/// How much may be said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Most {
    pub bytes: usize,
    pub lines: usize,
}

impl<S: Stream> Metered<S> {
    /// Allows so much between two things that are written.
    pub fn new(stream: S, most: Most) -> Self {
        Self { stream, most, read: Most::default() }
    }

    /// The connection itself.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, to);
        let read = to.filled().get(before..).unwrap_or_default();
        self.read.bytes += read.len();
        self.read.lines += read.iter().filter(|byte| **byte == b'\n').count();
        if self.read.bytes > self.most.bytes || self.read.lines > self.most.lines {
            return Poll::Ready(Err(io::Error::other("its answer is too long")));
        }
        polled
    }
}

impl<S: Stream> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.read = Most::default();
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
    timeout(bounds::NETWORK_WAIT, shaken).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
