//! Commands, and what the control plane answers before they are carried out.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use muster_protocol::{
    Command, Happening,
    command::Order,
    event::{EndReason, RefusedReason, TurnOutcome},
    plan::{Given, LaunchPlan, McpServer, Part, TurnPlan, Wanted},
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{Agent, Message, Phase, Why, home, keeping::Chore, launch, shim::Connection};
use crate::{
    acp::{Answered, Settings, Turn, blocks, turn_ended},
    clock,
    journal::Closed,
    runtime::Waiting,
};

/// Commands that wait.
#[derive(Default)]
pub(super) struct Orders {
    /// Turns that wait until the agent runs and isn't paused.
    pub(super) held: VecDeque<(Order, i64)>,
    /// A launch that waits until the one before has ended, or its home is restored.
    pub(super) next_launch: Option<Order>,
    /// Those that are carried out when the agent has ended.
    pub(super) stops: Vec<i64>,
    /// Turns whose plan is awaited, and whether they were cancelled meanwhile.
    pub(super) planned: BTreeMap<i64, bool>,
    /// A SYNC that could not be carried out, and when it is tried again.
    pub(super) sync_again: Option<(Order, Instant)>,
}

impl Agent {
    pub(super) async fn order(&mut self, order: Order) -> Result<(), Closed> {
        let is_known = order.generation <= self.record.generation;
        // Nobody else knows of a backup's file that is to be removed, so that is never too late.
        if is_late(&order) && !matches!(order.command, Command::Forget { .. }) {
            self.refuse(&order, RefusedReason::TooLate);
        } else if matches!(
            order.command,
            Command::Backup { .. } | Command::Restore { .. } | Command::Forget { .. }
        ) {
            self.keep(Chore::Order(order));
        } else if order.generation < self.record.generation {
            self.refuse(&order, RefusedReason::Stale);
        } else if order.command == Command::Launch {
            return self.launch_order(order).await;
        } else if !is_known && order.command == Command::Stop {
            // It was never started here, so it has ended.
            if let Some(launch) =
                self.orders.next_launch.take_if(|launch| launch.generation <= order.generation)
            {
                self.changes.done.push(launch.seq);
            }
            self.changes.done.push(order.seq);
            let (reason, code, signal, detail) = (EndReason::Stopped, None, None, None);
            let ended = Happening::Ended { reason, code, signal, detail };
            if self.record.phase == Phase::Ended {
                self.record.begin(order.generation);
                self.record.end();
                self.changes.effects.events.push(ended);
            } else {
                // The launch before it is still here, and reports its own end.
                self.changes.others.push((order.generation, ended));
                self.stop();
            }
        } else if !is_known || self.record.phase == Phase::Ended {
            self.refuse(&order, RefusedReason::NotRunning);
        } else {
            self.carry_out(order);
        }
        Ok(())
    }

    fn carry_out(&mut self, order: Order) {
        match order.command.clone() {
            Command::Launch | Command::Backup { .. } | Command::Restore { .. } | Command::Forget { .. } => {}
            Command::Stop => {
                self.orders.stops.push(order.seq);
                self.stop();
            }
            Command::Pause => {
                self.record.is_paused = true;
                self.changes.done.push(order.seq);
            }
            Command::Resume => {
                self.record.is_paused = false;
                self.changes.done.push(order.seq);
                self.release_turns();
            }
            Command::Turn { turn_id } => {
                self.orders.held.push_back((order, turn_id));
                self.release_turns();
            }
            Command::Cancel { turn_id } => self.cancel(&order, turn_id),
            Command::Answer { approval_id } => {
                self.ask(Wanted::Answer { approval_id }, Why::Answer(order, approval_id));
            }
            Command::Verdict { request, allowed } => {
                let decision = if allowed {
                    muster_protocol::plan::Decision::Approved { comment: None }
                } else {
                    muster_protocol::plan::Decision::Denied { comment: None }
                };
                match self.record.machine.verdict(&request, allowed) {
                    Answered::Own => _ = self.hand_over(&request, decision, None),
                    // Nobody waits any more: the agent withdrew the request, which has been reported.
                    Answered::Said | Answered::NotWaiting => {}
                }
                self.changes.done.push(order.seq);
            }
            Command::Sync => self.ask(Wanted::Launch, Why::Sync(order)),
        }
    }

    /// Asks for the plans of the turns that may begin.
    pub(super) fn release_turns(&mut self) {
        if self.record.phase != Phase::Running || self.record.is_paused || self.stopping.is_some() {
            return;
        }
        for (order, turn_id) in std::mem::take(&mut self.orders.held) {
            self.orders.planned.insert(turn_id, false);
            self.ask(Wanted::Turn { turn_id }, Why::Turn(order, turn_id));
        }
    }

    fn cancel(&mut self, order: &Order, turn_id: i64) {
        if let Some(at) = self.orders.held.iter().position(|(_, held)| *held == turn_id) {
            if let Some((turn, _)) = self.orders.held.remove(at) {
                self.changes.done.push(turn.seq);
            }
            let why = Some("It was cancelled before it began.");
            self.changes.effects.events.push(turn_ended(turn_id, TurnOutcome::Cancelled, why));
        } else if !self.record.machine.cancel(turn_id, &mut self.changes.effects) {
            // Its plan may be on the way. A turn that has ended doesn't mind.
            self.orders.planned.entry(turn_id).and_modify(|is_cancelled| *is_cancelled = true);
        }
        self.await_cancelled();
        self.changes.done.push(order.seq);
    }

    async fn launch_order(&mut self, order: Order) -> Result<(), Closed> {
        if order.generation == self.record.generation {
            // It was begun before.
            self.changes.done.push(order.seq);
        } else if self.record.phase == Phase::Ended && !self.waits_for_home() {
            return self.launch(&order).await;
        } else {
            self.stop();
            if let Some(older) = self.orders.next_launch.replace(order) {
                self.refuse(&older, RefusedReason::Stale);
            }
        }
        Ok(())
    }

    /// Begins a launch. Nothing of the agent runs.
    pub(super) async fn launch(&mut self, order: &Order) -> Result<(), Closed> {
        tracing::info!(agent = self.id, generation = order.generation, "an agent is launched");
        self.record.begin(order.generation);
        self.changes.done.push(order.seq);
        self.shared.note(self.id, Some(order.generation));
        self.commit().await?;
        self.drop_old_homes();
        self.ask_plan(Why::Launch);
        Ok(())
    }

    /// Asks for the plan, unless the question is on its way.
    pub(super) fn ask_plan(&mut self, why: Why) {
        if !std::mem::replace(&mut self.plan.is_asked, true) {
            self.ask(Wanted::Launch, why);
        }
    }

    pub(super) async fn told(
        &mut self,
        generation: i64,
        why: Why,
        given: Option<Given>,
    ) -> Result<(), Closed> {
        let Some(given) = given else { return Ok(()) };
        if generation != self.record.generation || self.record.phase == Phase::Ended {
            let is_older = generation != self.record.generation;
            let reason = if is_older { RefusedReason::Stale } else { RefusedReason::NotRunning };
            match why {
                Why::Turn(order, _) | Why::Answer(order, _) | Why::Sync(order) => self.refuse(&order, reason),
                Why::Launch | Why::Plan => {}
            }
            return Ok(());
        }
        if matches!(why, Why::Launch | Why::Plan) {
            self.plan.is_asked = false;
        }
        match (why, given) {
            (Why::Launch, Given::Launch(plan)) => return Box::pin(self.start(*plan)).await,
            (Why::Launch, Given::Refused { reason }) => {
                return self.ended(EndReason::SpawnFailed, None, None, Some(reason)).await;
            }
            (Why::Plan, Given::Launch(plan)) => {
                // A host that was killed when the shim was up, before its step was committed, has not kept them.
                if !plan.stopped {
                    self.record.machine.settings = self.settings(&plan);
                }
                self.plan.present = Some(*plan);
                self.set_rules();
                self.write_lines();
            }
            (Why::Sync(order), Given::Launch(plan)) => self.synced(order, *plan),
            (Why::Turn(order, turn_id), Given::Turn(plan)) => self.turn(&order, turn_id, plan),
            (Why::Answer(order, approval_id), Given::Answer(answer)) => {
                self.changes.done.push(order.seq);
                let decided =
                    self.record.machine.decide(&answer.request, &answer.decision, Some(approval_id));
                let is_delivered = match decided {
                    // DELIVERED follows when the agent has the line.
                    Answered::Said => return Ok(()),
                    Answered::Own => self.hand_over(&answer.request, answer.decision, answer.by),
                    Answered::NotWaiting => false,
                };
                self.changes.effects.events.push(if is_delivered {
                    Happening::Delivered { approval_id, without_text: false }
                } else {
                    Happening::NotWaiting { approval_id }
                });
            }
            (Why::Turn(order, _) | Why::Answer(order, _) | Why::Sync(order), given) => {
                if let Given::Refused { reason } = given {
                    tracing::warn!(agent = self.id, command = order.id, reason, "the control plane refuses");
                }
                self.refuse(&order, RefusedReason::Forbidden);
            }
            (Why::Plan, given) => {
                // Asked for again with the next session that has to be opened.
                let reason = match given {
                    Given::Refused { reason } => reason,
                    _ => "The control plane's answer is invalid.".to_owned(),
                };
                tracing::warn!(agent = self.id, reason, "the control plane gives no plan");
                let sent = self.shim.as_ref().map_or(0, |shim| shim.sending.sent);
                self.record.machine.not_opened(sent, &reason, &mut self.changes.effects);
            }
            (Why::Launch, _) => tracing::warn!(agent = self.id, "the control plane gives no plan"),
        }
        Ok(())
    }

    async fn start(&mut self, plan: LaunchPlan) -> Result<(), Closed> {
        // One that is being stopped is not started any more.
        if self.record.phase != Phase::Launching || self.shim.is_some() || self.stopping.is_some() {
            self.plan.present = Some(plan);
            return Ok(());
        }
        match self.launched(&plan).await? {
            Ok(Some(image)) => tracing::info!(agent = self.id, image, "a container runs"),
            Ok(None) => {}
            Err(error) if error.reason() == EndReason::Stopped => {
                // Its container may have come up just before its engine went away. Then it is stopped by its shim.
                if !self.shared.folder.has_shim(self.id, self.record.generation) {
                    // What has stopped it was heard, and comes next.
                    self.stop();
                    return Ok(());
                }
            }
            Err(error) => return self.ended(error.reason(), None, None, Some(error.to_string())).await,
        }
        self.record.machine.settings = self.settings(&plan);
        self.record.shown = launch::readable_by_mcp(&self.shared, &plan).unwrap_or_default();
        self.plan.present = Some(plan);
        match Connection::open(&self.dir(), 1, self.shared.options.line_bytes).await {
            Ok(shim) => self.connected(shim).await,
            Err(_) => self.adopt().await,
        }
    }

    /// Launches the agent, reports if that has to wait for the engine, and hears what ends the launch.
    async fn launched(
        &mut self,
        plan: &LaunchPlan,
    ) -> Result<Result<Option<String>, launch::LaunchError>, Closed> {
        let shared = Arc::clone(&self.shared);
        let (away, mut waits) = mpsc::unbounded_channel();
        let (ends, stop) = watch::channel(false);
        let waiting = Waiting { away, stop };
        let (id, generation) = (self.id, self.record.generation);
        let start = launch::Start { shared: &shared, id, generation, plan, waiting: &waiting };
        let mut launching = pin!(start.run());
        loop {
            tokio::select! {
                launched = &mut launching => return Ok(launched),
                Some(detail) = waits.recv() => {
                    self.changes.effects.events.push(Happening::EngineAway { detail });
                    self.commit().await?;
                }
                Some(message) = self.inbox.recv() => {
                    if self.is_end(&message) {
                        let _ = ends.send(true);
                    }
                    self.heard.push_back(message);
                }
            }
        }
    }

    /// Whether this will stop the launch.
    fn is_end(&self, message: &Message) -> bool {
        let present = self.record.generation;
        match message {
            Message::Order(order) => match order.command {
                Command::Stop => order.generation == present && !is_late(order),
                Command::Launch => order.generation > present && !is_late(order),
                _ => false,
            },
            Message::NotWanted(generation) => *generation == present,
            Message::Wanted(_) => false,
        }
    }

    fn settings(&self, plan: &LaunchPlan) -> Settings {
        let home = self.shared.places(self.id, self.record.generation).home;
        Settings {
            home,
            model: plan.model.clone(),
            mode: plan.mode.clone(),
            instructions: plan.instructions.clone(),
            disabled: plan.disabled_tool_groups.clone(),
        }
    }

    /// Skills that can't be written don't keep the rest back, above all the gate's rules. But they keep the command: it is
    /// carried out again soon, also by a host that was started again.
    fn synced(&mut self, order: Order, plan: LaunchPlan) {
        let mut written = Ok(());
        // A stop may come without anything else. Skills and settings stay as they are until the release, which brings a new plan.
        if !plan.stopped {
            let given = self.shared.runtime.given(&self.shared.folder, self.id);
            written = home::write_skills(&given, &plan.skills);
            // If it fails again with the same plan, nothing has changed for the sessions.
            if written.is_ok() || self.plan.present.as_ref() != Some(&plan) {
                self.record.machine.assignments_changed(self.settings(&plan));
            }
            let what = self.lacks(&plan);
            self.changes.effects.events.extend(what.map(|what| Happening::Lacks { what: what.to_owned() }));
        }
        self.plan.present = Some(plan);
        self.set_rules();
        // What this has brought is newer than what an older one could not bring.
        if let Some((older, _)) = self.orders.sync_again.take() {
            self.changes.done.push(older.seq);
        }
        match written {
            Ok(()) => {
                self.changes.done.push(order.seq);
                self.changes.effects.events.push(Happening::Synced);
            }
            Err(error) => {
                tracing::error!(agent = self.id, %error, "the skills can't be written; trying again");
                let at = Instant::now() + self.shared.options.grace * 10;
                self.orders.sync_again = Some((order, at));
            }
        }
    }

    /// What this launch lacks of what MCP servers of this plan need.
    fn lacks(&self, plan: &LaunchPlan) -> Option<&'static str> {
        let before = self.plan.present.as_ref().unwrap_or(plan);
        let is_known = |now: &McpServer| before.mcp_servers.iter().any(|before| before.goes_on_as(now));
        if self.record.machine.is_set() && !plan.mcp_servers.iter().all(is_known) {
            return Some(
                "It can't open its sessions again, so its conversations don't get MCP servers that were added or edited.",
            );
        }
        let needed = launch::readable_by_mcp(&self.shared, plan).unwrap_or_default();
        let is_shown = needed.iter().all(|path| self.record.shown.contains(path));
        (!is_shown).then_some("Its sandbox does not show the folder of an MCP server that was added.")
    }

    fn turn(&mut self, order: &Order, turn_id: i64, plan: TurnPlan) {
        self.changes.done.push(order.seq);
        match self.orders.planned.remove(&turn_id) {
            Some(true) => {
                let why = Some("It was cancelled before it began.");
                return self.changes.effects.events.push(turn_ended(turn_id, TurnOutcome::Cancelled, why));
            }
            Some(false) if !self.record.machine.has(turn_id) => {}
            // It was sent twice, as after a take-over while the host was away, and is here already.
            _ => return,
        }
        // What began now would be lost; what was never begun waits for the next launch.
        if self.record.phase != Phase::Running || self.stopping.is_some() {
            return self.refuse(order, RefusedReason::NotRunning);
        }
        let given = self.shared.runtime.given(&self.shared.folder, self.id);
        let home = self.shared.places(self.id, self.record.generation).home;
        let takes_images = self.record.machine.capabilities.image;
        let prompt = blocks(&plan.prompt, plan.is_shared, takes_images, |part| {
            let Part::File { filename, base64: Some(base64), .. } = part else { return None };
            let bytes = BASE64_STANDARD.decode(base64).ok()?;
            let kept = home::write_inbox(&given, turn_id, filename, &bytes).map(|path| home.join(path));
            kept.inspect_err(|error| tracing::error!(agent = self.id, %error, "a file can't be written")).ok()
        });
        let turn = Turn {
            turn_id,
            command_id: order.id,
            conversation_id: plan.conversation_id,
            session: plan.session,
            instructions: plan.instructions,
            prompt,
        };
        // It may not have been possible before, such as on a full disk.
        self.open_gate();
        if let Some(gate) = &self.calls.gate {
            gate.ask_again();
        }
        self.record.machine.begin(turn, &mut self.changes.effects);
    }

    /// A command has no effect.
    pub(super) fn refuse(&mut self, order: &Order, reason: RefusedReason) {
        self.changes.done.push(order.seq);
        self.changes.others.push((order.generation, Happening::Refused { command_id: order.id, reason }));
    }
}

/// Whether it is useless by now.
fn is_late(order: &Order) -> bool {
    order.deadline > 0 && order.deadline < clock::theirs()
}
