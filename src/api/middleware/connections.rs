//! Connections: how many there may be, and how long each may take to send a request and to read the answer.
//!
//! A client that connects and sends nothing, or one byte at a time, is cut off after the configured time for a
//! request's head. A body has the request's own deadline, and a client that doesn't read its answer is cut off by
//! [`Paced`]. So idle connections cost one descriptor each, for a bounded time and in bounded number, while other
//! requests are answered. When all places are taken, a few more connections are accepted in reserve: probes are
//! answered as usual, other requests with 503.

use std::{convert::Infallible, iter, net::SocketAddr, pin::pin, time::Duration};

use axum::{Router, response::Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::slow_client::Paced;
use crate::{
    base::bounds,
    core::{Core, resource_limits::ConnectionPermit},
};

/// How long a reserve connection may take to send the head of its only request: a flood must not occupy it.
const IN_RESERVE: Duration = Duration::from_millis(500);
/// The largest request head, in bytes, and how much of a body is buffered, for anyone who connects.
const HEAD_BYTES: usize = 64 << 10;
/// How long a stopping service still reads requests that were sent before it began to stop. hyper closes a connection of
/// which it has read nothing, and a proxy that has sent a change doesn't send it again.
const LAST_REQUESTS: Duration = Duration::from_millis(100);

/// What a request knows about its connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub peer: SocketAddr,
    /// The address that accepted the connection, as it was bound.
    pub listener: Option<SocketAddr>,
    /// Its reservation in the resource limits.
    pub place: ConnectionPermit,
}

/// Serves connections until `stopping`, then those that the kernel has accepted, and returns when the last one is done.
pub async fn serve(listener: TcpListener, router: Router, core: &Core, stopping: CancellationToken) {
    let (limits, bound) = (&core.config.limits, listener.local_addr().ok());
    let http = http(limits.header_timeout());
    let mut reserve = self::http(limits.header_timeout().min(IN_RESERVE));
    reserve.keep_alive(false);
    let connections = TaskTracker::new();
    let service = TowerToHyperService::new(router);
    let start = |place: ConnectionPermit, stream: TcpStream, peer: SocketAddr| {
        let http = if place.reserved { &reserve } else { &http };
        let service = service.clone();
        let connection = Connection { peer, listener: bound, place };
        let answer = service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(connection.clone());
            let answered = hyper::service::Service::call(&service, request);
            async move { Ok::<Response, Infallible>(answered.await.unwrap_or_else(|never| match never {})) }
        });
        let stream = TokioIo::new(Paced::new(stream, limits.write_timeout()));
        let connection = http.serve_connection(stream, answer).with_upgrades();
        let stopping = stopping.clone();
        connections.spawn(async move {
            let mut connection = pin!(connection);
            // A client that went away or was cut off isn't worth logging.
            if stopping.run_until_cancelled(connection.as_mut()).await.is_none()
                && timeout(LAST_REQUESTS, connection.as_mut()).await.is_err()
            {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        });
    };
    loop {
        let next = async {
            let accepted = accept(&listener).await;
            Some((ConnectionPermit::acquire(&core.resource_limits).await?, accepted))
        };
        let Some(Some((place, (stream, peer)))) = stopping.run_until_cancelled(next).await else { break };
        start(place, stream, peer);
    }
    for (stream, peer) in queued(listener) {
        let place = timeout(LAST_REQUESTS, ConnectionPermit::acquire(&core.resource_limits)).await;
        let Ok(Some(place)) = place else { break };
        start(place, stream, peer);
    }
    connections.close();
    connections.wait().await;
}

fn http(header_timeout: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(header_timeout).max_buf_size(HEAD_BYTES);
    http
}

/// The connections that the kernel has accepted. They would break with the listener, which is closed after the last.
/// There are at most as many as its queue holds: clients that keep connecting must not keep the service from stopping.
fn queued(listener: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    let listener = listener.into_std().ok();
    let next = move || {
        // It doesn't block, because tokio's doesn't.
        let (stream, peer) = listener.as_ref()?.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        let stream = TcpStream::from_std(stream).ok()?;
        let _ = stream.set_nodelay(true);
        Some((stream, peer))
    };
    iter::from_fn(next).take(bounds::QUEUE)
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Responses are written in full, so Nagle's algorithm would only delay them.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) => {
                tracing::warn!(%error, "serve.not_accepted");
                // Most likely for want of descriptors.
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
