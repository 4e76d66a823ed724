//! Stopping an agent in escalating stages, and reporting its end.

use std::sync::Arc;

use muster_protocol::{
    HostEvent,
    event::{EndReason, RefusedReason},
    frame::LogSource,
};
use muster_shim::{
    folder,
    wire::{Ended, FromClient, Reason},
};
use rustix::process::Signal;
use tokio::time::Instant;

use super::{Agent, Phase, Plan, logs::Stderr, shim_io::kill_unresponsive_shim, timers::Timers};
use crate::{acp::short, journal::Closed, runtime::Runtime};

/// Reason of an end by the host's owner, without a running host.
const BY_OWNER: &str = "By its host's owner, with `muster host stop`.";

/// Progress of a stop.
#[derive(Debug)]
pub struct Stopping {
    stage: StopStage,
    /// Time of the next stage.
    pub until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopStage {
    /// Turns were cancelled.
    Turns,
    /// Stdin was closed.
    Stdin,
    /// SIGTERM.
    Terminate,
    /// SIGKILL. The gate is closed.
    Kill,
    /// SIGKILL had no effect: the shim is killed, or the container is removed.
    Remove,
}

impl Stopping {
    /// Whether all output of the agent must stop.
    pub(super) fn is_killed(&self) -> bool {
        matches!(self.stage, StopStage::Kill | StopStage::Remove)
    }
}

impl Agent {
    /// Starts to stop the agent: cancels its turns, and closes its stdin once none runs.
    pub(super) fn stop(&mut self) {
        if self.record.phase == Phase::Ended || self.stopping.is_some() {
            return;
        }
        self.timers.start_by = None;
        // Without a process there is nothing to wait for.
        let grace = self.shim.as_ref().map(|_| self.shared.options.grace);
        let until = Instant::now() + grace.unwrap_or_default();
        self.record.machine.cancel_all(&mut self.changes.effects);
        if !self.record.machine.is_busy() {
            self.send_to_shim(FromClient::Close);
            self.stopping = Some(Stopping { stage: StopStage::Stdin, until });
            return;
        }
        self.stopping = Some(Stopping { stage: StopStage::Turns, until });
    }

    /// Reports a launch that the control plane expects here, but that never started and won't.
    pub(super) fn report_unknown_launch(&mut self, generation: i64) {
        let is_coming =
            self.commands.next_launch.as_ref().is_some_and(|envelope| envelope.generation >= generation);
        if self.record.phase == Phase::Ended && self.record.generation < generation && !is_coming {
            tracing::warn!(
                agent = self.id,
                generation,
                "an agent is lost: the control plane expects a launch that is unknown here"
            );
            self.shared.counts.ended(EndReason::ShimLost);
            self.record.begin(generation);
            self.record.end();
            let detail = "This host knows nothing of this launch.";
            self.log(LogSource::Launch, &format!("Launch {generation} is lost. {detail}"));
            let detail = Some(detail.to_owned());
            let (reason, code, signal) = (EndReason::ShimLost, None, None);
            self.changes.effects.events.push(HostEvent::Ended { reason, code, signal, detail });
        }
    }

    /// Moves to the next stage.
    pub(super) async fn escalate_stop(&mut self) -> Result<(), Closed> {
        let Some(stopping) = &mut self.stopping else { return Ok(()) };
        stopping.until = Instant::now() + self.shared.options.grace;
        stopping.stage = match stopping.stage {
            StopStage::Turns => StopStage::Stdin,
            StopStage::Stdin => StopStage::Terminate,
            StopStage::Terminate => StopStage::Kill,
            StopStage::Kill | StopStage::Remove => StopStage::Remove,
        };
        let stage = stopping.stage;
        match stage {
            StopStage::Turns | StopStage::Stdin => self.send_to_shim(FromClient::Close),
            StopStage::Terminate => self.send_to_shim(FromClient::Signal(Signal::TERM.as_raw())),
            StopStage::Kill => {
                self.send_to_shim(FromClient::Signal(Signal::KILL.as_raw()));
                self.calls.gate = None;
            }
            StopStage::Remove => {
                self.send_to_shim(FromClient::Signal(Signal::KILL.as_raw()));
                // The connection ends with the shim or the container, and that ends the launch.
                if matches!(self.shared.runtime, Runtime::Process) {
                    kill_unresponsive_shim(self.id, &self.launch_dir()).await;
                }
                self.shared.runtime.clean(&self.shared.folder, self.id, self.record.generation).await;
            }
        }
        if self.shim.is_none() {
            // The process does not run yet, or no longer.
            return self.finish_launch(EndReason::Stopped, None, None, None).await;
        }
        Ok(())
    }

    /// Moves on once all turns have ended.
    pub(super) async fn continue_stop(&mut self) -> Result<(), Closed> {
        let is_waiting = self.stopping.as_ref().is_some_and(|stopping| stopping.stage == StopStage::Turns);
        if is_waiting && !self.record.machine.is_busy() {
            // Pending output comes before the end of stdin.
            self.commit().await?;
            return self.escalate_stop().await;
        }
        Ok(())
    }

    fn send_to_shim(&self, header: FromClient) {
        if let Some(shim) = &self.shim {
            shim.send_header(header);
        }
    }

    /// Ends an agent that doesn't speak the protocol.
    pub(super) fn fail_handshake(&mut self, why: &str) {
        self.timers.start_by = None;
        self.record.verdict = Some((EndReason::NoProtocol, why.to_owned()));
        self.send_to_shim(FromClient::Signal(Signal::KILL.as_raw()));
        self.stop();
    }

    /// Handles the agent's exit, after all its lines.
    pub(super) async fn handle_exit(&mut self, ended: &Ended) -> Result<(), Closed> {
        if self.was_stopped_by_owner() {
            return self.report_owner_stop().await;
        }
        let reason = match ended.reason {
            _ if self.stopping.is_some() || !self.commands.stops.is_empty() => EndReason::Stopped,
            Reason::Exited => EndReason::Exited,
            Reason::Killed => EndReason::Killed,
            Reason::OutOfMemory => EndReason::OutOfMemory,
            Reason::SpawnFailed => EndReason::SpawnFailed,
            Reason::LineTooLong => EndReason::LineTooLong,
            Reason::SpoolFailed => EndReason::DiskFull,
        };
        let exit = muster_shim::record::Exit::read(&self.launch_dir()).ok();
        let detail = exit.map(|exit| exit.detail).filter(|detail| !detail.is_empty());
        self.finish_launch(reason, ended.code, ended.signal, detail).await
    }

    /// Whether `muster host stop` ended the agent.
    pub(super) fn was_stopped_by_owner(&self) -> bool {
        self.shared.folder.stop_mark(self.id, self.record.generation).exists()
    }

    /// Its exit status says nothing.
    pub(super) async fn report_owner_stop(&mut self) -> Result<(), Closed> {
        self.finish_launch(EndReason::Stopped, None, None, Some(BY_OWNER.to_owned())).await
    }

    /// Reports the end, and releases all resources.
    pub(super) async fn finish_launch(
        &mut self,
        reason: EndReason,
        code: Option<i32>,
        signal: Option<i32>,
        detail: Option<String>,
    ) -> Result<(), Closed> {
        let (reason, code, signal, detail) = match self.record.verdict.take() {
            // The exit status of a deliberate end says nothing.
            Some((reason, why)) => (reason, None, None, Some(why)),
            None => (reason, code, signal, detail),
        };
        self.record.machine.finish_all(&mut self.changes.effects);
        self.calls.gate = None;
        while let Ok((generation, event)) = self.calls.reports.try_recv() {
            self.record_report(generation, event);
        }
        log_end(self.id, self.record.generation, (reason, code, signal));
        self.log_launch_end(reason, (code, signal), detail.as_deref());
        self.shared.counts.ended(reason);
        let detail = self.with_stderr(reason, detail);
        self.changes.effects.events.push(HostEvent::Ended { reason, code, signal, detail });
        let read = self.record.machine.read;
        let (agent_id, generation) = (self.id, self.record.generation);
        self.record.end();
        self.changes.done.append(&mut self.commands.stops);
        for (envelope, _) in std::mem::take(&mut self.commands.paused_turns) {
            self.refuse(&envelope, RefusedReason::NotRunning);
        }
        if let Some((envelope, _)) = self.commands.sync_again.take() {
            self.refuse(&envelope, RefusedReason::NotRunning);
        }
        self.reset_launch();
        self.commit().await?;
        let mut leaving = self.shim.take();
        if let Some(shim) = &leaving {
            if read > 0 {
                shim.send_header(FromClient::Trim(read));
            }
            shim.send_header(FromClient::Bye);
        }
        let shared = Arc::clone(&self.shared);
        self.leaving.spawn(async move {
            // The shim closes the connection when it exits, after an hour at the latest.
            while let Some(shim) = &mut leaving
                && shim.next().await.is_some()
            {}
            shared.runtime.clean(&shared.folder, agent_id, generation).await;
        });
        self.shared.set_running(self.id, None);
        if self.waits_for_home() {
            return Ok(());
        }
        match self.commands.next_launch.take() {
            Some(envelope) => self.begin_launch(&envelope).await,
            None => Ok(()),
        }
    }

    /// Drops the launch's in-memory state.
    fn reset_launch(&mut self) {
        self.commands.awaiting_plan.clear();
        self.plan = Plan::default();
        self.calls.forget();
        self.timers = Timers::default();
        self.stderr = Stderr::default();
        self.stopping = None;
    }

    fn with_stderr(&self, reason: EndReason, detail: Option<String>) -> Option<String> {
        if reason == EndReason::Stopped || reason == EndReason::ImageNotFound {
            return detail;
        }
        // In characters, for people.
        let most = 2000;
        let text = if self.has_unknown_stderr() {
            "The last standard error is withheld: this host didn't know the agent's secrets.".to_owned()
        } else {
            let stderr = folder::stderr(&self.launch_dir()).unwrap_or_default();
            self.shared.logs.hide(self.id, &String::from_utf8_lossy(&stderr))
        };
        let text = text.trim();
        if text.is_empty() {
            return detail.map(|detail| short(&detail, most));
        }
        let skipped = text.chars().count().saturating_sub(most);
        let end: String = text.chars().skip(skipped).collect();
        Some(match detail {
            Some(detail) => format!("{}\n{end}", short(&detail, most)),
            None => end,
        })
    }
}

/// Logs the end of a launch. An end that was not asked for is a warning.
fn log_end(agent: i64, generation: i64, (reason, code, signal): (EndReason, Option<i32>, Option<i32>)) {
    match reason {
        EndReason::Stopped => tracing::info!(agent, generation, ?reason, code, signal, "an agent has ended"),
        EndReason::ShimLost => tracing::warn!(agent, generation, "an agent is lost"),
        _ => tracing::warn!(agent, generation, ?reason, code, signal, "an agent has ended"),
    }
}
