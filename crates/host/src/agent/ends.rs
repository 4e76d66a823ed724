//! Stopping an agent, in steps that become harder; and what is reported when it has ended.

use std::sync::Arc;

use muster_protocol::{
    Happening,
    event::{EndReason, RefusedReason},
};
use muster_shim::{
    folder,
    wire::{Ended, FromClient, Reason},
};
use rustix::process::Signal;
use tokio::time::Instant;

use super::{Agent, Phase, Plan, lines::end_silent, times::Times};
use crate::{acp::short, journal::Closed, runtime::Runtime};

/// What is reported of an agent that ended without a host.
const BY_OPERATOR: &str = "By its host's operator, with `muster host stop`.";

/// How far stopping has come.
#[derive(Debug)]
pub struct Stopping {
    step: Step,
    /// When the next step follows.
    pub until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its turns were cancelled.
    Turns,
    /// Its stdin was closed.
    Stdin,
    /// SIGTERM.
    Terminate,
    /// SIGKILL. Its gate is closed.
    Kill,
    /// SIGKILL was of no use: its shim is killed, or its container is removed.
    Remove,
}

impl Stopping {
    /// Whether nothing of the agent's may get out any more.
    pub(super) fn is_killed(&self) -> bool {
        matches!(self.step, Step::Kill | Step::Remove)
    }
}

impl Agent {
    /// Begins to stop the agent: cancels its turns, and closes its stdin as soon as none runs.
    pub(super) fn stop(&mut self) {
        if self.record.phase == Phase::Ended || self.stopping.is_some() {
            return;
        }
        self.times.start_by = None;
        // Without a process there is nothing to wait for.
        let grace = self.shim.as_ref().map(|_| self.shared.options.grace);
        let until = Instant::now() + grace.unwrap_or_default();
        self.record.machine.cancel_all(&mut self.changes.effects);
        if !self.record.machine.is_busy() {
            self.say(FromClient::Close);
            self.stopping = Some(Stopping { step: Step::Stdin, until });
            return;
        }
        self.stopping = Some(Stopping { step: Step::Turns, until });
    }

    /// The control plane thinks that a launch runs here. If it never began here, and won't, it has to know.
    pub(super) fn wanted(&mut self, generation: i64) {
        let is_coming = self.orders.next_launch.as_ref().is_some_and(|order| order.generation >= generation);
        if self.record.phase == Phase::Ended && self.record.generation < generation && !is_coming {
            tracing::info!(
                agent = self.id,
                generation,
                "an agent is wanted here of whose launch this host knows nothing"
            );
            self.record.begin(generation);
            self.record.end();
            let detail = Some("This host knows nothing of this launch.".to_owned());
            let (reason, code, signal) = (EndReason::ShimLost, None, None);
            self.changes.effects.events.push(Happening::Ended { reason, code, signal, detail });
        }
    }

    /// The time for a step is over.
    pub(super) async fn stop_harder(&mut self) -> Result<(), Closed> {
        let Some(stopping) = &mut self.stopping else { return Ok(()) };
        stopping.until = Instant::now() + self.shared.options.grace;
        stopping.step = match stopping.step {
            Step::Turns => Step::Stdin,
            Step::Stdin => Step::Terminate,
            Step::Terminate => Step::Kill,
            Step::Kill | Step::Remove => Step::Remove,
        };
        let step = stopping.step;
        match step {
            Step::Turns | Step::Stdin => self.say(FromClient::Close),
            Step::Terminate => self.say(FromClient::Signal(Signal::TERM.as_raw())),
            Step::Kill => {
                self.say(FromClient::Signal(Signal::KILL.as_raw()));
                self.calls.gate = None;
            }
            Step::Remove => {
                self.say(FromClient::Signal(Signal::KILL.as_raw()));
                // The connection to its shim ends with the shim or the container, and that is the agent's end.
                if matches!(self.shared.runtime, Runtime::Process) {
                    end_silent(self.id, &self.dir()).await;
                }
                self.shared.runtime.clean(&self.shared.folder, self.id, self.record.generation).await;
            }
        }
        if self.shim.is_none() {
            // Nothing runs yet, or nothing any more.
            return self.ended(EndReason::Stopped, None, None, None).await;
        }
        Ok(())
    }

    /// The turns have ended that were waited for.
    pub(super) async fn turns_ended(&mut self) -> Result<(), Closed> {
        let is_waiting = self.stopping.as_ref().is_some_and(|stopping| stopping.step == Step::Turns);
        if is_waiting && !self.record.machine.is_busy() {
            // What is to be written comes before the end of stdin.
            self.commit().await?;
            return self.stop_harder().await;
        }
        Ok(())
    }

    fn say(&self, header: FromClient) {
        if let Some(shim) = &self.shim {
            shim.say(header);
        }
    }

    /// The agent doesn't speak the protocol. It is ended.
    pub(super) fn not_greeted(&mut self, why: &str) {
        self.times.start_by = None;
        self.record.verdict = Some((EndReason::NoProtocol, why.to_owned()));
        self.say(FromClient::Signal(Signal::KILL.as_raw()));
        self.stop();
    }

    /// The agent has ended, and all its lines were read.
    pub(super) async fn exited(&mut self, ended: &Ended) -> Result<(), Closed> {
        if self.was_stopped_by_operator() {
            return self.stopped_by_operator().await;
        }
        let reason = match ended.reason {
            _ if self.stopping.is_some() || !self.orders.stops.is_empty() => EndReason::Stopped,
            Reason::Exited => EndReason::Exited,
            Reason::Killed => EndReason::Killed,
            Reason::OutOfMemory => EndReason::OutOfMemory,
            Reason::SpawnFailed => EndReason::SpawnFailed,
            Reason::LineTooLong => EndReason::LineTooLong,
            Reason::SpoolFailed => EndReason::DiskFull,
        };
        let exit = muster_shim::record::Exit::read(&self.dir()).ok();
        let detail = exit.map(|exit| exit.detail).filter(|detail| !detail.is_empty());
        self.ended(reason, ended.code, ended.signal, detail).await
    }

    /// Whether `muster host stop` has ended it.
    pub(super) fn was_stopped_by_operator(&self) -> bool {
        self.shared.folder.stop_mark(self.id, self.record.generation).exists()
    }

    /// However it ended: that says nothing.
    pub(super) async fn stopped_by_operator(&mut self) -> Result<(), Closed> {
        self.ended(EndReason::Stopped, None, None, Some(BY_OPERATOR.to_owned())).await
    }

    /// Reports the end, and lets go of everything.
    pub(super) async fn ended(
        &mut self,
        reason: EndReason,
        code: Option<i32>,
        signal: Option<i32>,
        detail: Option<String>,
    ) -> Result<(), Closed> {
        let (reason, code, signal, detail) = match self.record.verdict.take() {
            // It was ended for this, so how it ended says nothing.
            Some((reason, why)) => (reason, None, None, Some(why)),
            None => (reason, code, signal, detail),
        };
        self.record.machine.finish_all(&mut self.changes.effects);
        self.calls.gate = None;
        while let Ok((generation, happening)) = self.calls.reports.try_recv() {
            self.reported(generation, happening);
        }
        tracing::info!(
            agent = self.id,
            generation = self.record.generation,
            ?reason,
            code,
            signal,
            "an agent has ended"
        );
        let detail = self.with_stderr(reason, detail);
        self.changes.effects.events.push(Happening::Ended { reason, code, signal, detail });
        let read = self.record.machine.read;
        let (agent_id, generation) = (self.id, self.record.generation);
        self.record.end();
        self.changes.done.append(&mut self.orders.stops);
        for (order, _) in std::mem::take(&mut self.orders.held) {
            self.refuse(&order, RefusedReason::NotRunning);
        }
        if let Some((order, _)) = self.orders.sync_again.take() {
            self.refuse(&order, RefusedReason::NotRunning);
        }
        self.forget();
        self.commit().await?;
        let mut leaving = self.shim.take();
        if let Some(shim) = &leaving {
            if read > 0 {
                shim.say(FromClient::Trim(read));
            }
            shim.say(FromClient::Bye);
        }
        let shared = Arc::clone(&self.shared);
        self.leaving.spawn(async move {
            // It closes the connection when it has gone, and goes by itself after an hour.
            while let Some(shim) = &mut leaving
                && shim.next().await.is_some()
            {}
            shared.runtime.clean(&shared.folder, agent_id, generation).await;
        });
        self.shared.note(self.id, None);
        if self.waits_for_home() {
            return Ok(());
        }
        match self.orders.next_launch.take() {
            Some(order) => self.launch(&order).await,
            None => Ok(()),
        }
    }

    /// What was only in memory belonged to this launch.
    fn forget(&mut self) {
        self.orders.planned.clear();
        self.plan = Plan::default();
        self.calls.forget();
        self.times = Times::default();
        self.stopping = None;
    }

    fn with_stderr(&self, reason: EndReason, detail: Option<String>) -> Option<String> {
        if reason == EndReason::Stopped || reason == EndReason::ImageNotFound {
            return detail;
        }
        // What people get to read, in characters.
        let most = 2000;
        let stderr = folder::stderr(&self.dir()).unwrap_or_default();
        let text = String::from_utf8_lossy(&stderr);
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
