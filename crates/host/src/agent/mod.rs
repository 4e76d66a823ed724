//! One task per agent. Only this task changes the agent's record, step by step: an input arrives (a command, a line, an
//! answer of the control plane, a call of Muster's MCP server, a timer), the record changes, the step is committed to
//! the journal, and only then its effects become visible.
//!
//! - `record.rs`: the stored state.
//! - `commands.rs`: commands, and their answers from the control plane.
//! - `shim_io.rs`: input from the shim.
//! - `shutdown.rs`: stopping, and the agent's end.
//! - `backups.rs`: backups of its home.
//! - `launch.rs`: folders, environment, the shim's program. `home.rs`: files in the agent's home.
//! - `calls.rs`: calls and the gate. `timers.rs`: timers. `changes.rs`: results of a step.
//! - `shim.rs`: the shim's socket. `deltas.rs`: live text. `logs.rs`: the agent's log.

mod backups;
mod calls;
mod changes;
mod commands;
mod deltas;
pub mod home;
mod launch;
mod logs;
mod record;
mod shim;
mod shim_io;
mod shutdown;
mod timers;

use std::{collections::VecDeque, path::PathBuf, sync::Arc};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use muster_protocol::{
    HostEvent,
    command::CommandEnvelope,
    plan::{Decision, LaunchPlan, PlanRequest, PlanResponse},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::{
    backups::{ChoreOutcome, Chores},
    calls::Calls,
    changes::Changes,
    commands::PendingCommands,
    deltas::Deltas,
    logs::Stderr,
    shim_io::Batch,
    shutdown::Stopping,
    timers::Timers,
};
pub use self::{
    record::{Phase, Record},
    shim::Connection,
};
use crate::{
    journal::Closed,
    mcp::Call,
    shared::{Ask, Shared},
};

/// A message to an agent's task.
#[derive(Debug)]
pub enum Message {
    Command(CommandEnvelope),
    /// The control plane does not want this launch here.
    NotWanted(i64),
    /// The control plane expects this launch here.
    Wanted(i64),
}

/// A decision and its author.
pub type AuthoredDecision = (Decision, Option<String>);

/// An event and its launch.
type LaunchEvent = (i64, HostEvent);

/// Why the control plane was asked.
#[derive(Debug)]
enum AskReason {
    Launch,
    /// To open a session.
    Plan,
    Turn(CommandEnvelope, i64),
    Answer(CommandEnvelope, i64),
    Sync(CommandEnvelope),
}

#[derive(Default)]
struct Plan {
    present: Option<LaunchPlan>,
    is_asked: bool,
}

pub struct Agent {
    shared: Arc<Shared>,
    id: i64,
    record: Record,
    inbox: mpsc::UnboundedReceiver<Message>,
    /// Received during a launch, handled before the inbox.
    deferred: VecDeque<Message>,
    commands: PendingCommands,
    plan: Plan,
    asked: FuturesUnordered<BoxFuture<'static, (i64, AskReason, Option<PlanResponse>)>>,
    chores: Chores,
    shim: Option<Connection>,
    calls: Calls,
    deltas: Deltas,
    stderr: Stderr,
    stopping: Option<Stopping>,
    leaving: JoinSet<()>,
    timers: Timers,
    changes: Changes,
}

enum Input {
    Message(Option<Message>),
    Answer(i64, AskReason, Option<PlanResponse>),
    ChoreDone(ChoreOutcome),
    Call(Call),
    Report(i64, HostEvent),
    Lines(Batch),
    Time,
}

impl Agent {
    /// An agent from the journal.
    pub fn new(shared: Arc<Shared>, record: Record, inbox: mpsc::UnboundedReceiver<Message>) -> Self {
        let deltas = Deltas::new(record.agent_id, shared.deltas.clone());
        Self {
            id: record.agent_id,
            shared,
            record,
            inbox,
            deferred: VecDeque::new(),
            commands: PendingCommands::default(),
            plan: Plan::default(),
            asked: FuturesUnordered::new(),
            chores: Chores::default(),
            shim: None,
            calls: Calls::default(),
            deltas,
            stderr: Stderr::default(),
            stopping: None,
            leaving: JoinSet::new(),
            timers: Timers::default(),
            changes: Changes::default(),
        }
    }

    /// Runs until the journal closes, or no sender is left.
    pub async fn run(mut self) {
        let id = self.id;
        if let Err(Closed) = Box::pin(self.work()).await {
            tracing::debug!(agent = id, "the journal is closed");
        }
    }

    async fn work(&mut self) -> Result<(), Closed> {
        if self.record.phase != Phase::Ended {
            self.shared.set_running(self.id, Some(self.record.generation));
            // The previous host may have been killed during the removal.
            self.drop_old_homes();
            self.adopt_shim().await?;
        }
        loop {
            let next = self.next_due();
            let arrived = if let Some(message) = self.deferred.pop_front() {
                Input::Message(Some(message))
            } else {
                tokio::select! {
                    message = self.inbox.recv() => Input::Message(message),
                    Some((generation, why, given)) = self.asked.next() => Input::Answer(generation, why, given),
                    Some(outcome) = self.chores.running.next() => Input::ChoreDone(outcome),
                    Some(call) = self.calls.from.recv() => Input::Call(call),
                    Some((generation, event)) = self.calls.reports.recv() => Input::Report(generation, event),
                    batch = shim_io::batch(&mut self.shim, &self.shared.journal) => Input::Lines(batch?),
                    () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => Input::Time,
                }
            };
            match arrived {
                Input::Message(None) => return Ok(()),
                Input::Message(Some(Message::Command(envelope))) => self.handle_command(envelope).await?,
                Input::Message(Some(Message::NotWanted(generation))) => {
                    if generation == self.record.generation {
                        self.stop();
                    }
                }
                Input::Message(Some(Message::Wanted(generation))) => self.report_unknown_launch(generation),
                Input::Answer(generation, why, given) => {
                    Box::pin(self.handle_answer(generation, why, given)).await?;
                }
                Input::ChoreDone(outcome) => Box::pin(self.finish_chore(outcome)).await?,
                Input::Call(call) => self.handle_call(call).await?,
                Input::Report(generation, event) => self.report_all(generation, event),
                Input::Lines(batch) => self.handle_batch(batch).await?,
                Input::Time => self.run_due().await?,
            }
            self.track_idle();
            self.flush().await?;
        }
    }

    /// Asks the control plane. The answer arrives as [`Input::Answer`].
    fn ask_control_plane(&mut self, wanted: PlanRequest, why: AskReason) {
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
    fn launch_dir(&self) -> PathBuf {
        self.shared.folder.launch(self.id, self.record.generation)
    }
}
