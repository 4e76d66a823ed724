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
//! - `shim.rs`: the shim's socket. `deltas.rs`: text for whoever watches.

mod calls;
mod deltas;
mod ends;
pub mod home;
mod keeping;
mod launch;
mod lines;
mod orders;
mod record;
mod shim;

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use muster_egress::Gate;
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
    deltas::Deltas,
    ends::Stopping,
    keeping::{Chore, Kept},
    lines::Batch,
    shim::Sending,
};
pub use self::{
    launch::{may_be_set, passed},
    record::{Phase, Record},
    shim::Connection,
};
use crate::{
    acp::Effects,
    clock,
    grants::{self, Granted},
    journal::{Change, Closed, Draft},
    mcp::{Call, McpSockets},
    shared::{Ask, Shared},
};

/// How many times the grace an agent may take to end a turn that was cancelled.
const PATIENCE_WITH_TURNS: u32 = 10;

/// How many sessions of an agent may have nothing to do at the same time. Each has a process of Muster's MCP server.
const MOST_IDLE: usize = 16;

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

/// An agent's task.
pub struct Agent {
    shared: Arc<Shared>,
    id: i64,
    record: Record,
    inbox: mpsc::UnboundedReceiver<Message>,
    /// What arrived during a launch, and comes before the inbox.
    heard: VecDeque<Message>,
    /// Turns that wait until the agent runs and isn't paused.
    held: VecDeque<(Order, i64)>,
    /// A launch that waits until the one before has ended, or its home is restored.
    next_launch: Option<Order>,
    /// Commands that are carried out when the agent has ended.
    stops: Vec<i64>,
    /// Turns whose plan is awaited, and whether they were cancelled meanwhile.
    planned: BTreeMap<i64, bool>,
    plan: Option<LaunchPlan>,
    /// A SYNC that could not be carried out, and when it is tried again.
    sync_again: Option<(Order, Instant)>,
    is_plan_asked: bool,
    asked: FuturesUnordered<BoxFuture<'static, (i64, Why, Option<Given>)>>,
    /// What waits to be done with its home.
    to_keep: VecDeque<Chore>,
    /// The one that is carried out.
    keeping: FuturesUnordered<BoxFuture<'static, Kept>>,
    is_restoring: bool,
    shim: Option<Connection>,
    sending: Sending,
    calls: (mpsc::Sender<Call>, mpsc::Receiver<Call>),
    waiting: BTreeMap<String, oneshot::Sender<Decided>>,
    sockets: McpSockets,
    gate: Option<Gate>,
    /// What has happened at gates, and in which launch.
    reports: (mpsc::UnboundedSender<Report>, mpsc::UnboundedReceiver<Report>),
    /// Crossings that people decide about, by the request's key.
    judged: BTreeMap<String, grants::Asked>,
    granted: Granted,
    deltas: Deltas,
    stopping: Option<Stopping>,
    leaving: JoinSet<()>,
    start_by: Option<Instant>,
    settle_at: Option<Instant>,
    /// Until when the agent may end turns that were cancelled.
    give_up: BTreeMap<i64, Instant>,
    /// When turns that run have begun, by the control plane's clock. Those from before a restart of the host are not here.
    begun: BTreeMap<i64, i64>,
    /// Since when the sessions of these conversations have had nothing to do.
    idle: BTreeMap<i64, Instant>,
    effects: Effects,
    /// Events about other launches.
    others: Vec<Report>,
    done: Vec<i64>,
    /// Lines that were read since the last commit.
    uncommitted: usize,
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
            held: VecDeque::new(),
            next_launch: None,
            stops: Vec::new(),
            planned: BTreeMap::new(),
            plan: None,
            sync_again: None,
            is_plan_asked: false,
            asked: FuturesUnordered::new(),
            to_keep: VecDeque::new(),
            keeping: FuturesUnordered::new(),
            is_restoring: false,
            shim: None,
            sending: Sending::default(),
            calls: mpsc::channel(16),
            waiting: BTreeMap::new(),
            sockets: McpSockets::default(),
            gate: None,
            reports: mpsc::unbounded_channel(),
            judged: BTreeMap::new(),
            granted: Granted::default(),
            deltas,
            stopping: None,
            leaving: JoinSet::new(),
            start_by: None,
            settle_at: None,
            give_up: BTreeMap::new(),
            begun: BTreeMap::new(),
            idle: BTreeMap::new(),
            effects: Effects::default(),
            others: Vec::new(),
            done: Vec::new(),
            uncommitted: 0,
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
                    Some(kept) = self.keeping.next() => Arrived::Kept(kept),
                    Some(call) = self.calls.1.recv() => Arrived::Call(call),
                    Some((generation, happening)) = self.reports.1.recv() => Arrived::Report(generation, happening),
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

    /// Commits the step, if there is anything to commit, and makes it visible.
    async fn flush(&mut self) -> Result<(), Closed> {
        let has_lines = self.record.machine.lines(self.sending.sent).next().is_some();
        let is_due = self.uncommitted >= lines::MOST_UNCOMMITTED;
        if !self.effects.events.is_empty()
            || !self.others.is_empty()
            || !self.done.is_empty()
            || has_lines
            || is_due
        {
            self.commit().await?;
        }
        for piece in std::mem::take(&mut self.effects.pieces) {
            self.deltas.push(self.record.generation, &piece);
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), Closed> {
        self.note_begun();
        let (agent_id, generation, at) = (self.id, self.record.generation, clock::now());
        let own = std::mem::take(&mut self.effects.events).into_iter().map(|what| (generation, what));
        let all = own.chain(std::mem::take(&mut self.others));
        let events = all.map(|(generation, what)| Draft { agent_id, generation, at, what }).collect();
        let change = Change {
            record: Some((self.id, self.record.to_bytes())),
            events,
            done: std::mem::take(&mut self.done),
        };
        self.shared.journal.commit(change).await?;
        self.uncommitted = 0;
        self.trim();
        self.write_lines();
        Ok(())
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

    /// Turns that were cancelled end soon, by the agent or without it.
    fn await_cancelled(&mut self) {
        let until = Instant::now() + self.shared.options.grace * PATIENCE_WITH_TURNS;
        let cancelled: Vec<i64> = self.record.machine.cancelled().collect();
        self.give_up.retain(|turn, _| cancelled.contains(turn));
        for turn in cancelled {
            self.give_up.entry(turn).or_insert(until);
        }
    }

    /// Notes which sessions have nothing to do.
    fn note_idle(&mut self) {
        let is_up = self.record.phase == Phase::Running && self.stopping.is_none();
        if !is_up || !self.record.machine.may_rest() {
            return self.idle.clear();
        }
        let now = Instant::now();
        let since: BTreeMap<i64, Instant> = self.record.machine.idle().map(|id| (id, now)).collect();
        self.idle.retain(|id, _| since.contains_key(id));
        for (id, now) in since {
            self.idle.entry(id).or_insert(now);
        }
    }

    /// When the session that has been unused for the longest time is closed: after a while, or at once if there are many.
    fn rest_at(&self) -> Option<(Instant, i64)> {
        let (since, id) = self.idle.iter().map(|(id, since)| (*since, *id)).min()?;
        let is_full = self.idle.len() > MOST_IDLE;
        Some((if is_full { since } else { since + self.shared.options.idle }, id))
    }

    /// The folder of the launch.
    fn dir(&self) -> PathBuf {
        self.shared.folder.launch(self.id, self.record.generation)
    }

    fn next_time(&self) -> Option<Instant> {
        let stopping = self.stopping.as_ref().map(|stopping| stopping.until);
        let give_up = self.give_up.values().min().copied();
        let rest = self.rest_at().map(|(at, _)| at);
        let sync = self.sync_again.as_ref().map(|(_, at)| *at);
        let times = [self.deltas.due(), self.start_by, self.settle_at, give_up, stopping, rest, sync];
        times.into_iter().flatten().min()
    }

    async fn time(&mut self) -> Result<(), Closed> {
        let now = Instant::now();
        self.deltas.flush_due(now);
        if self.settle_at.is_some_and(|at| at <= now) {
            self.settle_at = None;
            self.record.machine.settle(&mut self.effects);
        }
        let over: Vec<i64> =
            self.give_up.iter().filter(|(_, at)| **at <= now).map(|(turn, _)| *turn).collect();
        for turn_id in over {
            self.give_up.remove(&turn_id);
            self.record.machine.give_up(turn_id, &mut self.effects);
        }
        while let Some((_, id)) = self.rest_at().filter(|(at, _)| *at <= now) {
            self.idle.remove(&id);
            self.record.machine.rest(id);
            self.sockets.end(id);
        }
        if let Some((order, _)) = self.sync_again.take_if(|(_, at)| *at <= now) {
            self.ask(Wanted::Launch, Why::Sync(order));
        }
        if self.start_by.is_some_and(|at| at <= now) {
            self.not_greeted("It did not answer the handshake of the Agent Client Protocol in time.");
        }
        if self.stopping.as_ref().is_some_and(|stopping| stopping.until <= now) {
            self.stop_harder().await?;
        }
        Ok(())
    }
}
