//! Outgoing HTTP/1.1 through [`Reach`]. Connections are reused for further requests of the same agent to the same
//! address, which was checked when they were opened.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::{
        Client as Pooled,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

use crate::{
    answers::Body,
    reach::{Reach, ReachError},
};

/// The HTTP client of one gate.
pub type Client = Pooled<Connector, Body>;

pub fn client(reach: Arc<Reach>) -> Client {
    let mut builder = Pooled::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(55))
        .pool_max_idle_per_host(16);
    builder.build(Connector(reach))
}

/// The error of a request.
pub enum ExchangeError {
    /// The address is not public.
    NotPublic(String),
    /// Unreachable, or the connection broke.
    Broken(String),
    /// Timed out.
    Late,
}

pub fn cause(error: &hyper_util::client::legacy::Error) -> ExchangeError {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<ReachError>() {
            let words = cause.to_string();
            return match cause {
                ReachError::NotPublic { .. } => ExchangeError::NotPublic(words),
                _ => ExchangeError::Broken(words),
            };
        }
        source = cause.source();
    }
    let words = if error.is_connect() { "it can't be reached" } else { "the connection broke" };
    ExchangeError::Broken(words.to_owned())
}

/// Opens connections.
#[derive(Clone, Debug)]
pub struct Connector(Arc<Reach>);

impl Service<Uri> for Connector {
    type Response = Outgoing;
    type Error = ReachError;
    type Future = BoxFuture<'static, Result<Outgoing, ReachError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ReachError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let reach = Arc::clone(&self.0);
        Box::pin(async move {
            let host = to.host().unwrap_or_default().trim_matches(['[', ']']);
            let is_secure = to.scheme_str() == Some("https");
            let port = to.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
            let stream: Box<dyn Stream> = if is_secure {
                Box::new(reach.connect_tls(host, port).await?)
            } else {
                Box::new(reach.connect(host, port).await?)
            };
            Ok(Outgoing(TokioIo::new(stream)))
        })
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub struct Outgoing(TokioIo<Box<dyn Stream>>);

impl Connection for Outgoing {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Outgoing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Outgoing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
