//! Input from the shim: the agent's lines, and acknowledgements of its input. Also finds a running shim again.

use std::{io, path::Path};

use muster_egress::SessionKey;
use muster_protocol::{HostEvent, event::EndReason};
use muster_shim::{
    record::{Exit, Record as ShimRecord},
    spool,
    wire::FromClient,
};
use tokio::time::{Duration, Instant, sleep};

use super::{
    Agent, AskReason, Phase,
    shim::{Connection, Frame},
};
use crate::{
    acp::{Text, render_session},
    bounds::{ANSWER_WAIT, BATCH, LOOK, PORTION, PROCESS_WAIT},
    journal::{Closed, Journal},
    mcp::serve_own,
    runtime::{Files, Runtime, ShimLoss, ShimState},
};

/// Input from the shim.
#[derive(Debug)]
pub enum Batch {
    /// Frames in order.
    Frames(Vec<Frame>),
    /// The connection has ended.
    Gone,
}

/// Waits for space for events, and then for the shim. Never returns without a shim.
pub async fn batch(shim: &mut Option<Connection>, journal: &Journal) -> Result<Batch, Closed> {
    let Some(shim) = shim else { return std::future::pending().await };
    journal.wait_for_room().await?;
    let Some(first) = shim.next().await else { return Ok(Batch::Gone) };
    let mut size = 0;
    let mut frames = vec![first];
    while frames.len() < BATCH && size < PORTION {
        if let Some(Frame::Out { line, .. }) = frames.last() {
            size += line.len();
        }
        let Some(next) = shim.ready() else { break };
        frames.push(next);
    }
    Ok(Batch::Frames(frames))
}

impl Agent {
    pub(super) async fn handle_batch(&mut self, batch: Batch) -> Result<(), Closed> {
        let Batch::Frames(frames) = batch else {
            self.shim = None;
            return self.adopt_shim().await;
        };
        for frame in frames {
            match frame {
                Frame::Out { seq, line, .. } => self.handle_line(seq, &line).await,
                Frame::Took(seq) => {
                    self.record.machine.mark_taken(seq, &mut self.changes.effects);
                    if let Some(shim) = &mut self.shim {
                        shim.sending.mark_taken(seq);
                    }
                }
                Frame::Refused(code, reason) => {
                    if self.shim.as_mut().is_some_and(|shim| !shim.sending.refused(code)) {
                        tracing::warn!(agent = self.id, ?code, reason, "the shim refuses");
                    }
                }
                Frame::Spool(reading) => tracing::debug!(agent = self.id, ?reading, "the spool"),
                Frame::Exit(ended) => return self.handle_exit(&ended).await,
            }
        }
        self.continue_stop().await
    }

    async fn handle_line(&mut self, seq: u64, line: &[u8]) {
        self.record.machine.line(seq, line, &mut self.changes.effects);
        self.changes.lines += 1;
        // After this silence, output outside of a turn counts as complete.
        self.timers.settle_at = Some(Instant::now() + Duration::from_secs(1));
        match self.changes.effects.greeted.take() {
            Some(Ok(program)) if self.record.phase == Phase::Starting => {
                self.record.phase = Phase::Running;
                self.timers.start_by = None;
                let pid = self.shim.as_ref().map(|shim| shim.greeting.pid);
                let (id, generation) = (self.id, self.record.generation);
                let container_id = self.shared.runtime.name_of(id, generation, pid).await;
                let model = self.record.machine.settings.model.clone();
                tracing::info!(agent = id, generation, "an agent runs");
                self.changes.effects.events.push(HostEvent::Started { container_id, program, model });
                self.release_turns();
            }
            Some(Err(reason)) => self.fail_handshake(&reason),
            Some(Ok(_)) | None => {}
        }
    }

    /// Trims lines up to the last commit.
    pub(super) fn trim_spool(&self) {
        if let Some(shim) = &self.shim
            && self.record.machine.read > 0
        {
            shim.send_header(FromClient::Trim(self.record.machine.read));
        }
    }

    /// Sends committed lines to the shim.
    pub(super) fn write_lines(&mut self) {
        let Some(shim) = self.shim.as_mut().filter(|shim| !shim.sending.is_blocked) else { return };
        let machine = &self.record.machine;
        let mut needs_plan = false;
        for line in machine.lines(shim.sending.sent) {
            let text = match &line.text {
                Text::Plain(text) => text.clone(),
                Text::Session { id, conversation_id, opening } => {
                    let Some(plan) = &self.plan.present else {
                        needs_plan = true;
                        break;
                    };
                    let places = self.shared.agent_paths(self.id, self.record.generation);
                    let files = Files {
                        agent_id: self.id,
                        generation: self.record.generation,
                        home: places.home.clone(),
                    };
                    let folder = self.shared.folder.sockets(self.id, self.record.generation);
                    let mode = self.shared.runtime.socket_mode();
                    let outlet = self.calls.outlet(self.id, self.record.generation, &self.shared);
                    self.calls.sockets.listen(*conversation_id, None, &folder, mode, |listener| {
                        serve_own(listener, *conversation_id, outlet, files)
                    });
                    for server in &plan.mcp_servers {
                        let Some(gate) = &self.calls.gate else { break };
                        let key =
                            SessionKey { server_id: server.id, conversation_id: Some(*conversation_id) };
                        let serve = |listener| gate.serve_mcp(listener, key);
                        self.calls.sockets.listen(*conversation_id, Some(server.id), &folder, mode, serve);
                    }
                    render_session(id, opening, &places, *conversation_id, plan)
                }
            };
            shim.line(line.seq, text);
            shim.sending.sent = line.seq;
        }
        if needs_plan {
            self.ask_plan(AskReason::Plan);
        }
    }

    /// Finds the agent's shim after a restart of the host, or a broken connection.
    pub(super) async fn adopt_shim(&mut self) -> Result<(), Closed> {
        let dir = self.launch_dir();
        let until = Instant::now() + ANSWER_WAIT;
        loop {
            match Connection::open(&dir, self.record.machine.read + 1, self.shared.options.line_bytes).await {
                Ok(shim) => return self.attach_shim(shim).await,
                Err(error) => tracing::debug!(agent = self.id, %error, "the shim can't be reached"),
            }
            if let Ok(exit) = Exit::read(&dir) {
                self.read_leftover_lines(&dir).await;
                return self.handle_exit(&exit.ended).await;
            }
            let generation = self.record.generation;
            let has_record = ShimRecord::read(&dir).is_ok();
            let may_wait = self.record.phase == Phase::Launching && !has_record;
            let found = self.shared.runtime.find(&self.shared.folder, self.id, generation).await;
            // A shim in a container waits for its environment from a launch.
            let is_waiting = may_wait && matches!(self.shared.runtime, Runtime::Engine(_));
            if found == ShimState::Alive && !is_waiting && Instant::now() < until {
                sleep(LOOK).await;
                continue;
            }
            if may_wait {
                self.ask_plan(AskReason::Launch);
                return Ok(());
            }
            if matches!(self.shared.runtime, Runtime::Process) {
                kill_unresponsive_shim(self.id, &dir).await;
            }
            self.read_leftover_lines(&dir).await;
            self.shared.runtime.clean(&self.shared.folder, self.id, generation).await;
            if self.was_stopped_by_owner() {
                return self.report_owner_stop().await;
            }
            if self.stopping.is_some() {
                // A stop was under way, and may have removed the container.
                return self.finish_launch(EndReason::Stopped, None, None, None).await;
            }
            let lost = if let ShimState::Gone(lost) = found { lost } else { ShimLoss::Unknown };
            return self.finish_launch(lost.reason(), None, None, lost.detail().map(str::to_owned)).await;
        }
    }

    /// Reads the remaining lines of a dead shim.
    async fn read_leftover_lines(&mut self, dir: &Path) {
        let agent = self.id;
        let lost = |error: io::Error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(agent, %error, "the agent's last lines can't be read");
            }
        };
        let lines = match spool::read(dir, self.record.machine.read + 1) {
            Ok(lines) => lines,
            Err(error) => return lost(error),
        };
        for line in lines {
            match line {
                Ok((seq, line)) => self.handle_line(seq, &line).await,
                Err(error) => return lost(error),
            }
        }
    }

    pub(super) async fn attach_shim(&mut self, shim: Connection) -> Result<(), Closed> {
        self.record.machine.mark_taken(shim.greeting.taken, &mut self.changes.effects);
        self.shim = Some(shim);
        let had_gate = self.calls.gate.is_some();
        self.open_gate();
        match self.record.phase {
            Phase::Launching => {
                self.record.phase = Phase::Starting;
                self.record.machine.settings.home =
                    self.shared.agent_paths(self.id, self.record.generation).home;
                self.record.machine.greet();
                self.set_start_limit();
            }
            Phase::Starting => self.set_start_limit(),
            Phase::Running => {
                tracing::info!(agent = self.id, generation = self.record.generation, "an agent still runs");
                // The MCP connections ended with the previous host: sessions get new ones with their next turn.
                let settings = self.record.machine.settings.clone();
                self.record.machine.assignments_changed(settings);
                if !had_gate && self.record.machine.has_fixed_sessions() {
                    let what = "Its MCP servers ended with its host, and it can't open its sessions again.";
                    self.changes.effects.events.push(HostEvent::Lacks { what: what.to_owned() });
                }
            }
            Phase::Ended => {}
        }
        self.await_cancelled();
        if self.record.verdict.is_some() {
            self.stop();
        }
        self.commit().await
    }

    fn set_start_limit(&mut self) {
        let limit = self.plan.present.as_ref().and_then(|plan| plan.limits.start_seconds);
        let limit = limit.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        self.timers.start_by = Some(Instant::now() + limit.unwrap_or(self.shared.options.start));
    }
}

/// Kills an unresponsive shim with its agent. After a report of its loss no one would end it, and the next launch would
/// run next to it. A container is removed as a whole.
pub(super) async fn kill_unresponsive_shim(agent: i64, dir: &Path) {
    let Ok(record) = ShimRecord::read(dir) else { return };
    if record.end_shim() {
        tracing::warn!(agent, "the shim lives and doesn't answer: it is killed");
    }
    let until = Instant::now() + PROCESS_WAIT;
    while record.is_alive() && Instant::now() < until {
        sleep(LOOK).await;
    }
}
