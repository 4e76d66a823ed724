//! CONNECT: a tunnel to an allowed host. Its content stays between the agent and that host.

use std::{
    io::{self, ErrorKind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::timeout,
};

use crate::{
    answers::{Answer, empty, refusal},
    bounds, client_hello, host_access,
    rules::{NETWORK_KIND, Rules},
    shared::Shared,
};

/// Silence in both directions after which a tunnel closes: an agent could keep any number of dead ones open.
const SILENCE: Duration = Duration::from_secs(900);

pub async fn open(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    held: Arc<OwnedSemaphorePermit>,
) -> Answer {
    let Some((host, port)) = request.uri().authority().and_then(|to| Some((to.host(), to.port_u16()?)))
    else {
        return refusal(StatusCode::BAD_REQUEST, "CONNECT needs a host and a port.");
    };
    let host = match host_access::require_access(shared, host, port).await {
        Ok(host) => host,
        Err(answer) => return *answer,
    };
    let there = match shared.reach.connect(&host, port).await {
        Ok(there) => there,
        Err(error) => {
            let reason = format!("{error}.");
            let status = match error {
                crate::ReachError::NotPublic { .. } => StatusCode::FORBIDDEN,
                _ => StatusCode::BAD_GATEWAY,
            };
            if status == StatusCode::FORBIDDEN {
                shared.refusals.count(&host, port, &reason);
            }
            return refusal(status, &reason);
        }
    };
    let (through, closing) = (Arc::clone(shared), shared.closing.clone());
    shared.tasks.spawn(closing.run_until_cancelled_owned(async move {
        let _held = held;
        let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
        if let Err(error) = copy_both(&through, TokioIo::new(upgraded), there, &host, port).await {
            if error.kind() == ErrorKind::PermissionDenied {
                let reason = format!("The agent's first bytes to {host} were refused: {error}.");
                through.refusals.count(&host, port, &reason);
            }
            tracing::debug!(host, port, %error, "a tunnel has ended");
        }
    }));
    Response::new(empty())
}

/// Copies until either side ends, the tunnel is silent too long, or its host becomes forbidden.
async fn copy_both(
    shared: &Shared,
    here: impl AsyncRead + AsyncWrite + Unpin,
    there: TcpStream,
    host: &str,
    port: u16,
) -> io::Result<()> {
    let (mut from_here, mut to_here) = tokio::io::split(here);
    let (mut from_there, mut to_there) = there.into_split();
    let idle = IdleTimer::default();
    let out = async {
        let first = timeout(bounds::WAIT, client_hello::read_first_bytes(&mut from_here, host, port)).await;
        let first = first.map_err(|_| io::Error::from(ErrorKind::TimedOut))??;
        to_there.write_all(&first).await?;
        copy(&mut from_here, &mut to_there, &idle).await
    };
    let back = copy(&mut from_there, &mut to_here, &idle);
    let mut rules = shared.rules.clone();
    let forbidden = rules.wait_for(|rules| {
        let is_off = |rules: &Arc<Rules>| rules.stopped || rules.is_disabled(NETWORK_KIND);
        let is_disabled = rules.as_ref().is_some_and(is_off);
        let is_listed = rules.as_ref().is_some_and(|rules| rules.allows(host, port));
        is_disabled || !(is_listed || shared.crossings.has(host, port))
    });
    tokio::select! {
        copied = futures::future::try_join(out, back) => copied.map(drop),
        _ = forbidden => Err(ErrorKind::ConnectionAborted.into()),
    }
}

/// Time of the last byte in either direction.
struct IdleTimer {
    begun: Instant,
    last: AtomicU64,
}

impl Default for IdleTimer {
    fn default() -> Self {
        Self { begun: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl IdleTimer {
    fn restart(&self) {
        self.last.store(self.begun.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    idle: &IdleTimer,
) -> io::Result<()> {
    let mut piece = vec![0; 16 * 1024];
    loop {
        let count = match timeout(SILENCE, from.read(&mut piece)).await {
            Ok(read) => read?,
            Err(_) if idle.elapsed() < SILENCE => continue,
            Err(_) => return Err(ErrorKind::TimedOut.into()),
        };
        if count == 0 {
            return to.shutdown().await;
        }
        idle.restart();
        to.write_all(&piece[..count]).await?;
        to.flush().await?;
    }
}
