//! The handshake, and opening, reopening and closing the sessions of conversations.

use agent_client_protocol_schema::{
    ProtocolVersion,
    v1::{
        ClientCapabilities, CloseSessionRequest, ElicitationCapabilities, ElicitationFormCapabilities,
        Implementation, InitializeRequest, InitializeResponse, LoadSessionRequest, McpServer, McpServerStdio,
        NewSessionRequest, ResumeSessionRequest,
    },
};
use muster_protocol::{
    HostEvent,
    event::{TurnOutcome, Usage},
    plan::{LaunchPlan, McpTransport},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Capabilities, Effects, Machine, Pending, Settings, Text, offers::SessionOffers, rpc, turns::failed,
};
use crate::{mcp::socket_name, runtime::AgentPaths};

/// Ways to open a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Opening {
    New,
    /// A known session, without a replay.
    Resume {
        session: String,
    },
    /// A known session, with a replay.
    Load {
        session: String,
    },
}

impl Machine {
    /// Starts the handshake.
    pub fn greet(&mut self) {
        let forms = ElicitationCapabilities::new().form(ElicitationFormCapabilities::new());
        let host = Implementation::new("muster", env!("CARGO_PKG_VERSION"));
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().elicitation(forms))
            .client_info(host);
        let name = format!("{}.init", self.generation);
        self.pending.insert(name.clone(), Pending::Initialize);
        self.send(rpc::request(&name, "initialize", &request));
    }

    pub(super) fn handle_handshake(&mut self, answer: Result<&str, rpc::Failure>, fx: &mut Effects) {
        let response = match answer.map(muster_json::from_str::<InitializeResponse>) {
            Ok(Ok(response)) if response.protocol_version == ProtocolVersion::V1 => response,
            Ok(Ok(response)) => {
                let text =
                    format!("The agent speaks version {} of the protocol, not 1.", response.protocol_version);
                fx.greeted = Some(Err(text));
                return;
            }
            Ok(Err(error)) => {
                fx.greeted = Some(Err(format!("The agent's answer to the handshake is invalid: {error}.")));
                return;
            }
            Err(failure) => {
                fx.greeted = Some(Err(format!("The agent refused the handshake: {}", failure.text())));
                return;
            }
        };
        let able = &response.agent_capabilities;
        self.capabilities = Capabilities {
            is_known: true,
            image: able.prompt_capabilities.image,
            resume: able.session_capabilities.resume.is_some(),
            load: able.load_session,
            close: able.session_capabilities.close.is_some(),
        };
        let program =
            response.agent_info.map(|info| super::short(&format!("{} {}", info.name, info.version), 200));
        fx.greeted = Some(Ok(program));
    }

    /// How the agent can reopen a session.
    pub(super) fn reopen_method(&self, session: &str) -> Option<Opening> {
        let session = session.to_owned();
        if self.capabilities.resume {
            Some(Opening::Resume { session })
        } else if self.capabilities.load {
            Some(Opening::Load { session })
        } else {
            None
        }
    }

    pub(super) fn open_session(&mut self, id: i64, opening: Opening) {
        let Some(conversation) = self.conversations.get_mut(&id) else { return };
        let Some(active) = &conversation.turn else { return };
        let suffix = if opening == Opening::New { "new" } else { "again" };
        let name = format!("{}.{}.{suffix}", self.generation, active.turn.command_id);
        if let Opening::Resume { session } | Opening::Load { session } = &opening {
            conversation.session = Some(session.clone());
            conversation.is_replaying = true;
        }
        self.pending.insert(name.clone(), Pending::Open { conversation_id: id, opening: opening.clone() });
        self.write(Text::Session { id: name, conversation_id: id, opening });
    }

    /// Reopens an open session: closes it first, if the agent can.
    pub(super) fn reopen(&mut self, id: i64, session: &str, reopening: Opening) {
        let active = self.conversations.get(&id).and_then(|conversation| conversation.turn.as_ref());
        let Some(active) = active.filter(|_| self.capabilities.close) else {
            return self.open_session(id, reopening);
        };
        let name = format!("{}.{}.close", self.generation, active.turn.command_id);
        self.pending.insert(name.clone(), Pending::Close { conversation_id: id, reopening });
        self.send(rpc::request(&name, "session/close", &CloseSessionRequest::new(session.to_owned())));
    }

    pub(super) fn handle_session_response(
        &mut self,
        id: i64,
        opening: &Opening,
        answer: Result<&str, rpc::Failure>,
        fx: &mut Effects,
    ) {
        let Some(conversation) = self.conversations.get_mut(&id) else { return };
        conversation.is_replaying = false;
        let answer = match answer {
            Ok(answer) => muster_json::from_str::<Value>(answer).unwrap_or_default(),
            Err(failure) if !failure.is_auth_required() && *opening != Opening::New => {
                // The agent has forgotten the session. The conversation continues in a new one.
                conversation.session = None;
                return self.open_session(id, Opening::New);
            }
            Err(failure) => {
                conversation.session = None;
                let text = failed(&failure, fx);
                return self.end_turn(id, TurnOutcome::Failed, Some(text), Usage::default(), fx);
            }
        };
        if *opening == Opening::New {
            let Some(session) =
                answer.get("sessionId").and_then(Value::as_str).filter(|name| name.len() <= 500)
            else {
                let text = "The agent opened a session without naming it.".to_owned();
                return self.end_turn(id, TurnOutcome::Failed, Some(text), Usage::default(), fx);
            };
            conversation.session = Some(session.to_owned());
            conversation.is_new = true;
            (conversation.cost, conversation.context_tokens) = (None, None);
            let session = Some(session.to_owned());
            fx.events.push(HostEvent::Session { conversation_id: id, session });
        }
        let found = SessionOffers::in_answer(&answer);
        // Many agents report offers of new sessions only.
        if *opening == Opening::New || found != SessionOffers::default() {
            self.offers(found, fx);
        }
        if self.is_cancelled(id) {
            return self.end_unprompted(id, fx);
        }
        self.choose(id, &answer, fx);
    }

    /// Gives up opening sessions with lines after this number, without a plan: their turns fail.
    pub fn fail_unopened_sessions(&mut self, after: u64, reason: &str, fx: &mut Effects) {
        let mut waiting = Vec::new();
        for line in self.lines.iter_mut().filter(|line| line.seq > after) {
            if let Text::Session { id, conversation_id, .. } = &line.text {
                waiting.push((id.clone(), *conversation_id));
                // Lines are numbered without gaps, so a cancellation of the unsent request takes its place.
                let params = serde_json::json!({ "requestId": id });
                line.text = Text::Plain(rpc::notification("$/cancel_request", &params));
            }
        }
        for (name, id) in waiting {
            if self.pending.remove(&name).is_none() {
                continue;
            }
            let is_cancelled = self.is_cancelled(id);
            if let Some(conversation) = self.conversations.get_mut(&id) {
                (conversation.session, conversation.is_replaying) = (None, false);
            }
            let (outcome, error) = if is_cancelled {
                (TurnOutcome::Cancelled, None)
            } else {
                (TurnOutcome::Failed, Some(super::short(reason, 2000)))
            };
            self.end_turn(id, outcome, error, Usage::default(), fx);
        }
    }

    /// Whether a session can be closed and reopened.
    pub fn may_suspend(&self) -> bool {
        self.capabilities.close && self.may_reopen()
    }

    fn may_reopen(&self) -> bool {
        self.capabilities.resume || self.capabilities.load
    }

    /// Whether open sessions can't be reopened, and so keep their MCP servers.
    pub fn has_fixed_sessions(&self) -> bool {
        !self.may_reopen() && self.conversations.values().any(|conversation| conversation.session.is_some())
    }

    /// Conversations with an open and idle session.
    pub fn idle(&self) -> impl Iterator<Item = i64> {
        let idle = self.conversations.iter().filter(|(_, conversation)| {
            conversation.session.is_some()
                && conversation.turn.is_none()
                && conversation.waiting.is_empty()
                && conversation.writing.is_none()
        });
        idle.map(|(id, _)| *id)
    }

    /// Closes an idle session, and forgets its conversation. The next turn reopens it.
    pub fn suspend_session(&mut self, id: i64) {
        let session = self.conversations.remove(&id).and_then(|conversation| conversation.session);
        if let Some(session) = session {
            let name = format!("{}.close", self.own_name());
            self.pending.insert(name.clone(), Pending::Rest { conversation_id: id });
            self.send(rpc::request(&name, "session/close", &CloseSessionRequest::new(session)));
        }
    }

    /// Reopens a session, once the agent has closed it.
    pub(super) fn open_rested(&mut self, id: i64, reopening: Opening) {
        let resting = |pending: &&mut Pending| matches!(pending, Pending::Rest { conversation_id } if *conversation_id == id);
        match self.pending.values_mut().find(resting) {
            Some(pending) => *pending = Pending::Close { conversation_id: id, reopening },
            None => self.open_session(id, reopening),
        }
    }

    /// Gives up an unusable session with its pending requests.
    pub(super) fn give_up_session(&mut self, id: i64, fx: &mut Effects) {
        self.pending.retain(|_, pending| match pending {
            Pending::Initialize | Pending::Rest { .. } | Pending::Drop => true,
            Pending::Open { conversation_id, .. }
            | Pending::Model { conversation_id, .. }
            | Pending::Mode { conversation_id, .. }
            | Pending::Close { conversation_id, .. }
            | Pending::Prompt { conversation_id, .. } => *conversation_id != id,
        });
        let Some(conversation) = self.conversations.get_mut(&id) else { return };
        let session = conversation.session.take();
        (conversation.is_new, conversation.is_stale, conversation.is_replaying) = (false, false, false);
        for turn in &mut conversation.waiting {
            turn.session = None;
        }
        fx.events.push(HostEvent::Session { conversation_id: id, session: None });
        if let Some(session) = session.filter(|_| self.capabilities.close) {
            let name = format!("{}.close", self.own_name());
            self.pending.insert(name.clone(), Pending::Drop);
            self.send(rpc::request(&name, "session/close", &CloseSessionRequest::new(session)));
        }
    }

    /// Applies changed assignments: each session is reopened with its next turn.
    pub fn assignments_changed(&mut self, settings: Settings) {
        self.settings = settings;
        // Including sessions being opened, with the old assignments.
        for conversation in self.conversations.values_mut() {
            conversation.is_stale = true;
        }
    }
}

/// The line that opens a session, with Muster's own MCP server and the plan's. The agent starts a relay for each; the
/// relay starts servers inside the sandbox.
pub fn render_session(
    id: &str,
    opening: &Opening,
    places: &AgentPaths,
    conversation_id: i64,
    plan: &LaunchPlan,
) -> String {
    let home = &places.home;
    let relay = |name: &str, server_id: Option<i64>, program: Vec<String>| {
        let socket = places.sockets.join(socket_name(conversation_id, server_id));
        let mut args = places.shim.args.clone();
        args.extend(["mcp".to_owned(), socket.display().to_string()]);
        args.extend(program);
        McpServer::Stdio(McpServerStdio::new(name, &places.shim.command).args(args))
    };
    let mut servers = vec![relay("muster", None, Vec::new())];
    let is_off =
        |name: &str| plan.disabled_tool_groups.iter().any(|group| group.trim().eq_ignore_ascii_case(name));
    let others = plan
        .mcp_servers
        .iter()
        .filter(|server| !server.name.trim().eq_ignore_ascii_case("muster") && !is_off(server.name.trim()));
    servers.extend(others.map(|server| {
        let mut program = Vec::new();
        if let McpTransport::Stdio { command, args, .. } = &server.transport
            && server.runs_in_sandbox()
        {
            program.extend(["--".to_owned(), places.program(command).display().to_string()]);
            program.extend(args.iter().cloned());
        }
        relay(&server.name, Some(server.id), program)
    }));
    match opening {
        Opening::New => rpc::request(id, "session/new", &NewSessionRequest::new(home).mcp_servers(servers)),
        Opening::Resume { session } => {
            let request = ResumeSessionRequest::new(session.clone(), home).mcp_servers(servers);
            rpc::request(id, "session/resume", &request)
        }
        Opening::Load { session } => {
            let request = LoadSessionRequest::new(session.clone(), home).mcp_servers(servers);
            rpc::request(id, "session/load", &request)
        }
    }
}
