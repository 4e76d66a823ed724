//! Logs of agents: standard error, launches, refusals of the gate, errors of MCP servers. Only the host keeps them,
//! within a bound, and sends lines to the control plane while people look.
//!
//! - `file.rs`: a log on disk. `stderr.rs`: follows an agent's standard error.
//! - `lines.rs`: lines about events.

mod file;
mod lines;
mod stderr;

use std::{
    collections::BTreeMap,
    io, mem,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use muster_egress::Secrets;
use muster_protocol::{
    Secret,
    frame::{LogBatch, LogLine, LogSource},
};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use self::file::LogFile;
pub use self::{
    lines::line_about,
    stderr::{StderrReader, has_output},
};
use crate::{bounds, clock, folder::Folder};

/// Text of one line, in bytes. Longer lines become several.
const LINE: usize = 2 << 10;

/// The logs of all agents.
#[derive(Debug)]
pub struct Logs {
    folder: Folder,
    /// Batches for the control plane. Overflow is dropped: viewers see a gap in the numbers.
    to: mpsc::Sender<LogBatch>,
    agents: Mutex<BTreeMap<i64, Arc<AgentLog>>>,
}

#[derive(Debug, Default)]
struct AgentLog {
    /// Removed from lines.
    secrets: Secrets,
    /// Until when people look, by the control plane's clock.
    watched_until: AtomicI64,
    /// `None` until it is used.
    file: Mutex<Option<LogFile>>,
}

impl Logs {
    pub fn new(folder: Folder, to: mpsc::Sender<LogBatch>) -> Self {
        Self { folder, to, agents: Mutex::default() }
    }

    /// Adds secrets of an agent, to be removed from its lines.
    pub fn learn(&self, agent_id: i64, secrets: &[Secret]) {
        self.of(agent_id).secrets.add(secrets);
    }

    /// A text without the agent's secrets.
    pub fn hide(&self, agent_id: i64, text: &str) -> String {
        self.of(agent_id).secrets.hide(text)
    }

    /// Writes the lines of a text.
    pub fn write(&self, agent_id: i64, source: LogSource, text: &str) {
        let log = self.of(agent_id);
        let text: Vec<String> = text.lines().map(plain).collect();
        let text = log.secrets.hide(&text.join("\n"));
        let time = clock::now();
        let line = |text: &str| LogLine { time, source, text: text.to_owned() };
        let lines: Vec<LogLine> = text.lines().flat_map(pieces).map(line).collect();
        if lines.is_empty() {
            return;
        }
        let mut file = log.file.lock();
        let written = self.opened(agent_id, &mut file).and_then(|file| {
            let position = file.append(&lines)?;
            Ok((file.begun_at, position))
        });
        match written {
            Ok(place) if log.is_watched() => self.send(agent_id, place, lines),
            Ok(_) => {}
            Err(error) => {
                // The host's owner may have removed the folder.
                *file = None;
                tracing::debug!(agent = agent_id, %error, "the agent's log can't be written");
            }
        }
    }

    /// Whether people look at the log.
    pub fn is_watched(&self, agent_id: i64) -> bool {
        self.of(agent_id).is_watched()
    }

    /// Sends new lines until then, and with `tail` first the end of the log.
    pub fn watch(&self, agent_id: i64, until: i64, tail: bool) {
        let log = self.of(agent_id);
        // Locked, so that no line comes between the end of the log and the new lines.
        let mut file = log.file.lock();
        log.watched_until.store(until, Ordering::Relaxed);
        if !tail {
            return;
        }
        let read = self.opened(agent_id, &mut file).and_then(|file| {
            let (position, lines) = file.tail(bounds::PORTION)?;
            Ok(((file.begun_at, position), lines))
        });
        match read {
            Ok((place, lines)) => self.send(agent_id, place, lines),
            Err(error) => tracing::warn!(agent = agent_id, %error, "the agent's log can't be read"),
        }
    }

    /// Forgets all viewers: without a connection no one looks.
    pub fn unwatch(&self) {
        for log in self.agents.lock().values() {
            log.watched_until.store(0, Ordering::Relaxed);
        }
    }

    fn of(&self, agent_id: i64) -> Arc<AgentLog> {
        Arc::clone(self.agents.lock().entry(agent_id).or_default())
    }

    fn opened<'a>(&self, agent_id: i64, file: &'a mut Option<LogFile>) -> io::Result<&'a mut LogFile> {
        Ok(match file {
            Some(file) => file,
            None => file.insert(LogFile::open(self.folder.log(agent_id), clock::now())?),
        })
    }

    /// Sends lines in batches of 8 KiB. `place` is when the log was begun, and the first line's number.
    fn send(&self, agent_id: i64, (begun_at, mut position): (i64, i64), lines: Vec<LogLine>) {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut flush = |batch: Vec<LogLine>| {
            let count = batch.len() as u64;
            let _ = self.to.try_send(LogBatch { agent_id, begun_at, position, lines: batch });
            position = position.saturating_add_unsigned(count);
        };
        for line in lines {
            // Empty lines take space too.
            let size = line.text.len() + 64;
            if bytes + size > 8 << 10 && !batch.is_empty() {
                flush(mem::take(&mut batch));
                bytes = 0;
            }
            bytes += size;
            batch.push(line);
        }
        // Without any line, the batch says that the log is empty.
        flush(batch);
    }
}

impl AgentLog {
    fn is_watched(&self) -> bool {
        self.watched_until.load(Ordering::Relaxed) > clock::control_plane_now()
    }
}

/// A line without a terminal's sequences, such as colours, and other control characters.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        if char == '\u{1b}' && chars.as_str().starts_with('[') {
            // Up to its letter; `[` would be one.
            chars.next();
            let _ = chars.find(|char| ('@'..='~').contains(char));
        } else if char == '\t' || !char.is_control() {
            plain.push(char);
        }
    }
    plain
}

/// A line in pieces that are short enough.
fn pieces(line: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), line);
    while rest.len() > LINE {
        let (piece, later) = rest.split_at(rest.floor_char_boundary(LINE));
        pieces.push(piece);
        rest = later;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs() -> (tempfile::TempDir, Logs, mpsc::Receiver<LogBatch>) {
        let dir = tempfile::tempdir().unwrap();
        let (to, sent) = mpsc::channel(256);
        let logs = Logs::new(Folder::open(dir.path()).unwrap(), to);
        (dir, logs, sent)
    }

    /// The lines sent so far, with their numbers.
    fn heard(sent: &mut mpsc::Receiver<LogBatch>) -> Vec<(i64, String)> {
        let mut all = Vec::new();
        while let Ok(batch) = sent.try_recv() {
            let texts = batch.lines.into_iter().map(|line| line.text);
            all.extend((batch.position..).zip(texts));
        }
        all
    }

    #[test]
    fn lines_are_sent_while_people_look_after_the_end_of_the_log() {
        let (_dir, logs, mut sent) = logs();
        logs.write(7, LogSource::Launch, "one");
        logs.write(8, LogSource::Launch, "of another agent");
        assert!(heard(&mut sent).is_empty());
        let until = clock::control_plane_now() + 60_000;
        logs.watch(7, until, true);
        logs.write(7, LogSource::Stderr, "two\n\n\u{1b}[1;31mthree\u{1b}[0m\u{7}");
        let all = [(1, "one"), (2, "two"), (3, ""), (4, "three")].map(|(at, text)| (at, text.to_owned()));
        assert_eq!(heard(&mut sent), all);
        logs.watch(7, until, false);
        assert!(heard(&mut sent).is_empty(), "a renewal repeats nothing");
        logs.watch(7, until, true);
        assert_eq!(heard(&mut sent), all);
        logs.unwatch();
        logs.write(7, LogSource::Stderr, "four");
        logs.watch(8, until, false);
        assert!(heard(&mut sent).is_empty());
        logs.watch(9, until, true);
        assert!(sent.try_recv().unwrap().lines.is_empty(), "an empty log answers too");
    }

    #[test]
    fn secrets_are_removed_and_long_lines_become_several() {
        let (dir, logs, mut sent) = logs();
        logs.learn(7, &[Secret::from("sk-live-canary".to_owned())]);
        logs.watch(7, clock::control_plane_now() + 60_000, false);
        logs.write(7, LogSource::Stderr, "the key is sk-live-\u{1b}[2mcanary, or sk%2Dlive%2Dcanary");
        // Across the cut of a long line.
        let long = format!("{}sk-live-canary{}", "ä".repeat(1020), "b".repeat(9000));
        logs.write(7, LogSource::Stderr, &long);
        let heard = heard(&mut sent);
        assert_eq!(heard[0].1, "the key is •••, or •••");
        let whole: String = heard[1..].iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(whole, long.replace("sk-live-canary", "•••"));
        assert!(heard.iter().all(|(_, text)| text.len() <= LINE) && heard.len() > 4);
        let folder = Folder::open(dir.path()).unwrap().log(7);
        for entry in std::fs::read_dir(folder).unwrap() {
            assert!(!std::fs::read_to_string(entry.unwrap().path()).unwrap().contains("canary"));
        }
    }

    #[test]
    fn a_log_that_was_removed_begins_again() {
        let (dir, logs, mut sent) = logs();
        logs.write(7, LogSource::Launch, "one");
        std::fs::remove_dir_all(Folder::open(dir.path()).unwrap().log(7)).unwrap();
        logs.write(7, LogSource::Launch, "lost");
        logs.write(7, LogSource::Launch, "two");
        logs.watch(7, clock::control_plane_now() + 60_000, true);
        assert_eq!(heard(&mut sent), [(1, "two".to_owned())]);
    }

    #[test]
    fn a_full_log_is_shown_from_its_end() {
        let (_dir, logs, mut sent) = logs();
        for n in 0..1000 {
            logs.write(7, LogSource::Stderr, &format!("{n:0>1000}"));
        }
        logs.watch(7, clock::control_plane_now() + 60_000, true);
        let heard = heard(&mut sent);
        assert!(heard.len() > 200 && heard.len() < 300, "{}", heard.len());
        assert!(heard.windows(2).all(|two| two[1].0 == two[0].0 + 1));
        assert_eq!(heard.last().unwrap(), &(1000, format!("{:0>1000}", 999)));
    }
}
