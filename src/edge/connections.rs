//! Connections: how many there may be, and how long one may take to say what it wants.
//!
//! Whoever connects and says nothing, or says it a byte at a time, is cut off after the settings' time for a request's head;
//! a body has the request's own deadline. So connections that are only held cost a descriptor each, for a bounded time, and
//! a bounded number of them; requests of others are answered meanwhile.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, extract::ConnectInfo, response::Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::config::Limits;

/// How long nothing is accepted after accepting has failed: for want of descriptors, most likely.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Answers connections until `stopping`; then takes none any more and returns when the last one is done.
pub async fn serve(listener: TcpListener, router: Router, limits: &Limits, stopping: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout());
    let slots = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    let service = TowerToHyperService::new(router);
    loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
            Some((slot, accept(&listener).await))
        };
        let Some(Some((slot, (stream, peer)))) = stopping.run_until_cancelled(next).await else { break };
        let service = service.clone();
        let answer = service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let answered = hyper::service::Service::call(&service, request);
            async move { Ok::<Response, Infallible>(answered.await.unwrap_or_else(|never| match never {})) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), answer).with_upgrades();
        let stopping = stopping.clone();
        connections.spawn(async move {
            let mut connection = pin!(connection);
            // A client that went away, or was cut off, is nothing to tell.
            if stopping.run_until_cancelled(connection.as_mut()).await.is_none() {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
            drop(slot);
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
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
