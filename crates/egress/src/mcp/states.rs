//! How the agent's MCP servers are doing, for people to see. A server may have many sessions: what happened last counts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use muster_protocol::{
    Happening,
    event::{McpReport, McpState},
};

use crate::shared::Shared;

/// How often a server is reported, at most: an agent can begin one that fails again and again. What came meanwhile is reported with
/// the gate's next look.
const AGAIN: Duration = Duration::from_secs(10);
/// How much of a standard error people are shown, in bytes.
pub const LONGEST_STDERR: usize = 4096;

/// All of a gate.
#[derive(Debug, Default)]
pub struct States(Mutex<BTreeMap<i64, Known>>);

#[derive(Debug)]
struct Known {
    now: McpReport,
    /// What was reported last, and when.
    told: Option<(McpReport, Instant)>,
    sessions: usize,
}

impl States {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session of a server, for as long as it lives.
pub struct Counted {
    shared: Arc<Shared>,
    server_id: i64,
}

impl Counted {
    /// A session of a server begins.
    pub fn begin(shared: &Arc<Shared>, server_id: i64) -> Self {
        change(shared, server_id, |known| {
            known.sessions += 1;
            if known.now.state != McpState::Running {
                known.now.state = McpState::Starting;
            }
        });
        Self { shared: Arc::clone(shared), server_id }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        change(&self.shared, self.server_id, |known| {
            known.sessions -= 1;
            if known.sessions == 0 && known.now.state != McpState::Failed {
                known.now.state = McpState::Idle;
            }
        });
    }
}

/// A server has answered as it should.
pub fn works(shared: &Shared, server_id: i64) {
    change(shared, server_id, |known| {
        let tools = std::mem::take(&mut known.now.tools);
        known.now = McpReport { tools, ..fresh(server_id, McpState::Running) };
    });
}

/// A server has failed. `stderr` is the end of what it said about that.
pub fn failed(shared: &Shared, server_id: i64, error: &str, stderr: &str) {
    let mut stderr = shared.secrets.hide(stderr);
    stderr.drain(..stderr.ceil_char_boundary(stderr.len().saturating_sub(LONGEST_STDERR)));
    let (error, stderr) =
        (shared.secrets.hide(error), Some(stderr).filter(|stderr| !stderr.trim().is_empty()));
    change(shared, server_id, |known| {
        known.now.state = McpState::Failed;
        (known.now.error, known.now.stderr) = (Some(error), stderr);
    });
}

/// A server has these tools.
pub fn has_tools(shared: &Shared, server_id: i64, tools: Vec<String>) {
    change(shared, server_id, |known| known.now.tools = tools);
}

/// Reports what had to wait.
pub fn flush(shared: &Shared) {
    for known in shared.states.lock().values_mut() {
        tell(shared, known);
    }
}

fn fresh(server_id: i64, state: McpState) -> McpReport {
    McpReport { server_id, state, error: None, stderr: None, tools: Vec::new() }
}

fn change(shared: &Shared, server_id: i64, change: impl FnOnce(&mut Known)) {
    let mut all = shared.states.lock();
    let known = all.entry(server_id).or_insert_with(|| Known {
        now: fresh(server_id, McpState::Idle),
        told: None,
        sessions: 0,
    });
    change(known);
    tell(shared, known);
}

fn tell(shared: &Shared, known: &mut Known) {
    let is_due = known.told.as_ref().is_none_or(|(told, at)| *told != known.now && at.elapsed() >= AGAIN);
    // That it is about to start is told if it stays so.
    if is_due && !(known.told.is_none() && known.now.state == McpState::Starting) {
        known.told = Some((known.now.clone(), Instant::now()));
        shared.outside.report(Happening::McpServer(known.now.clone()));
    }
}
