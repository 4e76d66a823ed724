//! The host's metrics, in Prometheus's text format, at the address of `--metrics`. Nothing there is secret, and nothing
//! can be changed: agents without a sandbox can read it.

use std::{
    convert::Infallible,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use muster_printing::{
    families,
    metrics::{MEDIA_TYPE, Page},
};
use muster_protocol::event::EndReason;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    bounds::{ANSWER_WAIT, LOOK},
    machine,
    shared::Shared,
};

/// Connections at a time. Any process of the machine could open thousands, and use up the host's files.
const MAX_CONNECTIONS: usize = 16;

families! {
    INFO = "muster_host_info", "gauge", ["version"], "1; the running version.";
    CONNECTED = "muster_host_connected", "gauge", [], "1 if the host is connected to the control plane.";
    DISCONNECTS = "muster_host_disconnects_total", "counter", [], "Connections that have ended.";
    AGENTS = "muster_host_agents", "gauge", [], "Agents that run here.";
    LAUNCHES = "muster_host_launches_total", "counter", [], "Launches of agents.";
    ENDS = "muster_host_ends_total", "counter", ["reason"],
        "Ends of agents: `STOPPED` on command; all others, such as `EXITED` and `SHIM_LOST`, are failures.";
    GATE_CALLS = "muster_host_gate_calls_total", "counter", ["kind", "outcome"],
        "Calls of agents through their gates: to their model, to the address of a credential, to other hosts; `failed` is a status of 400 or more, from either side.";
    SPOOL_BYTES = "muster_host_spool_bytes", "gauge", [],
        "Output of running agents on the disk that the host has not stored yet.";
    JOURNAL_BYTES = "muster_host_journal_bytes", "gauge", [], "Size of the journal's file.";
    EVENTS = "muster_host_journal_events", "gauge", [],
        "Events that the control plane has not stored yet.";
    EVENT_BYTES = "muster_host_journal_event_bytes", "gauge", [], "Their size.";
    EVENT_BYTES_MAX = "muster_host_journal_event_max_bytes", "gauge", [],
        "The size from which agents wait until the control plane has stored some.";
    COMMANDS = "muster_host_journal_commands", "gauge", [], "Commands that the host has not carried out yet.";
    DISK = "muster_host_disk_bytes", "gauge", [], "Size of the disk with the host's folder.";
    DISK_FREE = "muster_host_disk_free_bytes", "gauge", [], "What is free there for the host's user.";
    LOG_LOST = "muster_host_log_lines_lost_total", "counter", [],
        "Lines of the log that were not written, because standard error was full, gone or not read.";
}

const REASONS: [EndReason; 10] = [
    EndReason::Stopped,
    EndReason::Exited,
    EndReason::Killed,
    EndReason::OutOfMemory,
    EndReason::ShimLost,
    EndReason::ImageNotFound,
    EndReason::SpawnFailed,
    EndReason::NoProtocol,
    EndReason::LineTooLong,
    EndReason::DiskFull,
];

/// What is counted while the host runs.
#[derive(Debug, Default)]
pub struct Counts {
    is_connected: AtomicBool,
    disconnects: AtomicU64,
    launches: AtomicU64,
    ends: [AtomicU64; REASONS.len()],
}

impl Counts {
    pub fn connected(&self) {
        self.is_connected.store(true, Ordering::Relaxed);
    }

    /// A connection has ended, if there was one.
    pub fn disconnected(&self) {
        if self.is_connected.swap(false, Ordering::Relaxed) {
            self.disconnects.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn launched(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    pub fn ended(&self, reason: EndReason) {
        if let Some(at) = REASONS.iter().position(|known| *known == reason) {
            self.ends[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Serves the page. Never returns.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "the metrics are shown");
    }
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if open.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let answering = answer(stream, Arc::clone(&shared));
                    open.spawn(async move { timeout(ANSWER_WAIT, answering).await.is_ok() });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the metrics can't be accepted");
                    sleep(LOOK).await;
                }
            },
            Some(_) = open.join_next() => {}
        }
    }
}

/// Answers one request.
async fn answer(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, is_known) = (Arc::clone(&shared), request.uri().path() == "/metrics");
        async move { Ok::<_, Infallible>(respond(shared, is_known).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).keep_alive(false);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection to the metrics has ended");
    }
}

async fn respond(shared: Arc<Shared>, is_known: bool) -> Response<Full<Bytes>> {
    let page = if is_known {
        // Sizes of files come from the disk, which may be slow.
        let read = tokio::task::spawn_blocking(move || page(&shared)).await;
        read.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    } else {
        Err(StatusCode::NOT_FOUND)
    };
    let (status, text) = match page {
        Ok(text) => (StatusCode::OK, text),
        Err(status) => (status, "The metrics are at /metrics.\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// All metrics.
fn page(shared: &Shared) -> String {
    let mut page = Page::new(String::new(), FAMILIES);
    let counts = &shared.counts;
    let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let running = shared.running();
    let position = *shared.journal.position().borrow();
    page.value(INFO, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let is_connected = counts.is_connected.load(Ordering::Relaxed);
    page.value(CONNECTED, &[], f64::from(u8::from(is_connected)));
    page.value(DISCONNECTS, &[], counted(&counts.disconnects));
    page.value(AGENTS, &[], running.len() as f64);
    page.value(LAUNCHES, &[], counted(&counts.launches));
    for (reason, count) in REASONS.iter().zip(&counts.ends) {
        let reason = serde_json::to_value(reason).unwrap_or_default();
        page.value(ENDS, &[("reason", reason.as_str().unwrap_or_default())], counted(count));
    }
    for (kind, outcome, count) in shared.reach.calls.all() {
        page.value(GATE_CALLS, &[("kind", kind), ("outcome", outcome)], count as f64);
    }
    let spools = running.iter().map(|here| shared.folder.launch(here.agent_id, here.generation));
    let spooled: u64 = spools.map(|dir| bytes_in(&dir.join(muster_shim::folder::SPOOL))).sum();
    page.value(SPOOL_BYTES, &[], spooled as f64);
    let journal = fs::metadata(shared.folder.journal()).map_or(0, |found| found.len());
    page.value(JOURNAL_BYTES, &[], journal as f64);
    page.value(EVENTS, &[], (position.events - position.acknowledged) as f64);
    page.value(EVENT_BYTES, &[], position.waiting as f64);
    page.value(EVENT_BYTES_MAX, &[], position.window as f64);
    page.value(COMMANDS, &[], position.pending_commands as f64);
    if let Some((size, free)) = machine::disk(shared.folder.root()) {
        let mib = 1024.0 * 1024.0;
        page.value(DISK, &[], size as f64 * mib);
        page.value(DISK_FREE, &[], free as f64 * mib);
    }
    page.value(LOG_LOST, &[], muster_printing::lost() as f64);
    page.into_text()
}

/// The size of the files in a folder, in bytes. 0 without the folder.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}
