//! Connections other than HTTP: mail, and the sockets of Discord and Slack.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use muster_certificates::Remedy;
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

/// A connection with a limit on the response to each command: line-reading libraries would buffer an endless line, and
/// rescan all lines for each new one.
#[derive(Debug)]
pub struct Metered<S> {
    stream: S,
    most: ReadLimit,
    read: ReadLimit,
}

/// Limit of one response.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadLimit {
    pub bytes: usize,
    pub lines: usize,
}

impl<S: Stream> Metered<S> {
    /// Limits the bytes and lines between two writes.
    pub fn new(stream: S, most: ReadLimit) -> Self {
        Self { stream, most, read: ReadLimit::default() }
    }

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
        self.read = ReadLimit::default();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Starts TLS; the certificate must match the host.
pub async fn start_tls<S: Stream>(tls: &Arc<ClientConfig>, host: &str, on: S) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let shaken = TlsConnector::from(Arc::clone(tls)).connect(name, on);
    let shaken = timeout(bounds::NETWORK_WAIT, shaken).await;
    let shaken = shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    shaken.map_err(|error| muster_certificates::explained(error, Remedy::ServiceSetting))
}
