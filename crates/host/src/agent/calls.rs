//! Calls of Muster's own MCP server, and the agent's gate.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use muster_egress::{Gate, Rules};
use muster_protocol::{Happening, event::Content, plan::Decision};
use tokio::sync::{mpsc, oneshot};

use super::{Agent, Decided, Report, Why, ends::Stopping};
use crate::{
    bounds::BATCH,
    clock,
    gate::{self, Outlet},
    grants::{self, Granted},
    journal::Closed,
    mcp::{Call, McpSockets},
};

/// The agent's ways out, and what waits for an answer.
pub(super) struct Calls {
    pub(super) to: mpsc::Sender<Call>,
    pub(super) from: mpsc::Receiver<Call>,
    to_reports: mpsc::UnboundedSender<Report>,
    /// What has happened at gates, and in which launch.
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    pub(super) sockets: McpSockets,
    pub(super) gate: Option<Gate>,
    waiting: BTreeMap<String, oneshot::Sender<Decided>>,
    /// Crossings that people decide about, by the request's key.
    judged: BTreeMap<String, grants::Asked>,
    granted: Granted,
    /// When turns that run have begun, by the control plane's clock. Those from before a restart of the host are not here.
    begun: BTreeMap<i64, i64>,
}

impl Default for Calls {
    fn default() -> Self {
        let ((to, from), (to_reports, reports)) = (mpsc::channel(16), mpsc::unbounded_channel());
        let (sockets, gate, granted) = (McpSockets::default(), None, Granted::default());
        let (waiting, judged, begun) = Default::default();
        Self { to, from, to_reports, reports, sockets, gate, waiting, judged, granted, begun }
    }
}

impl Calls {
    /// Ends what belonged to a launch, but for its gate, which is closed before.
    pub(super) fn forget(&mut self) {
        self.sockets = McpSockets::default();
        self.granted = Granted::default();
        self.waiting.clear();
        self.judged.clear();
    }
}

impl Agent {
    pub(super) async fn call(&mut self, call: Call) -> Result<(), Closed> {
        self.shared.journal.room().await?;
        match call {
            Call::Ask { conversation_id, asked, decided } => {
                if let Some(key) =
                    self.record.machine.ask_own(conversation_id, asked, &mut self.changes.effects)
                {
                    self.calls.waiting.retain(|_, waits| !waits.is_closed());
                    self.calls.waiting.insert(key, decided);
                }
            }
            Call::Judge { conversation_id, asked, crossing, decided } => {
                let running: Vec<i64> = self.record.machine.talking().collect();
                let named = conversation_id.filter(|id| running.contains(id));
                if let Some(talking) = named.or(running.last().copied())
                    && let Some(key) = self.record.machine.ask_own(talking, asked, &mut self.changes.effects)
                {
                    let open = self.record.machine.is_open();
                    self.calls.judged.retain(|key, _| open(key));
                    self.calls.judged.insert(key.clone(), (conversation_id, crossing));
                    self.calls.waiting.retain(|_, waits| !waits.is_closed());
                    self.calls.waiting.insert(key, decided);
                }
            }
            Call::File { conversation_id, content, sent } => {
                self.send_file(conversation_id, content);
                self.commit().await?;
                let _ = sent.send(());
            }
        }
        Ok(())
    }

    /// Takes what has happened at the gate, with all that has come meanwhile: a commit for each would be slower than an agent's calls.
    pub(super) fn report_all(&mut self, generation: i64, happening: Happening) {
        self.reported(generation, happening);
        for _ in 0..BATCH {
            let Ok((generation, happening)) = self.calls.reports.try_recv() else { return };
            self.reported(generation, happening);
        }
    }

    pub(super) fn reported(&mut self, generation: i64, mut happening: Happening) {
        if let Happening::ModelCalled(call) = &mut happening {
            let mut turns = self.record.machine.talking().filter_map(|id| self.record.machine.turn_of(id));
            let only = turns.next().filter(|_| turns.next().is_none());
            // An answer is heard out after its turn was cancelled. By then the next one may run.
            let has_begun =
                |turn: &i64| self.calls.begun.get(turn).is_none_or(|begun| *begun <= call.started_at);
            call.turn_id = only.filter(has_begun);
        }
        if generation == self.record.generation {
            self.changes.effects.events.push(happening);
        } else {
            self.changes.others.push((generation, happening));
        }
    }

    /// Notes when turns begin: before the agent is told of them, so that no call of theirs is older.
    pub(super) fn note_begun(&mut self) {
        let now = clock::theirs();
        for happening in &self.changes.effects.events {
            if let Happening::TurnStarted { turn_id } = happening {
                self.calls.begun.insert(*turn_id, now);
            }
        }
        self.calls.begun.retain(|turn, _| self.record.machine.has(*turn));
    }

    /// Opens the gate of the launch, unless that is done already, or the agent was killed.
    pub(super) fn open_gate(&mut self) {
        if self.calls.gate.is_some() || self.stopping.as_ref().is_some_and(Stopping::is_killed) {
            return;
        }
        let outlet = Outlet {
            agent_id: self.id,
            generation: self.record.generation,
            shared: Arc::clone(&self.shared),
            calls: self.calls.to.clone(),
            reports: self.calls.to_reports.clone(),
            granted: self.calls.granted.clone(),
        };
        match gate::open(&self.dir(), outlet) {
            Ok(gate) => self.calls.gate = Some(gate),
            Err(error) => tracing::error!(agent = self.id, %error, "the agent's gate can't be opened"),
        }
        match &self.plan.present {
            Some(_) => self.set_rules(),
            None => self.ask_plan(Why::Plan),
        }
    }

    /// The plan is new, and with it the rules of the gate.
    pub(super) fn set_rules(&self) {
        if let (Some(gate), Some(plan)) = (&self.calls.gate, &self.plan.present) {
            gate.set_rules(Rules::of(plan));
        }
    }

    fn send_file(&mut self, conversation_id: i64, content: Content) {
        let key = self.record.machine.own_name();
        self.changes.effects.events.push(self.record.machine.message(conversation_id, key, content));
    }

    /// Gives a decision to the call that waits for it, and says whether one does. It is reported afterwards: if the host
    /// is killed in between, the agent may read the answer twice, but it is never lost.
    pub(super) fn hand_over(&mut self, request: &str, decision: Decision, by: Option<String>) -> bool {
        let crossing = self.calls.judged.remove(request);
        let is_approved = matches!(decision, Decision::Approved { .. });
        let is_awaited =
            self.calls.waiting.remove(request).is_some_and(|waits| waits.send((decision, by)).is_ok());
        if let Some(crossing) = crossing.filter(|_| is_approved && !is_awaited) {
            // The agent is told with its next turn, and may try again.
            self.calls.granted.add(crossing, Instant::now());
        }
        is_awaited
    }
}
