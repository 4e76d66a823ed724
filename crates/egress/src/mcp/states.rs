//! How the agent's MCP servers are doing, for people to see. A server may have many sessions: what happened last counts.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use muster_protocol::{
    Happening,
    event::{McpReport, McpState},
};
use parking_lot::Mutex;

use crate::{bounds, outside::Outside};

/// All of a gate.
pub struct States {
    outside: Arc<dyn Outside>,
    known: Mutex<BTreeMap<i64, Known>>,
}

#[derive(Debug)]
struct Known {
    now: McpReport,
    /// What was reported last, and when.
    told: Option<(McpReport, Instant)>,
    sessions: usize,
}

/// A session of a server, for as long as it lives.
pub struct Counted {
    states: Arc<States>,
    server_id: i64,
}

impl Counted {
    /// A session of a server begins.
    pub fn begin(states: &Arc<States>, server_id: i64) -> Self {
        states.change(server_id, |known| {
            known.sessions += 1;
            if known.now.state != McpState::Running {
                known.now.state = McpState::Starting;
            }
        });
        Self { states: Arc::clone(states), server_id }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.states.change(self.server_id, |known| {
            known.sessions -= 1;
            if known.sessions == 0 && known.now.state != McpState::Failed {
                known.now.state = McpState::Idle;
            }
        });
    }
}

impl States {
    pub fn new(outside: Arc<dyn Outside>) -> Self {
        Self { outside, known: Mutex::default() }
    }

    /// A server has answered as it should.
    pub fn works(&self, server_id: i64) {
        self.change(server_id, |known| {
            let tools = std::mem::take(&mut known.now.tools);
            known.now = McpReport { tools, ..fresh(server_id, McpState::Running) };
        });
    }

    /// A server has failed. `stderr` is what it said about that; people are shown its end. Both without secrets.
    pub fn failed(&self, server_id: i64, error: String, mut stderr: String) {
        stderr.drain(..stderr.ceil_char_boundary(stderr.len().saturating_sub(4096)));
        self.change(server_id, |known| {
            known.now.state = McpState::Failed;
            known.now.error = Some(error);
            known.now.stderr = Some(stderr).filter(|stderr| !stderr.trim().is_empty());
        });
    }

    /// A server has these tools.
    pub fn has_tools(&self, server_id: i64, tools: Vec<String>) {
        self.change(server_id, |known| known.now.tools = tools);
    }

    /// Reports what had to wait.
    pub fn flush(&self) {
        for known in self.known.lock().values_mut() {
            self.tell(known);
        }
    }

    fn change(&self, server_id: i64, change: impl FnOnce(&mut Known)) {
        let mut all = self.known.lock();
        let known = all.entry(server_id).or_insert_with(|| Known {
            now: fresh(server_id, McpState::Idle),
            told: None,
            sessions: 0,
        });
        change(known);
        self.tell(known);
    }

    /// Not too often: an agent can begin a server that fails again and again.
    fn tell(&self, known: &mut Known) {
        let told = known.told.as_ref();
        let is_due = told.is_none_or(|(told, at)| *told != known.now && at.elapsed() >= bounds::RETRY);
        // That it is about to start is told if it stays so.
        if is_due && !(known.told.is_none() && known.now.state == McpState::Starting) {
            known.told = Some((known.now.clone(), Instant::now()));
            self.outside.report(Happening::McpServer(known.now.clone()));
        }
    }
}

fn fresh(server_id: i64, state: McpState) -> McpReport {
    McpReport { server_id, state, error: None, stderr: None, tools: Vec::new() }
}
