//! Running a host: reads the journal, takes up the agents that it finds, connects, and passes on what the control plane
//! wants.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use muster_protocol::frame::Running;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task::JoinSet,
};

use crate::{
    address::{self, AddressError},
    agent::{Agent, Message, Phase, Record},
    folder::{Folder, FolderError},
    gateway::{Gateway, Wish},
    journal::{Journal, StoreError},
    programs::{ProgramError, Programs},
    shared::{Options, Shared},
};

/// How many questions of agents may wait for the connection.
const ASKS: usize = 1024;
/// How many pieces of text may wait.
const DELTAS: usize = 256;

/// Why a host can't run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It has not joined.
    #[error(
        "{0} has not joined a control plane. Create a server, and run `muster host join --url URL --token-stdin --dir DIR` with its provisioning token."
    )]
    NotJoined(PathBuf),
    /// The address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The programs.
    #[error(transparent)]
    Programs(#[from] ProgramError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] StoreError),
    /// Signals can't be waited for.
    #[error("This host can't wait for signals: {0}.")]
    Signals(std::io::Error),
    /// An internal part has ended, which it never should.
    #[error("A part of this host has failed. See the log; starting it again is safe.")]
    Failed,
}

/// Runs until SIGTERM or SIGINT. Agents stay up: their shims live on.
/// `url` is where the control plane is now, if it has moved.
pub async fn run(
    folder: Folder,
    url: Option<String>,
    programs: Option<PathBuf>,
    options: Options,
) -> Result<(), RunError> {
    let (Some(joined), Some(identity)) = (folder.joined()?, folder.identity()?) else {
        return Err(RunError::NotJoined(folder.root().to_owned()));
    };
    let _lock = folder.lock()?;
    let base = address::read(url.as_ref().unwrap_or(&joined.url), joined.insecure_http)?;
    let programs = Programs::find(programs)?;
    let (journal, contents) = Journal::open(&folder.journal())?;
    let (asks, asked) = mpsc::channel(ASKS);
    let (deltas, written) = mpsc::channel(DELTAS);
    let shared = Arc::new(Shared::new(folder, journal, programs, options, asks, deltas));
    let mut agents = Agents {
        shared: Arc::clone(&shared),
        inboxes: BTreeMap::new(),
        resting: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    for (agent_id, bytes) in &contents.agents {
        let record: Record = serde_json::from_slice(bytes).map_err(StoreError::from)?;
        if record.phase == Phase::Ended {
            agents.resting.insert(*agent_id, record);
        } else {
            shared.note(*agent_id, Some(record.generation));
            agents.begin(record);
        }
    }
    for order in contents.orders {
        agents.pass_on(Wish::Order(order));
    }
    let server = &joined.server_name;
    tracing::info!(server, url = %base, agents = agents.inboxes.len(), "the host runs");
    let (wishes, mut wished) = mpsc::unbounded_channel();
    let identity = (identity.token, identity.machine_id);
    let gateway = Gateway::new(shared, &base, identity, (asked, written), wishes);
    let mut tasks = JoinSet::new();
    tasks.spawn(gateway.run());
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signals)?;
    loop {
        tokio::select! {
            Some(wish) = wished.recv() => agents.pass_on(wish),
            Some(ended) = agents.tasks.join_next() => {
                // An agent's task runs for as long as the journal does.
                tracing::error!(?ended, "an agent's task has ended");
                return Err(RunError::Failed);
            }
            _ = tasks.join_next() => return Err(RunError::Failed),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    tracing::info!("the host leaves; its agents stay up");
    Ok(())
}

/// The agents' tasks.
struct Agents {
    shared: Arc<Shared>,
    inboxes: BTreeMap<i64, mpsc::UnboundedSender<Message>>,
    /// Agents that ran here before, and don't now.
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

    fn pass_on(&mut self, wish: Wish) {
        match wish {
            // The journal has the command; a task that has ended takes the host down, which reads it again.
            Wish::Order(order) => self.tell(order.agent_id, Message::Order(order)),
            Wish::Wanted(wanted) => {
                let running = self.shared.running();
                for here in running.iter().filter(|here| !wanted.contains(here)) {
                    let Running { agent_id, generation } = *here;
                    tracing::info!(
                        agent = agent_id,
                        generation,
                        "the control plane doesn't want this agent here"
                    );
                    self.tell(agent_id, Message::NotWanted(generation));
                }
                for there in wanted.iter().filter(|there| !running.contains(there)) {
                    self.tell(there.agent_id, Message::Wanted(there.generation));
                }
            }
        }
    }

    fn tell(&mut self, id: i64, message: Message) {
        let _ = match self.inboxes.get(&id) {
            Some(inbox) => inbox.send(message),
            None => {
                let record = self.resting.remove(&id).unwrap_or_else(|| Record::of(id));
                self.begin(record).send(message)
            }
        };
    }
}
