//! States of the agent's MCP servers, for people. A server may have many sessions: the last event counts.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use muster_protocol::{
    HostEvent,
    event::{McpReport, McpState, McpTool, McpToolReport},
};
use parking_lot::Mutex;

use crate::{bounds, host_services::HostServices};

/// All servers of a gate.
pub struct ServerStates {
    services: Arc<dyn HostServices>,
    known: Mutex<BTreeMap<i64, ServerState>>,
}

#[derive(Debug)]
struct ServerState {
    now: McpReport,
    /// The last report and its time.
    reported: Option<(McpReport, Instant)>,
    sessions: usize,
    /// New tools reported since this time.
    new_tools: (Instant, usize),
}

/// A counted session of a server; uncounted on drop.
pub struct CountedSession {
    states: Arc<ServerStates>,
    server_id: i64,
}

impl CountedSession {
    /// Counts a session.
    pub fn begin(states: &Arc<ServerStates>, server_id: i64) -> Self {
        states.change(server_id, |known| {
            known.sessions += 1;
            if known.now.state != McpState::Running {
                known.now.state = McpState::Starting;
            }
        });
        Self { states: Arc::clone(states), server_id }
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.states.change(self.server_id, |known| {
            known.sessions -= 1;
            if known.sessions == 0 && known.now.state != McpState::Failed {
                known.now.state = McpState::Idle;
            }
        });
    }
}

impl ServerStates {
    pub fn new(services: Arc<dyn HostServices>) -> Self {
        Self { services, known: Mutex::default() }
    }

    /// Reports a correct answer of a server.
    pub fn report_running(&self, server_id: i64) {
        self.change(server_id, |known| {
            let tools = std::mem::take(&mut known.now.tools);
            known.now = McpReport { tools, ..new_report(server_id, McpState::Running) };
        });
    }

    /// Reports a failure. `stderr` is the program's output, of which people see the end. Neither contains secrets.
    pub fn report_failure(&self, server_id: i64, error: String, mut stderr: String) {
        stderr.drain(..stderr.ceil_char_boundary(stderr.len().saturating_sub(4096)));
        self.change(server_id, |known| {
            known.now.state = McpState::Failed;
            known.now.error = Some(error);
            known.now.stderr = Some(stderr).filter(|stderr| !stderr.trim().is_empty());
        });
    }

    pub fn report_tools(&self, server_id: i64, tools: Vec<String>) {
        self.change(server_id, |known| known.now.tools = tools);
    }

    /// Reports new tools. Limits the rate: a server can define others with each list.
    pub fn report_new_tools(&self, server_id: i64, is_first: bool, mut tools: Vec<McpTool>) {
        self.change(server_id, |known| {
            let (since, count) = &mut known.new_tools;
            if since.elapsed() >= bounds::RETRY {
                (*since, *count) = (Instant::now(), 0);
            }
            tools.truncate(bounds::LIST - *count);
            *count += tools.len();
        });
        // The longest definitions fit into a gateway frame.
        for tools in tools.chunks(16) {
            let report = McpToolReport { server_id, is_first, tools: tools.to_vec() };
            self.services.report(HostEvent::McpTools(report));
        }
    }

    /// Sends delayed reports.
    pub fn flush(&self) {
        for known in self.known.lock().values_mut() {
            self.report_if_due(known);
        }
    }

    fn change(&self, server_id: i64, change: impl FnOnce(&mut ServerState)) {
        let mut all = self.known.lock();
        let known = all.entry(server_id).or_insert_with(|| ServerState {
            now: new_report(server_id, McpState::Idle),
            reported: None,
            sessions: 0,
            new_tools: (Instant::now(), 0),
        });
        change(known);
        self.report_if_due(known);
    }

    /// Limits the rate: an agent can start a failing server again and again.
    fn report_if_due(&self, known: &mut ServerState) {
        let reported = known.reported.as_ref();
        let is_due =
            reported.is_none_or(|(reported, at)| *reported != known.now && at.elapsed() >= bounds::RETRY);
        // Starting is reported only if it lasts.
        if is_due && !(known.reported.is_none() && known.now.state == McpState::Starting) {
            known.reported = Some((known.now.clone(), Instant::now()));
            self.services.report(HostEvent::McpServer(known.now.clone()));
        }
    }
}

fn new_report(server_id: i64, state: McpState) -> McpReport {
    McpReport { server_id, state, error: None, stderr: None, tools: Vec::new() }
}
