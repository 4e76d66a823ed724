//! One task for each agent. It alone changes the agent's record, in steps: something arrives (a command, a line, an answer
//! of the control plane, a call of Muster's MCP server, a time that has come), the record changes, the step is committed
//! to the journal, and only then it becomes visible.
//!
//! - `record.rs`: what is kept of an agent.
//! - `orders.rs`: commands.
//! - `lines.rs`: what the shim says.
//! - `ends.rs`: stopping, and how an agent ended.
//! - `keeping.rs`: backups of its home.
//! - `launch.rs`: folders, environment, the shim's program. `home.rs`: files in the agent's home.
//! - `calls.rs`: its ways out. `times.rs`: what happens by itself. `changes.rs`: what a step has changed.
//! - `shim.rs`: the shim's socket. `deltas.rs`: text for whoever watches.

mod calls;
mod changes;
mod deltas;
mod ends;
pub mod home;
mod keeping;
mod launch;
mod lines;
mod orders;
mod record;
mod shim;
mod times;

use std::{collections::VecDeque, path::PathBuf, sync::Arc};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use muster_protocol::{
    Happening,
    command::Order,
    plan::{Decision, Given, LaunchPlan, Wanted},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::{
    calls::Calls,
    changes::Changes,
    deltas::Deltas,
    ends::Stopping,
    keeping::{Chores, Kept},
    lines::Batch,
    orders::Orders,
    times::Times,
};
pub use self::{
    launch::{may_be_set, passed},
    record::{Phase, Record},
    shim::Connection,
};
use crate::{
    journal::Closed,
    mcp::Call,
    shared::{Ask, Shared},
};

/// Something for an agent's task.
#[derive(Debug)]
pub enum Message {
    /// A command.
    Order(Order),
    /// The control plane doesn't want this launch to run here.
    NotWanted(i64),
    /// The control plane thinks that this launch runs here.
    Wanted(i64),
}

/// A decision, and who made it.
pub type Decided = (Decision, Option<String>);

/// What has happened, and in which launch.
type Report = (i64, Happening);

/// Why the control plane was asked.
#[derive(Debug)]
enum Why {
    Launch,
    /// A session has to be opened.
    Plan,
    Turn(Order, i64),
    Answer(Order, i64),
    Sync(Order),
}

/// The plan of the launch.
#[derive(Default)]
struct Plan {
    present: Option<LaunchPlan>,
    is_asked: bool,
}

/// An agent's task.
pub struct Agent {
    shared: Arc<Shared>,
    id: i64,
    record: Record,
    inbox: mpsc::UnboundedReceiver<Message>,
    /// What arrived during a launch, and comes before the inbox.
    heard: VecDeque<Message>,
    orders: Orders,
    plan: Plan,
    asked: FuturesUnordered<BoxFuture<'static, (i64, Why, Option<Given>)>>,
    chores: Chores,
    shim: Option<Connection>,
    calls: Calls,
    deltas: Deltas,
    stopping: Option<Stopping>,
    leaving: JoinSet<()>,
    times: Times,
    changes: Changes,
}

enum Arrived {
    Message(Option<Message>),
    Told(i64, Why, Option<Given>),
    Kept(Kept),
    Call(Call),
    Report(i64, Happening),
    Lines(Batch),
    Time,
}

impl Agent {
    /// An agent as the journal has it.
    pub fn new(shared: Arc<Shared>, record: Record, inbox: mpsc::UnboundedReceiver<Message>) -> Self {
        let deltas = Deltas::new(record.agent_id, shared.deltas.clone());
        Self {
            id: record.agent_id,
            shared,
            record,
            inbox,
            heard: VecDeque::new(),
            orders: Orders::default(),
            plan: Plan::default(),
            asked: FuturesUnordered::new(),
            chores: Chores::default(),
            shim: None,
            calls: Calls::default(),
            deltas,
            stopping: None,
            leaving: JoinSet::new(),
            times: Times::default(),
            changes: Changes::default(),
        }
    }

    /// Runs until the journal closes or nobody can send commands any more.
    pub async fn run(mut self) {
        let id = self.id;
        if let Err(Closed) = Box::pin(self.work()).await {
            tracing::debug!(agent = id, "the journal is closed");
        }
    }

    async fn work(&mut self) -> Result<(), Closed> {
        if self.record.phase != Phase::Ended {
            self.shared.note(self.id, Some(self.record.generation));
            // The host before may have been killed meanwhile.
            self.drop_old_homes();
            self.adopt().await?;
        }
        loop {
            let next = self.next_time();
            let arrived = if let Some(message) = self.heard.pop_front() {
                Arrived::Message(Some(message))
            } else {
                tokio::select! {
                    message = self.inbox.recv() => Arrived::Message(message),
                    Some((generation, why, given)) = self.asked.next() => Arrived::Told(generation, why, given),
                    Some(kept) = self.chores.running.next() => Arrived::Kept(kept),
                    Some(call) = self.calls.from.recv() => Arrived::Call(call),
                    Some((generation, happening)) = self.calls.reports.recv() => Arrived::Report(generation, happening),
                    batch = lines::batch(&mut self.shim, &self.shared.journal) => Arrived::Lines(batch?),
                    () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => Arrived::Time,
                }
            };
            match arrived {
                Arrived::Message(None) => return Ok(()),
                Arrived::Message(Some(Message::Order(order))) => self.order(order).await?,
                Arrived::Message(Some(Message::NotWanted(generation))) => {
                    if generation == self.record.generation {
                        self.stop();
                    }
                }
                Arrived::Message(Some(Message::Wanted(generation))) => self.wanted(generation),
                Arrived::Told(generation, why, given) => {
                    Box::pin(self.told(generation, why, given)).await?;
                }
                Arrived::Kept(kept) => Box::pin(self.kept(kept)).await?,
                Arrived::Call(call) => self.call(call).await?,
                Arrived::Report(generation, happening) => self.report_all(generation, happening),
                Arrived::Lines(batch) => self.lines(batch).await?,
                Arrived::Time => self.time().await?,
            }
            self.note_idle();
            self.flush().await?;
        }
    }

    /// Asks the control plane. The answer arrives as [`Arrived::Told`].
    fn ask(&mut self, wanted: Wanted, why: Why) {
        let (told, answer) = oneshot::channel();
        let generation = self.record.generation;
        let ask = Ask { agent_id: self.id, generation, wanted, told };
        let asks = self.shared.asks.clone();
        self.asked.push(Box::pin(async move {
            let given = match asks.send(ask).await {
                Ok(()) => answer.await.ok(),
                Err(_) => None,
            };
            (generation, why, given)
        }));
    }

    /// The folder of the launch.
    fn dir(&self) -> PathBuf {
        self.shared.folder.launch(self.id, self.record.generation)
    }
}
