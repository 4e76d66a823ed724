//! Handles commands, and the control plane's answers that they depend on.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use muster_protocol::{
    Command, HostEvent,
    command::CommandEnvelope,
    event::{EndReason, RefusedReason, TurnOutcome},
    frame::LogSource,
    plan::{LaunchPlan, McpServer, Part, PlanRequest, PlanResponse, TurnPlan},
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{Agent, AskReason, Message, Phase, backups::Chore, home, launch, shim::Connection};
use crate::{
    acp::{DecisionEffect, Settings, Turn, blocks, turn_ended},
    clock,
    journal::Closed,
    runtime::EngineWait,
};

#[derive(Default)]
pub(super) struct PendingCommands {
    /// Turns that wait for the agent to run unpaused.
    pub(super) paused_turns: VecDeque<(CommandEnvelope, i64)>,
    /// A launch that waits for the end of the last one, or for a restore of its home.
    pub(super) next_launch: Option<CommandEnvelope>,
    /// Completed once the agent has ended.
    pub(super) stops: Vec<i64>,
    /// Turns that wait for their plan, and whether they were cancelled.
    pub(super) awaiting_plan: BTreeMap<i64, bool>,
    /// A failed SYNC, and the time of its retry.
    pub(super) sync_again: Option<(CommandEnvelope, Instant)>,
}

impl Agent {
    pub(super) async fn handle_command(&mut self, envelope: CommandEnvelope) -> Result<(), Closed> {
        let is_known = envelope.generation <= self.record.generation;
        // Removing a backup's file is never too late: no one else knows about it.
        if is_late(&envelope) && !matches!(envelope.command, Command::Forget { .. }) {
            self.refuse(&envelope, RefusedReason::TooLate);
        } else if matches!(
            envelope.command,
            Command::Backup { .. } | Command::Restore { .. } | Command::Forget { .. }
        ) {
            self.queue_chore(Chore::Command(envelope));
        } else if envelope.generation < self.record.generation {
            self.refuse(&envelope, RefusedReason::Stale);
        } else if envelope.command == Command::Launch {
            return self.handle_launch(envelope).await;
        } else if !is_known && envelope.command == Command::Stop {
            // It never started here, so it has ended.
            if let Some(launch) =
                self.commands.next_launch.take_if(|launch| launch.generation <= envelope.generation)
            {
                self.changes.done.push(launch.seq);
            }
            self.changes.done.push(envelope.seq);
            let (reason, code, signal, detail) = (EndReason::Stopped, None, None, None);
            let ended = HostEvent::Ended { reason, code, signal, detail };
            if self.record.phase == Phase::Ended {
                self.record.begin(envelope.generation);
                self.record.end();
                self.changes.effects.events.push(ended);
            } else {
                // The previous launch still runs, and reports its own end.
                self.changes.others.push((envelope.generation, ended));
                self.stop();
            }
        } else if !is_known || self.record.phase == Phase::Ended {
            self.refuse(&envelope, RefusedReason::NotRunning);
        } else {
            self.execute_command(envelope);
        }
        Ok(())
    }

    fn execute_command(&mut self, envelope: CommandEnvelope) {
        match envelope.command.clone() {
            Command::Launch | Command::Backup { .. } | Command::Restore { .. } | Command::Forget { .. } => {}
            Command::Stop => {
                self.commands.stops.push(envelope.seq);
                self.stop();
            }
            Command::Pause => {
                self.record.is_paused = true;
                self.changes.done.push(envelope.seq);
            }
            Command::Resume => {
                self.record.is_paused = false;
                self.changes.done.push(envelope.seq);
                self.release_turns();
            }
            Command::Turn { turn_id } => {
                self.commands.paused_turns.push_back((envelope, turn_id));
                self.release_turns();
            }
            Command::Cancel { turn_id } => self.cancel_turn(&envelope, turn_id),
            Command::Answer { approval_id } => {
                self.ask_control_plane(
                    PlanRequest::Answer { approval_id },
                    AskReason::Answer(envelope, approval_id),
                );
            }
            Command::Verdict { request, allowed } => {
                let decision = if allowed {
                    muster_protocol::plan::Decision::Approved { comment: None }
                } else {
                    muster_protocol::plan::Decision::Denied { comment: None }
                };
                match self.record.machine.verdict(&request, allowed) {
                    DecisionEffect::Own => _ = self.deliver_decision(&request, decision, None),
                    // Nothing waits: the agent has withdrawn the request, and that was reported.
                    DecisionEffect::Said | DecisionEffect::NotWaiting => {}
                }
                self.changes.done.push(envelope.seq);
            }
            Command::TestMcp { server_id } => {
                self.open_gate();
                if let Some(gate) = &self.calls.gate {
                    gate.test_mcp(server_id);
                }
                self.changes.done.push(envelope.seq);
            }
            Command::Sync => self.ask_control_plane(PlanRequest::Launch, AskReason::Sync(envelope)),
        }
    }

    /// Requests the plans of all turns that may start.
    pub(super) fn release_turns(&mut self) {
        if self.record.phase != Phase::Running || self.record.is_paused || self.stopping.is_some() {
            return;
        }
        for (envelope, turn_id) in std::mem::take(&mut self.commands.paused_turns) {
            self.commands.awaiting_plan.insert(turn_id, false);
            self.ask_control_plane(PlanRequest::Turn { turn_id }, AskReason::Turn(envelope, turn_id));
        }
    }

    fn cancel_turn(&mut self, envelope: &CommandEnvelope, turn_id: i64) {
        if let Some(at) = self.commands.paused_turns.iter().position(|(_, held)| *held == turn_id) {
            if let Some((turn, _)) = self.commands.paused_turns.remove(at) {
                self.changes.done.push(turn.seq);
            }
            let why = Some("It was cancelled before it began.");
            self.changes.effects.events.push(turn_ended(turn_id, TurnOutcome::Cancelled, why));
        } else if !self.record.machine.cancel(turn_id, &mut self.changes.effects) {
            // Its plan may be under way. A finished turn is not affected.
            self.commands.awaiting_plan.entry(turn_id).and_modify(|is_cancelled| *is_cancelled = true);
        }
        self.await_cancelled();
        self.changes.done.push(envelope.seq);
    }

    async fn handle_launch(&mut self, envelope: CommandEnvelope) -> Result<(), Closed> {
        if envelope.generation == self.record.generation {
            // It has already started.
            self.changes.done.push(envelope.seq);
        } else if self.record.phase == Phase::Ended && !self.waits_for_home() {
            return self.begin_launch(&envelope).await;
        } else {
            self.stop();
            if let Some(older) = self.commands.next_launch.replace(envelope) {
                self.refuse(&older, RefusedReason::Stale);
            }
        }
        Ok(())
    }

    /// Starts a launch. No part of the agent runs yet.
    pub(super) async fn begin_launch(&mut self, envelope: &CommandEnvelope) -> Result<(), Closed> {
        tracing::info!(agent = self.id, generation = envelope.generation, "an agent is launched");
        self.shared.counts.launched();
        self.log(LogSource::Launch, &format!("Launch {} begins.", envelope.generation));
        self.record.begin(envelope.generation);
        self.changes.done.push(envelope.seq);
        self.shared.set_running(self.id, Some(envelope.generation));
        self.commit().await?;
        self.drop_old_homes();
        self.ask_plan(AskReason::Launch);
        Ok(())
    }

    /// Requests the plan, unless a request is pending.
    pub(super) fn ask_plan(&mut self, why: AskReason) {
        if !std::mem::replace(&mut self.plan.is_asked, true) {
            self.ask_control_plane(PlanRequest::Launch, why);
        }
    }

    pub(super) async fn handle_answer(
        &mut self,
        generation: i64,
        why: AskReason,
        given: Option<PlanResponse>,
    ) -> Result<(), Closed> {
        let Some(given) = given else { return Ok(()) };
        if generation != self.record.generation || self.record.phase == Phase::Ended {
            let is_older = generation != self.record.generation;
            let reason = if is_older { RefusedReason::Stale } else { RefusedReason::NotRunning };
            match why {
                AskReason::Turn(envelope, _) | AskReason::Answer(envelope, _) | AskReason::Sync(envelope) => {
                    self.refuse(&envelope, reason);
                }
                AskReason::Launch | AskReason::Plan => {}
            }
            return Ok(());
        }
        if matches!(why, AskReason::Launch | AskReason::Plan) {
            self.plan.is_asked = false;
        }
        match (why, given) {
            (AskReason::Launch, PlanResponse::Launch(plan)) => {
                return Box::pin(self.start_agent(*plan)).await;
            }
            (AskReason::Launch, PlanResponse::Refused { reason }) => {
                return self.finish_launch(EndReason::SpawnFailed, None, None, Some(reason)).await;
            }
            (AskReason::Plan, PlanResponse::Launch(plan)) => {
                self.learn_secrets(&plan);
                // A host that was killed after the shim started, but before the commit, has not stored the settings.
                if !plan.stopped {
                    self.record.machine.settings = self.machine_settings(&plan);
                }
                self.plan.present = Some(*plan);
                self.set_rules();
                self.write_lines();
            }
            (AskReason::Sync(envelope), PlanResponse::Launch(plan)) => self.apply_sync(envelope, *plan),
            (AskReason::Turn(envelope, turn_id), PlanResponse::Turn(plan)) => {
                self.begin_turn(&envelope, turn_id, plan);
            }
            (AskReason::Answer(envelope, approval_id), PlanResponse::Answer(answer)) => {
                self.changes.done.push(envelope.seq);
                let decided =
                    self.record.machine.decide(&answer.request, &answer.decision, Some(approval_id));
                let is_delivered = match decided {
                    // DELIVERED follows once the agent has the line.
                    DecisionEffect::Said => return Ok(()),
                    DecisionEffect::Own => self.deliver_decision(&answer.request, answer.decision, answer.by),
                    DecisionEffect::NotWaiting => false,
                };
                self.changes.effects.events.push(if is_delivered {
                    HostEvent::Delivered { approval_id, without_text: false }
                } else {
                    HostEvent::NotWaiting { approval_id }
                });
            }
            (
                AskReason::Turn(envelope, _) | AskReason::Answer(envelope, _) | AskReason::Sync(envelope),
                given,
            ) => {
                if let PlanResponse::Refused { reason } = given {
                    tracing::warn!(
                        agent = self.id,
                        command = envelope.id,
                        reason,
                        "the control plane refuses"
                    );
                }
                self.refuse(&envelope, RefusedReason::Forbidden);
            }
            (AskReason::Plan, given) => {
                // The next session to open requests it again.
                let reason = match given {
                    PlanResponse::Refused { reason } => reason,
                    _ => "The control plane's answer is invalid.".to_owned(),
                };
                tracing::warn!(agent = self.id, reason, "the control plane sent no plan");
                let sent = self.shim.as_ref().map_or(0, |shim| shim.sending.sent);
                self.record.machine.fail_unopened_sessions(sent, &reason, &mut self.changes.effects);
            }
            (AskReason::Launch, _) => tracing::warn!(agent = self.id, "the control plane sent no plan"),
        }
        Ok(())
    }

    async fn start_agent(&mut self, plan: LaunchPlan) -> Result<(), Closed> {
        self.learn_secrets(&plan);
        // A stopping agent is not started.
        if self.record.phase != Phase::Launching || self.shim.is_some() || self.stopping.is_some() {
            self.plan.present = Some(plan);
            return Ok(());
        }
        match self.run_launch(&plan).await? {
            Ok(Some(image)) => tracing::info!(agent = self.id, image, "a container runs"),
            Ok(None) => {}
            Err(error) if error.reason() == EndReason::Stopped => {
                // The container may have started just before the engine went away. Then its shim stops it.
                if !self.shared.folder.has_shim(self.id, self.record.generation) {
                    // The stop is queued, and comes next.
                    self.stop();
                    return Ok(());
                }
            }
            Err(error) => {
                return self.finish_launch(error.reason(), None, None, Some(error.to_string())).await;
            }
        }
        self.record.machine.settings = self.machine_settings(&plan);
        self.record.shown = launch::readable_by_mcp(&self.shared, &plan).unwrap_or_default();
        self.plan.present = Some(plan);
        match Connection::open(&self.launch_dir(), 1, self.shared.options.line_bytes).await {
            Ok(shim) => self.attach_shim(shim).await,
            Err(_) => self.adopt_shim().await,
        }
    }

    /// Launches the agent, reports waiting for the engine, and watches for a stop.
    async fn run_launch(
        &mut self,
        plan: &LaunchPlan,
    ) -> Result<Result<Option<String>, launch::LaunchError>, Closed> {
        let shared = Arc::clone(&self.shared);
        let (away, mut waits) = mpsc::unbounded_channel();
        let (ends, stop) = watch::channel(false);
        let waiting = EngineWait { away, stop };
        let (id, generation) = (self.id, self.record.generation);
        let start = launch::Start { shared: &shared, id, generation, plan, waiting: &waiting };
        let mut launching = pin!(start.run());
        loop {
            tokio::select! {
                launched = &mut launching => return Ok(launched),
                Some(detail) = waits.recv() => {
                    self.changes.effects.events.push(HostEvent::EngineAway { detail });
                    self.commit().await?;
                }
                Some(message) = self.inbox.recv() => {
                    if self.ends_launch(&message) {
                        let _ = ends.send(true);
                    }
                    self.deferred.push_back(message);
                }
            }
        }
    }

    /// Whether this message stops the launch.
    fn ends_launch(&self, message: &Message) -> bool {
        let present = self.record.generation;
        match message {
            Message::Command(envelope) => match envelope.command {
                Command::Stop => envelope.generation == present && !is_late(envelope),
                Command::Launch => envelope.generation > present && !is_late(envelope),
                _ => false,
            },
            Message::NotWanted(generation) => *generation == present,
            Message::Wanted(_) => false,
        }
    }

    fn machine_settings(&self, plan: &LaunchPlan) -> Settings {
        let home = self.shared.agent_paths(self.id, self.record.generation).home;
        Settings {
            home,
            model: plan.model.clone(),
            mode: plan.mode.clone(),
            instructions: plan.instructions.clone(),
            disabled: plan.disabled_tool_groups.clone(),
        }
    }

    /// Applies a new plan. A failure to write skills does not delay the rest, above all the gate's rules. The command
    /// stays, and is retried soon, also by a restarted host.
    fn apply_sync(&mut self, envelope: CommandEnvelope, plan: LaunchPlan) {
        self.learn_secrets(&plan);
        let mut written = Ok(());
        // An emergency stop may come without the rest of the plan. Skills and settings stay until the release, which
        // brings a complete plan.
        if !plan.stopped {
            let given = self.shared.runtime.host_files(&self.shared.folder, self.id);
            written = home::write_skills(&given, &plan.skills);
            // If the same plan fails again, nothing has changed for the sessions.
            if written.is_ok() || self.plan.present.as_ref() != Some(&plan) {
                self.record.machine.assignments_changed(self.machine_settings(&plan));
            }
            let what = self.missing_for_servers(&plan);
            self.changes.effects.events.extend(what.map(|what| HostEvent::Lacks { what: what.to_owned() }));
        }
        self.plan.present = Some(plan);
        self.set_rules();
        // This plan is newer than that of a failed SYNC.
        if let Some((older, _)) = self.commands.sync_again.take() {
            self.changes.done.push(older.seq);
        }
        match written {
            Ok(()) => {
                self.changes.done.push(envelope.seq);
                self.changes.effects.events.push(HostEvent::Synced);
            }
            Err(error) => {
                tracing::error!(agent = self.id, %error, "the skills can't be written; trying again");
                let at = Instant::now() + self.shared.options.grace * 10;
                self.commands.sync_again = Some((envelope, at));
            }
        }
    }

    /// What the plan's MCP servers need and this launch can't provide.
    fn missing_for_servers(&self, plan: &LaunchPlan) -> Option<&'static str> {
        let before = self.plan.present.as_ref().unwrap_or(plan);
        let is_known = |now: &McpServer| before.mcp_servers.iter().any(|before| before.sessions_survive(now));
        if self.record.machine.has_fixed_sessions() && !plan.mcp_servers.iter().all(is_known) {
            return Some(
                "It can't open its sessions again, so its conversations don't get MCP servers that were added or edited.",
            );
        }
        let needed = launch::readable_by_mcp(&self.shared, plan).unwrap_or_default();
        let is_shown = needed.iter().all(|path| self.record.shown.contains(path));
        (!is_shown).then_some("Its sandbox does not show the folder of an MCP server that was added.")
    }

    fn begin_turn(&mut self, envelope: &CommandEnvelope, turn_id: i64, plan: TurnPlan) {
        self.changes.done.push(envelope.seq);
        match self.commands.awaiting_plan.remove(&turn_id) {
            Some(true) => {
                let why = Some("It was cancelled before it began.");
                return self.changes.effects.events.push(turn_ended(turn_id, TurnOutcome::Cancelled, why));
            }
            Some(false) if !self.record.machine.has_turn(turn_id) => {}
            // A repeated command, as after a takeover while the host was away.
            _ => return,
        }
        // A turn started now would be lost; an unstarted one waits for the next launch.
        if self.record.phase != Phase::Running || self.stopping.is_some() {
            return self.refuse(envelope, RefusedReason::NotRunning);
        }
        let given = self.shared.runtime.host_files(&self.shared.folder, self.id);
        let home = self.shared.agent_paths(self.id, self.record.generation).home;
        let takes_images = self.record.machine.capabilities.image;
        let prompt = blocks(&plan.prompt, plan.is_shared, takes_images, |part| {
            let Part::File { filename, base64: Some(base64), .. } = part else { return None };
            let bytes = BASE64_STANDARD.decode(base64).ok()?;
            let kept = home::write_inbox(&given, turn_id, filename, &bytes).map(|path| home.join(path));
            kept.inspect_err(|error| tracing::error!(agent = self.id, %error, "a file can't be written")).ok()
        });
        let turn = Turn {
            turn_id,
            command_id: envelope.id,
            conversation_id: plan.conversation_id,
            session: plan.session,
            instructions: plan.instructions,
            prompt,
        };
        // Opening the gate may have failed before, for example on a full disk.
        self.open_gate();
        if let Some(gate) = &self.calls.gate {
            gate.forget_refusal();
        }
        self.record.machine.begin(turn, &mut self.changes.effects);
    }

    /// Reports that a command had no effect.
    pub(super) fn refuse(&mut self, envelope: &CommandEnvelope, reason: RefusedReason) {
        self.changes.done.push(envelope.seq);
        self.changes
            .others
            .push((envelope.generation, HostEvent::Refused { command_id: envelope.id, reason }));
    }
}

fn is_late(envelope: &CommandEnvelope) -> bool {
    envelope.deadline > 0 && envelope.deadline < clock::control_plane_now()
}
