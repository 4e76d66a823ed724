//! The agent's log: its launches, events that have a line, and its standard error.

use std::time::Duration;

use muster_egress::Rules;
use muster_protocol::{event::EndReason, frame::LogSource, plan::LaunchPlan};
use tokio::time::Instant;

use super::Agent;
use crate::logs::{StderrReader, has_output, line_about};

/// The standard error of the present launch.
#[derive(Default)]
pub(super) struct Stderr {
    /// `None` until the launch's secrets are known, which must not be in the log.
    reader: Option<StderrReader>,
    /// Time of the next reading.
    pub(super) due: Option<Instant>,
}

impl Agent {
    /// Writes to the log.
    pub(super) fn log(&self, source: LogSource, text: &str) {
        self.shared.logs.write(self.id, source, text);
    }

    /// Writes the lines about events that are about to be committed.
    pub(super) fn log_events(&self) {
        for event in &self.changes.effects.events {
            if let Some((source, text)) = line_about(event, self.plan.present.as_ref()) {
                self.log(source, &text);
            }
        }
    }

    /// Learns the secrets of a plan, and begins to read the standard error. During an emergency stop the plan may lack
    /// secrets.
    pub(super) fn learn_secrets(&mut self, plan: &LaunchPlan) {
        self.shared.logs.learn(self.id, &Rules::from_plan(plan).secrets);
        if self.stderr.reader.is_none() && !plan.stopped {
            let position = self.shared.folder.log(self.id).join("read");
            self.stderr.reader = Some(StderrReader::new(self.launch_dir(), position, self.record.generation));
            self.stderr.due = Some(Instant::now());
        }
    }

    /// Reads the standard error if it is due.
    pub(super) fn follow_stderr(&mut self, now: Instant) {
        if self.stderr.due.is_none_or(|due| due > now) {
            return;
        }
        let is_behind = self.read_stderr(false);
        let is_live = is_behind || self.shared.logs.is_watched(self.id);
        let pause = if is_live { Duration::from_millis(250) } else { Duration::from_secs(1) };
        self.stderr.due = Some(now + pause);
    }

    /// Writes the rest of the standard error and the end of the launch.
    pub(super) fn log_launch_end(
        &mut self,
        reason: EndReason,
        (code, signal): (Option<i32>, Option<i32>),
        detail: Option<&str>,
    ) {
        self.read_stderr(true);
        if self.has_unknown_stderr() {
            let text =
                "The last standard error is not in the log: this host didn't know the agent's secrets.";
            self.log(LogSource::Stderr, text);
        }
        let mut text = format!("Launch {} has ended: {reason:?}", self.record.generation);
        text.extend(code.map(|code| format!(", code {code}")));
        text.extend(signal.map(|signal| format!(", signal {signal}")));
        text.extend(detail.map(|detail| format!(". {detail}")));
        self.log(LogSource::Launch, &text);
    }

    /// Whether the launch has written standard error, and its secrets are not known.
    pub(super) fn has_unknown_stderr(&self) -> bool {
        self.stderr.reader.is_none() && has_output(&self.launch_dir())
    }

    /// Reads the standard error: some of it, or all. Returns whether there is more.
    fn read_stderr(&mut self, all: bool) -> bool {
        let Some(reader) = &mut self.stderr.reader else { return false };
        let read = match reader.read(all) {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(agent = self.id, %error, "the agent's standard error can't be read");
                return false;
            }
        };
        if read.text.is_empty() {
            return read.is_behind;
        }
        self.shared.logs.write(self.id, LogSource::Stderr, &read.text);
        if let Err(error) = reader.save_position(self.record.generation) {
            tracing::debug!(agent = self.id, %error, "the position in the standard error can't be saved");
        }
        read.is_behind
    }
}
