//! Calls of Muster's own MCP server, and the agent's gate.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use muster_egress::{Gate, Rules};
use muster_protocol::{HostEvent, event::Content, plan::Decision};
use tokio::sync::{mpsc, oneshot};

use super::{Agent, AskReason, AuthoredDecision, LaunchEvent, shutdown::Stopping};
use crate::{
    bounds::BATCH,
    clock,
    gate::{self, Outlet},
    journal::Closed,
    late_approvals::{self, LateApprovals},
    mcp::{Call, McpSockets},
    shared::Shared,
};

/// The agent's gate and sockets, and calls that wait for an answer.
pub(super) struct Calls {
    pub(super) to: mpsc::Sender<Call>,
    pub(super) from: mpsc::Receiver<Call>,
    to_reports: mpsc::UnboundedSender<LaunchEvent>,
    /// Reports of gates, with their launches.
    pub(super) reports: mpsc::UnboundedReceiver<LaunchEvent>,
    pub(super) sockets: McpSockets,
    pub(super) gate: Option<Gate>,
    waiting: BTreeMap<String, oneshot::Sender<AuthoredDecision>>,
    /// Crossings under decision, by request key.
    judged: BTreeMap<String, late_approvals::AskedCrossing>,
    granted: LateApprovals,
    /// Start times of running turns, by the control plane's clock. Turns from before a restart of the host are missing.
    begun: BTreeMap<i64, i64>,
}

impl Default for Calls {
    fn default() -> Self {
        let ((to, from), (to_reports, reports)) = (mpsc::channel(16), mpsc::unbounded_channel());
        let (sockets, gate, granted) = (McpSockets::default(), None, LateApprovals::default());
        let (waiting, judged, begun) = Default::default();
        Self { to, from, to_reports, reports, sockets, gate, waiting, judged, granted, begun }
    }
}

impl Calls {
    /// A launch's view of the host.
    pub(super) fn outlet(&self, agent_id: i64, generation: i64, shared: &Arc<Shared>) -> Outlet {
        Outlet {
            agent_id,
            generation,
            shared: Arc::clone(shared),
            calls: self.to.clone(),
            reports: self.to_reports.clone(),
            granted: self.granted.clone(),
        }
    }

    /// Drops the state of a launch. Its gate is closed before.
    pub(super) fn forget(&mut self) {
        self.sockets = McpSockets::default();
        self.granted = LateApprovals::default();
        self.waiting.clear();
        self.judged.clear();
    }
}

impl Agent {
    pub(super) async fn handle_call(&mut self, call: Call) -> Result<(), Closed> {
        self.shared.journal.wait_for_room().await?;
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
                let running: Vec<i64> = self.record.machine.conversations_in_turn().collect();
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

    /// Handles a report of the gate and all queued ones: a commit for each would be slower than an agent's calls.
    pub(super) fn report_all(&mut self, generation: i64, event: HostEvent) {
        self.record_report(generation, event);
        for _ in 0..BATCH {
            let Ok((generation, event)) = self.calls.reports.try_recv() else { return };
            self.record_report(generation, event);
        }
    }

    pub(super) fn record_report(&mut self, generation: i64, mut event: HostEvent) {
        if let HostEvent::ModelCalled(call) = &mut event {
            let mut turns =
                self.record.machine.conversations_in_turn().filter_map(|id| self.record.machine.turn_of(id));
            let only = turns.next().filter(|_| turns.next().is_none());
            // An answer is read even after its turn was cancelled, when the next turn may already run.
            let has_begun =
                |turn: &i64| self.calls.begun.get(turn).is_none_or(|begun| *begun <= call.started_at);
            call.turn_id = only.filter(has_begun);
        }
        if generation == self.record.generation {
            self.changes.effects.events.push(event);
        } else {
            self.changes.others.push((generation, event));
        }
    }

    /// Records the start of turns before the agent gets them, so that none of their calls is older.
    pub(super) fn record_turn_starts(&mut self) {
        let now = clock::control_plane_now();
        for event in &self.changes.effects.events {
            if let HostEvent::TurnStarted { turn_id } = event {
                self.calls.begun.insert(*turn_id, now);
            }
        }
        self.calls.begun.retain(|turn, _| self.record.machine.has_turn(*turn));
    }

    /// Opens the launch's gate, unless it is open or the agent was killed.
    pub(super) fn open_gate(&mut self) {
        if self.calls.gate.is_some() || self.stopping.as_ref().is_some_and(Stopping::is_killed) {
            return;
        }
        let outlet = self.calls.outlet(self.id, self.record.generation, &self.shared);
        match gate::open(&self.launch_dir(), outlet) {
            Ok(gate) => self.calls.gate = Some(gate),
            Err(error) => tracing::error!(agent = self.id, %error, "the agent's gate can't be opened"),
        }
        match &self.plan.present {
            Some(_) => self.set_rules(),
            None => self.ask_plan(AskReason::Plan),
        }
    }

    /// Applies the current plan's rules to the gate.
    pub(super) fn set_rules(&self) {
        if let (Some(gate), Some(plan)) = (&self.calls.gate, &self.plan.present) {
            gate.set_rules(Rules::from_plan(plan));
        }
    }

    fn send_file(&mut self, conversation_id: i64, content: Content) {
        let key = self.record.machine.own_name();
        self.changes.effects.events.push(self.record.machine.message(conversation_id, key, content));
    }

    /// Delivers a decision to the waiting call, and returns whether there is one. It is reported afterwards: if the
    /// host is killed in between, the agent may read the answer twice, but never misses it.
    pub(super) fn deliver_decision(&mut self, request: &str, decision: Decision, by: Option<String>) -> bool {
        let crossing = self.calls.judged.remove(request);
        let is_approved = matches!(decision, Decision::Approved { .. });
        let is_awaited =
            self.calls.waiting.remove(request).is_some_and(|waits| waits.send((decision, by)).is_ok());
        if let Some(crossing) = crossing.filter(|_| is_approved && !is_awaited) {
            // The agent learns about it with its next turn, and may try again.
            self.calls.granted.add(crossing, Instant::now());
        }
        is_awaited
    }
}
