//! The socket of one launch, its connections, and the routing of its requests.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Method, Request, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use muster_protocol::HostEvent;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    answers::{Answer, refusal},
    bounds,
    call_counts::CallKind,
    client,
    credential_uses::CredentialUses,
    forward,
    host_services::HostServices,
    mcp,
    memory::MemoryBudget,
    model,
    model::LeasePool,
    reach::Reach,
    refusals::Refusals,
    rules::{Crossings, Rules, STOPPED},
    secrets::Secrets,
    shared::{MAX_HEARD_OUT, Shared},
    tunnel,
};

/// Connections of an agent at a time: it could open any number. Further ones wait.
const MAX_CONNECTIONS: usize = 1024;
const NOT_FOR_SERVERS: &str = "MCP servers may use neither the agent's model nor its credentials.";

/// The sender of a socket's requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Agent,
    /// MCP servers next to the agent.
    Server,
}

/// The gate of one launch. It closes on drop.
pub struct Gate {
    rules: watch::Sender<Option<Arc<Rules>>>,
    shared: Arc<Shared>,
}

impl Gate {
    /// Serves a socket. Requests wait for the first rules.
    pub fn serve(listener: UnixListener, reach: Arc<Reach>, services: Arc<dyn HostServices>) -> Self {
        let (sender, rules) = watch::channel(None);
        let closing = CancellationToken::new();
        let leases = Arc::new(LeasePool::new(Arc::clone(&services)));
        let memory = MemoryBudget::new(Arc::clone(&reach.memory));
        let shared = Arc::new(Shared {
            rules,
            client: client::client(Arc::clone(&reach)),
            reach,
            leases,
            refusals: Refusals::new(Arc::clone(&services)),
            uses: CredentialUses::new(Arc::clone(&services)),
            crossings: Crossings::default(),
            secrets: Secrets::default(),
            states: Arc::new(mcp::ServerStates::new(Arc::clone(&services))),
            programs: mcp::StartLimit::default(),
            refusal_reports: model::RefusalReports::default(),
            memory,
            heard_out: Arc::new(Semaphore::new(MAX_HEARD_OUT)),
            services,
            closing: closing.clone(),
            tasks: TaskTracker::new(),
        });
        shared
            .tasks
            .spawn(closing.clone().run_until_cancelled_owned(run_periodic_tasks(Arc::clone(&shared))));
        shared.tasks.spawn(closing.clone().run_until_cancelled_owned(listen(
            listener,
            Arc::clone(&shared),
            Side::Agent,
        )));
        Self { rules: sender, shared }
    }

    /// Serves the socket of MCP servers. They are third-party programs, so the agent's model and credentials are out of
    /// reach.
    pub fn serve_servers(&self, listener: UnixListener) {
        let listening = listen(listener, Arc::clone(&self.shared), Side::Server);
        self.shared.tasks.spawn(self.shared.closing.clone().run_until_cancelled_owned(listening));
    }

    /// Serves an MCP server to its clients in one conversation, while this future is polled and the gate is open.
    pub fn serve_mcp(
        &self,
        listener: UnixListener,
        key: mcp::SessionKey,
    ) -> impl Future<Output = ()> + Send + use<> {
        mcp::serve(Arc::clone(&self.shared), key, listener)
    }

    /// Tests the connection to an MCP server, and reports the result.
    pub fn test_mcp(&self, server_id: i64) {
        let shared = Arc::clone(&self.shared);
        let testing = async move {
            let tested = mcp::test_connection(Arc::clone(&shared), server_id).await;
            shared.services.report(HostEvent::McpTested(tested));
        };
        self.shared.tasks.spawn(self.shared.closing.clone().run_until_cancelled_owned(testing));
    }

    /// Replaces the rules. Tunnels to newly forbidden hosts end; a stop ends all connections.
    pub fn set_rules(&self, rules: Rules) {
        self.shared.secrets.add(&rules.secrets);
        self.rules.send_replace(Some(Arc::new(rules)));
    }

    /// Forgets the last refusal of a lease: a new turn begins, perhaps with a larger budget.
    pub fn forget_refusal(&self) {
        self.shared.leases.forget_refusal();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.closing.cancel();
        self.shared.leases.close();
    }
}

/// Periodically returns unused leases, and sends delayed reports.
async fn run_periodic_tasks(shared: Arc<Shared>) {
    // Twice per `RETRY`, the delay of reports: at the same rate, most would wait twice as long.
    let mut ticks = interval(bounds::RETRY / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.leases.give_back();
        shared.refusals.flush();
        shared.states.flush();
    }
}

async fn listen(listener: UnixListener, shared: Arc<Shared>, side: Side) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(held) = Arc::clone(&slots).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = connection(stream, Arc::clone(&shared), side, Arc::new(held));
                shared.tasks.spawn(shared.closing.clone().run_until_cancelled_owned(serving));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of an agent can't be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: UnixStream, shared: Arc<Shared>, side: Side, held: Arc<OwnedSemaphorePermit>) {
    let service = service_fn(|request| {
        let (shared, held) = (Arc::clone(&shared), Arc::clone(&held));
        async move { Ok::<_, Infallible>(answer(shared, request, side, held).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30)).max_buf_size(bounds::TEXT);
    // A connection opened during a stop only gets refusals; the next stop ends it.
    let mut rules = shared.rules.clone();
    let is_stopped = |rules: &Option<Arc<Rules>>| rules.as_ref().is_some_and(|rules| rules.stopped);
    let stop = async {
        let _ = rules.wait_for(|rules| !is_stopped(rules)).await;
        let _ = rules.wait_for(is_stopped).await;
    };
    tokio::select! {
        served = builder.serve_connection(TokioIo::new(stream), service).with_upgrades() => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection of an agent has ended");
            }
        }
        () = stop => {}
    }
}

/// Answers one request, and counts it. A tunnel keeps its connection's permit.
async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    side: Side,
    held: Arc<OwnedSemaphorePermit>,
) -> Answer {
    let (reach, kind) = (Arc::clone(&shared.reach), CallKind::of(&request));
    let answered = route(shared, request, side, held).await;
    if let Some(kind) = kind {
        reach.calls.count(kind, answered.status());
    }
    answered
}

async fn route(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    side: Side,
    held: Arc<OwnedSemaphorePermit>,
) -> Answer {
    let Some(rules) = shared.rules().await else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, mcp::AWAY);
    };
    if rules.stopped {
        return refusal(StatusCode::FORBIDDEN, STOPPED);
    }
    if request.method() == Method::CONNECT {
        return tunnel::open(&shared, request, held).await;
    }
    if request.uri().authority().is_some() {
        return forward::plain(&shared, request).await;
    }
    let path = request.uri().path().to_owned();
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
        _ if side == Side::Server => refusal(StatusCode::NOT_FOUND, NOT_FOR_SERVERS),
        ("model", rest) => model::answer(&shared, &rules, rest, request).await,
        ("c", rest) => forward::credential(&shared, &rules, rest, request).await,
        _ => refusal(StatusCode::NOT_FOUND, "There is nothing at this address."),
    }
}
