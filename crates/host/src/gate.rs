//! The host's services for a launch's gate (`crates/egress`): questions to the control plane and people, reports, and
//! MCP servers.

use std::{
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use muster_egress::{CrossingDecision, CrossingRequest, Gate, HostServices, LeaseOutcome, NETWORK_TOOL};
use muster_protocol::{
    HostEvent,
    event::Asked,
    frame::LogSource,
    plan::{Crossing, Decision, Judgement, Limits, McpServer, McpTransport, PlanRequest, PlanResponse},
    spending::LeaseAsked,
};
use tokio::{
    net::UnixListener,
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    bounds::NETWORK_WAIT,
    clock,
    folder::create_private,
    gate_address::{self, GateAddress},
    late_approvals::LateApprovals,
    mcp::Call,
    programs::absolute,
    runtime::Runtime,
    shared::{Ask, Shared},
};

/// Why an MCP server with secrets isn't started next to containers.
const NO_SANDBOX: &str = "MCP servers with secrets run next to their agent's container, in a sandbox of bubblewrap. \
                          This host has none: install bubblewrap, and see `muster host doctor`";

/// Why the program in the agent's image isn't used.
const NOT_INSIDE: &str = "A server with secrets runs next to its agent's container, and never in it";

/// Why a test doesn't start a program in a container.
const INSIDE: &str = "it runs in its agent's container, and only a session of the agent starts it there";

/// Opens the gate of a launch.
pub fn open(dir: &Path, outlet: Outlet) -> io::Result<Gate> {
    let GateAddress { socket, .. } = GateAddress::new(dir);
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(outlet.shared.runtime.socket_mode()))?;
    let reach = Arc::clone(&outlet.shared.reach);
    let gate = Gate::serve(listener, reach, Arc::new(outlet));
    gate.serve_servers(listen_for_servers(dir)?);
    Ok(gate)
}

/// The socket for servers next to the agent. They see no other one.
fn listen_for_servers(dir: &Path) -> io::Result<UnixListener> {
    let GateAddress { socket, .. } = GateAddress::of_servers(dir);
    if let Some(folder) = socket.parent() {
        create_private(folder).map_err(io::Error::other)?;
    }
    let _ = std::fs::remove_file(&socket);
    UnixListener::bind(&socket)
}

/// A launch's view of the host.
#[derive(Clone)]
pub struct Outlet {
    pub agent_id: i64,
    pub generation: i64,
    pub shared: Arc<Shared>,
    /// To the agent's task: questions for people.
    pub calls: mpsc::Sender<Call>,
    /// To the agent's task: events and their launches.
    pub reports: mpsc::UnboundedSender<(i64, HostEvent)>,
    /// Late approvals by people.
    pub granted: LateApprovals,
}

impl Outlet {
    async fn ask(&self, wanted: PlanRequest) -> Option<PlanResponse> {
        self.ask_within(wanted, NETWORK_WAIT).await
    }

    /// Asks the control plane. `None`: it did not answer in time. It may be unreachable.
    pub async fn ask_within(&self, wanted: PlanRequest, wait: Duration) -> Option<PlanResponse> {
        let (told, answer) = oneshot::channel();
        let ask = Ask { agent_id: self.agent_id, generation: self.generation, wanted, told };
        let asking = async {
            self.shared.asks.send(ask).await.ok()?;
            answer.await.ok()
        };
        timeout(wait, asking).await.ok().flatten()
    }

    async fn judged(&self, asking: CrossingRequest) -> CrossingDecision {
        if self.granted.take(asking.conversation_id, &asking.crossing, Instant::now()) {
            return CrossingDecision::Approved;
        }
        match self.ask(PlanRequest::Judgement(asking.crossing.clone())).await {
            Some(PlanResponse::Judgement(Judgement::Allowed)) => CrossingDecision::Allowed,
            Some(
                PlanResponse::Judgement(Judgement::Refused { reason }) | PlanResponse::Refused { reason },
            ) => CrossingDecision::Refused { reason },
            Some(PlanResponse::Judgement(Judgement::Asked)) => self.asked(asking).await,
            Some(_) => {
                CrossingDecision::Refused { reason: "The control plane's answer is invalid.".to_owned() }
            }
            None => {
                let reason = "The control plane, which decides this, can't be reached. Try again later.";
                CrossingDecision::Refused { reason: reason.to_owned() }
            }
        }
    }

    /// Waits for a person, as long as clients wait.
    async fn asked(&self, asking: CrossingRequest) -> CrossingDecision {
        let CrossingRequest { crossing, conversation_id, title } = asking;
        let Crossing { tool, tool_kind, input, mcp_server_id: _ } = crossing.clone();
        let asked = Asked::Action { tool: Some(tool), tool_kind, title, input };
        let (decided, mut answer) = oneshot::channel();
        let call = Call::Judge { conversation_id, asked, crossing, decided };
        if self.calls.send(call).await.is_err() {
            return CrossingDecision::Refused { reason: "The agent is being stopped.".to_owned() };
        }
        let answered = match timeout(self.shared.options.ask_wait, &mut answer).await {
            Ok(answered) => answered.ok(),
            Err(_) => {
                // A later decision finds no waiting call; one that just arrived is not lost.
                answer.close();
                let Ok(answered) = answer.try_recv() else { return CrossingDecision::Asked };
                Some(answered)
            }
        };
        let refused = |reason: String| CrossingDecision::Refused { reason };
        match answered {
            Some((Decision::Approved { .. }, _)) => CrossingDecision::Approved,
            Some((Decision::Denied { comment: Some(comment) }, _)) => {
                refused(format!("A person refused it: {comment}"))
            }
            Some((Decision::Closed { reason }, _)) => refused(reason),
            Some(_) => refused("A person refused it.".to_owned()),
            None => refused("No one can be asked: this agent has no running turn.".to_owned()),
        }
    }
}

impl HostServices for Outlet {
    fn judge(&self, asking: CrossingRequest) -> BoxFuture<'_, CrossingDecision> {
        Box::pin(async move {
            // The gate reports refused connections itself.
            let title = (asking.crossing.tool != NETWORK_TOOL).then(|| asking.title.clone());
            let decision = self.judged(asking).await;
            if let (CrossingDecision::Refused { reason }, Some(title)) = (&decision, title) {
                let text = format!("{title} was refused: {reason}");
                self.shared.logs.write(self.agent_id, LogSource::Gate, &text);
            }
            decision
        })
    }

    fn lease(&self, asked: LeaseAsked) -> BoxFuture<'_, LeaseOutcome> {
        Box::pin(async move {
            match self.ask(PlanRequest::Lease(asked)).await {
                Some(PlanResponse::Lease(lease)) => LeaseOutcome::Granted(lease),
                Some(PlanResponse::Spent { reason, .. } | PlanResponse::Refused { reason }) => {
                    LeaseOutcome::Refused { reason }
                }
                Some(_) | None => LeaseOutcome::Refused {
                    reason: "The control plane, which manages the budget, can't be reached.".to_owned(),
                },
            }
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        // Without a journal the host is about to end.
        Box::pin(async { _ = self.shared.journal.wait_for_room().await })
    }

    fn report(&self, event: HostEvent) {
        let _ = self.reports.send((self.generation, event));
    }

    fn now(&self) -> i64 {
        clock::control_plane_now()
    }

    fn program(&self, server: &McpServer, limits: Limits) -> io::Result<tokio::process::Command> {
        let McpTransport::Stdio { command, args, environment } = &server.transport else {
            return Err(io::Error::other("it is not a program"));
        };
        if matches!(self.shared.runtime, Runtime::Engine(_)) {
            if server.runs_in_sandbox() {
                return Err(io::Error::other(INSIDE));
            }
            if !self.shared.options.sandbox {
                return Err(io::Error::other(NO_SANDBOX));
            }
            if !absolute(command).is_file() {
                return Err(io::Error::other(format!("{command:?} is not on the host. {NOT_INSIDE}")));
            }
        }
        let dir = self.shared.folder.launch(self.agent_id, self.generation);
        // By its id: names are long, and may differ only at their ends.
        let home = self.shared.folder.agent(self.agent_id).join("servers").join(server.id.to_string());
        create_private(&home).map_err(io::Error::other)?;
        // Files in a container's volume are invisible to programs next to it.
        let is_here = matches!(self.shared.runtime, Runtime::Process) && server.reads_workspace;
        let workspace = is_here.then(|| self.shared.folder.home(self.agent_id));
        let program = (command.as_str(), args.as_slice(), environment.as_slice());
        gate_address::server(
            &self.shared,
            program,
            limits,
            (&home, workspace),
            &GateAddress::of_servers(&dir),
        )
        .map_err(io::Error::other)
    }
}
