//! Connections: how many there may be, and how long one may take to say what it wants and to take what it is given.
//!
//! Whoever connects and says nothing, or says it a byte at a time, is cut off after the settings' time for a request's head; a
//! body has the request's own deadline; whoever does not take its answer is cut off by [`Paced`]. So connections that are only
//! held cost a descriptor each, for a bounded time, and a bounded number of them; requests of others are answered meanwhile.
//! Where all places are taken, a few connections more are answered: probes as ever, everybody else that they come back.

use std::{convert::Infallible, net::SocketAddr, pin::pin, time::Duration};

use axum::{Router, response::Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::pace::Paced;
use crate::core::Core;
use crate::core::ledger::Place;

/// How long nothing is accepted after accepting has failed: for want of descriptors, most likely.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// How long a connection of the reserve may take for its one request's head.
const IN_RESERVE: Duration = Duration::from_millis(500);
/// How large a request's head may be, and how much of a body is buffered.
const HEAD_BYTES: usize = 64 << 10;

/// What a request knows of its connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Who is at its other end.
    pub peer: SocketAddr,
    /// Its place in the ledger.
    pub place: Place,
}

/// Answers connections until `stopping`; then takes none any more and returns when the last one is done.
pub async fn serve(listener: TcpListener, router: Router, core: &Core, stopping: CancellationToken) {
    let limits = &core.config.limits;
    let http = http(limits.header_timeout());
    let mut reserve = self::http(limits.header_timeout().min(IN_RESERVE));
    reserve.keep_alive(false);
    let connections = TaskTracker::new();
    let service = TowerToHyperService::new(router);
    loop {
        let next = async {
            let accepted = accept(&listener).await;
            Some((Place::next(&core.ledger).await?, accepted))
        };
        let Some(Some((place, (stream, peer)))) = stopping.run_until_cancelled(next).await else { break };
        let http = if place.reserved { &reserve } else { &http };
        let service = service.clone();
        let connection = Connection { peer, place };
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
            // A client that went away, or was cut off, is nothing to tell.
            if stopping.run_until_cancelled(connection.as_mut()).await.is_none() {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

fn http(header_timeout: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(header_timeout).max_buf_size(HEAD_BYTES);
    http
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are written whole; waiting for more only delays them.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) => {
                tracing::warn!(%error, "serve.not_accepted");
                sleep(AFTER_FAILURE).await;
            }
        }
    }
}
