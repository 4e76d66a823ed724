//! Runs a host: reads the journal, adopts the agents in it, connects, and routes the control plane's requests.

use std::{collections::BTreeMap, fs::File, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use muster_certificates::FileError;
use muster_egress::Reach;
use muster_protocol::frame::Running;
use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep},
};
use url::Url;

use crate::{
    address::{self, AddressError},
    agent::{Agent, Message, Phase, Record},
    bounds::{BATCH, LOOK},
    config::{Config, ConfigError},
    folder::{Folder, FolderError, JoinedState},
    gateway::{AgentRequest, Gateway},
    journal::{Journal, StoreError},
    logs::Logs,
    metrics::{self, Counts},
    programs::{ProgramArgs, ProgramError, Programs},
    runtime::{Bounds, Choice, ChoiceError, Runtime, SavedRuntime},
    shared::{Options, Shared},
    trust::Trust,
    unit::ROOT_REMEDY,
};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(
        "{0} has not joined a control plane. Create a server, and run `muster host join --url URL --token-stdin --dir DIR` with its provisioning token."
    )]
    NotJoined(PathBuf),
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The file of `--ca-file`, or its copy in the folder.
    #[error(transparent)]
    Certificates(#[from] FileError),
    /// The owner's `host.toml`.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder uses another runtime, or a variable names an engine elsewhere.
    #[error(transparent)]
    Runtime(#[from] ChoiceError),
    /// The engine lacks the network for agents.
    #[error(
        "{engine} has no network {network:?}. Make it (`docker network create {network}`, or `podman …`), or give another \
         name with `--container-network`."
    )]
    NoNetwork { engine: &'static str, network: String },
    #[error(transparent)]
    Programs(#[from] ProgramError),
    #[error(transparent)]
    Journal(#[from] StoreError),
    #[error("The metrics can't be shown at {address}: {source}. Choose another address with --metrics.")]
    Metrics { address: SocketAddr, source: std::io::Error },
    /// Signals can't be handled.
    #[error("This host can't wait for signals: {0}.")]
    Signals(std::io::Error),
    /// An internal task has ended unexpectedly.
    #[error("A part of this host has failed. See the log; starting it again is safe.")]
    Failed,
}

/// The control plane's current address, if it has moved, and who vouches for it.
#[derive(Debug, Default, Args)]
pub struct AddressArgs {
    /// The control plane's new address, if it has moved. The folder keeps it.
    #[arg(long)]
    pub url: Option<String>,
    /// Allow plain HTTP to another machine over a private network. The folder keeps it.
    #[arg(long, requires = "url")]
    pub insecure_http: bool,
    /// Certificates (PEM) of authorities that vouch for the control plane, beside the system's. The folder keeps them.
    #[arg(long, value_name = "FILE", env = "MUSTER_HOST_CA_FILE")]
    pub ca_file: Option<PathBuf>,
}

/// Runs until SIGTERM, SIGINT, or the end of stdin. Agents stay up: their shims live on.
pub async fn run(
    folder: Folder,
    place: AddressArgs,
    programs: ProgramArgs,
    choice: Choice,
    bounds: Bounds,
    options: Options,
    while_stdin: bool,
) -> Result<(), RunError> {
    folder.require_own()?;
    let (Some(joined), Some(identity)) = (folder.joined()?, folder.identity()?) else {
        return Err(RunError::NotJoined(folder.root().to_owned()));
    };
    if while_stdin {
        // Detached from the starter's terminal: Ctrl-C is for the starter, which ends the host itself.
        let _ = rustix::process::setsid();
    }
    let _lock = if while_stdin { lock_with_retry(&folder).await? } else { folder.lock()? };
    let kept = choice.in_folder(&folder, joined.runtime.as_ref())?;
    let programs = Programs::find(programs)?;
    let runtime = kept.build(&identity.machine_id, bounds)?;
    if let Runtime::Engine(engine) = &runtime
        && let Some(network) = engine.missing_network().await
    {
        let (engine, network) = (engine.kind().name(), network.to_owned());
        return Err(RunError::NoNetwork { engine, network });
    }
    let base = resolve_address(&folder, &joined, &place, kept, options.sandbox)?;
    let trust = Trust::read(&folder, place.ca_file.as_deref())?;
    trust.keep(&folder)?;
    let networks = [Config::read(&folder)?.allow_net, options.allow_net.clone()].concat();
    let metrics = listen(options.metrics).await?;
    let (journal, contents) = Journal::open(&folder.journal())?;
    let (asks, asked) = mpsc::channel(1024);
    let (deltas, written) = mpsc::channel(BATCH);
    let (to_viewers, log_lines) = mpsc::channel(BATCH);
    let logs = Logs::new(folder.clone(), to_viewers);
    let shared = Arc::new(Shared {
        folder,
        journal,
        programs,
        runtime,
        options,
        reach: Arc::new(Reach::new(networks)),
        asks,
        deltas,
        logs,
        // Reading and compressing must not delay agents.
        backup_slots: Semaphore::new(2),
        running: Mutex::default(),
        counts: Counts::default(),
    });
    let mut agents = Agents {
        shared: Arc::clone(&shared),
        inboxes: BTreeMap::new(),
        resting: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    for (agent_id, bytes) in &contents.agents {
        let record = Record::read(bytes).map_err(StoreError::from)?;
        if record.phase == Phase::Ended {
            agents.resting.insert(*agent_id, record);
        } else {
            shared.set_running(*agent_id, Some(record.generation));
            agents.begin(record);
        }
    }
    for envelope in contents.pending_commands {
        agents.pass_on(AgentRequest::Command(envelope));
    }
    // In parallel: an engine may be slow or unreachable.
    let mut sweeping = JoinSet::new();
    let sweeper = Arc::clone(&shared);
    sweeping.spawn(async move {
        let is_running = |agent_id, generation| sweeper.running().contains(&Running { agent_id, generation });
        sweeper.runtime.sweep(is_running).await;
    });
    let server = &joined.server_name;
    tracing::info!(server, url = %base, agents = agents.inboxes.len(), "the host runs");
    // A program that starts its own host answers for its user.
    if rustix::process::geteuid().is_root() && !while_stdin {
        tracing::warn!("this host runs as root. {ROOT_REMEDY}");
    }
    let (agent_requests, mut wished) = mpsc::unbounded_channel();
    let identity = (identity.token, identity.machine_id);
    let mut tasks = JoinSet::new();
    if let Some(listener) = metrics {
        tasks.spawn(metrics::serve(listener, Arc::clone(&shared)));
    }
    let gateway =
        Gateway::new(shared, &base, trust.tls, identity, (asked, written, log_lines), agent_requests);
    tasks.spawn(gateway.run());
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signals)?;
    let mut parent_gone = end_of_stdin(while_stdin);
    loop {
        tokio::select! {
            Some(wish) = wished.recv() => agents.pass_on(wish),
            Some(ended) = agents.tasks.join_next() => {
                // An agent's task runs as long as the journal.
                tracing::error!(?ended, "an agent's task has ended");
                return Err(RunError::Failed);
            }
            _ = tasks.join_next() => return Err(RunError::Failed),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = &mut parent_gone, if while_stdin => break,
        }
    }
    tracing::info!("the host leaves; its agents stay up");
    Ok(())
}

/// Listens for readers of the metrics, if they are to be shown.
async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, RunError> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).map_err(|source| RunError::Metrics { address, source })
}

/// The address to use. The folder stores it, with the runtime.
fn resolve_address(
    folder: &Folder,
    joined: &JoinedState,
    place: &AddressArgs,
    runtime: SavedRuntime,
    sandbox: bool,
) -> Result<Url, RunError> {
    let insecure_http = joined.insecure_http || place.insecure_http;
    let base = address::read(place.url.as_ref().unwrap_or(&joined.url), insecure_http)?;
    let (runtime, sandbox) = (Some(runtime), Some(sandbox));
    let now = JoinedState { url: base.to_string(), insecure_http, runtime, sandbox, ..joined.clone() };
    if now != *joined {
        folder.keep_joined(&now)?;
    }
    Ok(base)
}

/// Claims the folder. A starter's previous host may be about to end.
async fn lock_with_retry(folder: &Folder) -> Result<File, FolderError> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match folder.lock() {
            Err(FolderError::InUse { .. }) if Instant::now() < until => sleep(LOOK).await,
            claimed => return claimed,
        }
    }
}

/// Detects the starter's end, which closes the pipe. Never resolves if not watched.
fn end_of_stdin(is_watched: bool) -> oneshot::Receiver<()> {
    let (ended, end) = oneshot::channel();
    if is_watched {
        // On a thread: a read can't be cancelled, and nothing may wait for it.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = ended.send(());
        });
    }
    end
}

/// The agents' tasks.
struct Agents {
    shared: Arc<Shared>,
    inboxes: BTreeMap<i64, mpsc::UnboundedSender<Message>>,
    /// Agents that ran here before, but not now.
    resting: BTreeMap<i64, Record>,
    tasks: JoinSet<()>,
}

impl Agents {
    fn begin(&mut self, record: Record) -> &mpsc::UnboundedSender<Message> {
        let (inbox, messages) = mpsc::unbounded_channel();
        let id = record.agent_id;
        self.tasks.spawn(Agent::new(Arc::clone(&self.shared), record, messages).run());
        self.inboxes.entry(id).or_insert(inbox)
    }

    fn pass_on(&mut self, wish: AgentRequest) {
        match wish {
            // The journal has the command; a finished task ends the host, which reads it again.
            AgentRequest::Command(envelope) => self.send_to(envelope.agent_id, Message::Command(envelope)),
            AgentRequest::Wanted(wanted) => {
                let running = self.shared.running();
                for here in running.iter().filter(|here| !wanted.contains(here)) {
                    let Running { agent_id, generation } = *here;
                    tracing::info!(
                        agent = agent_id,
                        generation,
                        "the control plane doesn't want this agent here"
                    );
                    self.send_to(agent_id, Message::NotWanted(generation));
                }
                for there in wanted.iter().filter(|there| !running.contains(there)) {
                    self.send_to(there.agent_id, Message::Wanted(there.generation));
                }
            }
        }
    }

    fn send_to(&mut self, id: i64, message: Message) {
        let _ = match self.inboxes.get(&id) {
            Some(inbox) => inbox.send(message),
            None => {
                let record = self.resting.remove(&id).unwrap_or_else(|| Record::new(id));
                self.begin(record).send(message)
            }
        };
    }
}
