//! The methods of the protocol.
//!
//! The ACP crate awaits each handler before it reads the next message. So handlers start a task that responds later,
//! and `session/cancel` takes effect at once.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use agent_client_protocol::{
    Client, Error, Lines,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo, Responder,
        schema::{
            AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, ContentBlock,
            EmbeddedResourceResource, Implementation, InitializeRequest, InitializeResponse,
            ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
            McpCapabilities, McpServer, NewSessionRequest, NewSessionResponse, PromptCapabilities,
            PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse, Role,
            SessionCapabilities, SessionCloseCapabilities, SessionId, SessionInfo, SessionListCapabilities,
            SessionNotification, SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest,
        },
    },
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    demo, deterministic,
    history::{Entry, Record, SessionStore, truncate},
    mcp::Servers,
    model,
    outbound::Http,
    session::Session,
    settings::Settings,
    turn::{Turn, replay_entry},
    wire::{self, Wire},
};

/// How long a stopping agent waits for its host to read and its turns to end.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("it can't start: {0}")]
    Start(#[from] io::Error),
    #[error("the connection broke: {0}")]
    Connection(#[from] Error),
}

pub struct Agent {
    pub settings: Settings,
    pub wire: Wire,
    pub http: Http,
    store: SessionStore,
    client: OnceLock<InitializeRequest>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    tasks: TaskTracker,
}

pub async fn serve(settings: Settings) -> Result<(), ServeError> {
    let wire = Wire::stdout()?;
    let transport = Lines::new(wire.sink(), wire::stdin()?);
    let agent = Arc::new(Agent {
        store: SessionStore::new(&settings.home),
        settings,
        wire,
        http: Http::default(),
        client: OnceLock::new(),
        sessions: Mutex::default(),
        tasks: TaskTracker::new(),
    });
    let served = connect(&agent, transport).await;
    for session in agent.sessions.lock().values() {
        session.close();
    }
    let _ = timeout(SHUTDOWN_WAIT, agent.wire.flush()).await;
    Ok(served?)
}

async fn connect(
    agent: &Arc<Agent>,
    transport: impl agent_client_protocol::ConnectTo<agent_client_protocol::Agent> + 'static,
) -> Result<(), Error> {
    /// A handler that responds with the result of a method of [`Agent`].
    macro_rules! answer {
        ($method:ident, $request:ty) => {{
            let agent = agent.clone();
            async move |request: $request, responder: Responder<_>, _: ConnectionTo<Client>| {
                let answering = agent.clone();
                agent.answer(responder, async move { answering.$method(request).await });
                Ok(())
            }
        }};
    }
    let (initialized, prompted, cancelled, chosen) =
        (agent.clone(), agent.clone(), agent.clone(), agent.clone());
    agent_client_protocol::Agent
        .v1()
        .name("muster-agent")
        .on_receive_request(
            async move |request: InitializeRequest, responder: Responder<_>, _: ConnectionTo<Client>| {
                responder.respond(initialized.initialize(request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(answer!(create, NewSessionRequest), agent_client_protocol::on_receive_request!())
        .on_receive_request(answer!(load, LoadSessionRequest), agent_client_protocol::on_receive_request!())
        .on_receive_request(
            answer!(resume, ResumeSessionRequest),
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest,
                        responder: Responder<_>,
                        _: ConnectionTo<Client>| {
                responder.respond_with_result(chosen.set_option(&request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(answer!(list, ListSessionsRequest), agent_client_protocol::on_receive_request!())
        .on_receive_request(answer!(close, CloseSessionRequest), agent_client_protocol::on_receive_request!())
        .on_receive_request(
            async move |request: PromptRequest,
                        responder: Responder<PromptResponse>,
                        cx: ConnectionTo<Client>| {
                // Not in the task: an immediate `session/cancel` must find the turn.
                match prompted.begin_turn(&request.session_id) {
                    Ok((session, cancel)) => {
                        let turn = prompted.clone().prompt(session, cancel, cx, request);
                        prompted.answer(responder, turn);
                        Ok(())
                    }
                    Err(error) => responder.respond_with_error(error),
                }
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _: ConnectionTo<Client>| {
                if let Ok(session) = cancelled.session(&notification.session_id) {
                    session.cancel();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(transport)
        .await
}

impl Agent {
    fn answer<T: agent_client_protocol::JsonRpcResponse + Send>(
        &self,
        responder: Responder<T>,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) {
        self.tasks.spawn(async move {
            // Fails only after the connection has ended.
            let _ = responder.respond_with_result(work.await);
        });
    }

    fn initialize(&self, request: InitializeRequest) -> InitializeResponse {
        // A client that initializes again is the same.
        let _ = self.client.set(request);
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions);
        let this = Implementation::new("muster-agent", env!("CARGO_PKG_VERSION"))
            .title("Muster's reference agent".to_owned());
        InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(this)
    }

    /// Whether the client can show forms to a person.
    pub fn can_elicit(&self) -> bool {
        let elicitation =
            self.client.get().and_then(|client| client.client_capabilities.elicitation.as_ref());
        elicitation.is_some_and(|can| can.form.is_some())
    }

    /// Whether the client judges each call of an MCP server's tool itself, as Muster's gate does: a person who has
    /// permitted a call would be asked a second time.
    pub fn is_judged_by_client(&self) -> bool {
        let info = self.client.get().and_then(|client| client.client_info.as_ref());
        info.is_some_and(|info| info.name == "muster")
    }

    pub async fn update(&self, session: &Session, update: SessionUpdate) -> io::Result<()> {
        let params = SessionNotification::new(session.id.clone(), update);
        let message = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        self.wire.write_line(message.to_string()).await
    }

    async fn create(&self, request: NewSessionRequest) -> Result<NewSessionResponse, Error> {
        let session = self.open(Record::new(request.cwd), request.mcp_servers)?;
        if let Err(error) = session.save().await {
            self.sessions.lock().remove(&session.id);
            session.close();
            return Err(internal_error(format!("the session can't be stored: {error}")));
        }
        Ok(NewSessionResponse::new(session.id.clone()).config_options(self.options(&session)))
    }

    async fn load(&self, request: LoadSessionRequest) -> Result<LoadSessionResponse, Error> {
        let session = self.reopen(&request.session_id, request.cwd, request.mcp_servers).await?;
        for entry in session.with_record(|record| record.entries.clone()) {
            self.update(&session, replay_entry(entry)).await.map_err(Error::into_internal_error)?;
        }
        Ok(LoadSessionResponse::new().config_options(self.options(&session)))
    }

    async fn resume(&self, request: ResumeSessionRequest) -> Result<ResumeSessionResponse, Error> {
        let session = self.reopen(&request.session_id, request.cwd, request.mcp_servers).await?;
        Ok(ResumeSessionResponse::new().config_options(self.options(&session)))
    }

    async fn close(&self, request: CloseSessionRequest) -> Result<CloseSessionResponse, Error> {
        let closed = self.sessions.lock().remove(&request.session_id);
        let session = closed.ok_or_else(|| not_found(&request.session_id))?;
        session.close();
        // A turn still writes the file while it is cancelled. With `hang hard` it never ends.
        let _ = timeout(SHUTDOWN_WAIT, session.wait_until_idle()).await;
        Ok(CloseSessionResponse::new())
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let records = self.store.list().await.map_err(Error::into_internal_error)?;
        let here =
            records.into_iter().filter(|record| request.cwd.as_ref().is_none_or(|cwd| *cwd == record.cwd));
        let sessions = here.map(|record| {
            let first = record.entries.iter().find_map(|entry| match entry {
                Entry::User(message) => message.text.lines().next().map(str::to_owned),
                _ => None,
            });
            let title = first.map(|mut title| {
                truncate(&mut title, 80);
                title
            });
            SessionInfo::new(record.id, record.cwd).title(title)
        });
        Ok(ListSessionsResponse::new(sessions.collect()))
    }

    fn open(&self, record: Record, servers: Vec<McpServer>) -> Result<Arc<Session>, Error> {
        if !record.cwd.is_absolute() {
            return Err(Error::invalid_params().data("cwd must be an absolute path"));
        }
        let servers = Servers::connect(servers, &self.http, &self.tasks);
        let session = Session::new(record, self.store.clone(), servers);
        let before = self.sessions.lock().insert(session.id.clone(), session.clone());
        if let Some(before) = before {
            before.close();
        }
        Ok(session)
    }

    async fn reopen(
        &self,
        id: &SessionId,
        cwd: PathBuf,
        servers: Vec<McpServer>,
    ) -> Result<Arc<Session>, Error> {
        if self.session(id).is_ok_and(|session| session.is_busy()) {
            return Err(Error::invalid_request().data("a turn of this session is running"));
        }
        let record = self.store.load(&id.0).await;
        let record = record.map_err(|error| internal_error(format!("the session can't be read: {error}")))?;
        let record = record.ok_or_else(|| not_found(id))?;
        self.open(Record { cwd, ..record }, servers)
    }

    pub fn session(&self, id: &SessionId) -> Result<Arc<Session>, Error> {
        self.sessions.lock().get(id).cloned().ok_or_else(|| not_found(id))
    }

    fn begin_turn(&self, id: &SessionId) -> Result<(Arc<Session>, CancellationToken), Error> {
        let session = self.session(id)?;
        match session.begin_turn() {
            Some(cancel) => Ok((session, cancel)),
            None => Err(Error::invalid_request().data("a turn of this session is running")),
        }
    }

    async fn prompt(
        self: Arc<Self>,
        session: Arc<Session>,
        cancel: CancellationToken,
        connection: ConnectionTo<Client>,
        request: PromptRequest,
    ) -> Result<PromptResponse, Error> {
        let join =
            |parts: Vec<&ContentBlock>| parts.into_iter().map(block_text).collect::<Vec<_>>().join("\n");
        let message = join(request.prompt.iter().filter(|part| !is_instruction(part)).collect());
        let all = join(request.prompt.iter().collect());
        let mut turn = Turn::begin(self.clone(), session.clone(), connection, cancel, &all).await;
        let result = match &self.settings.model {
            Some(access) => model::answer(&mut turn, access).await,
            None if self.settings.is_demo => demo::answer(&mut turn, &message).await,
            None => deterministic::answer(&mut turn, &message).await,
        };
        let response = turn.end(result).await;
        session.end_turn();
        response
    }
}

/// Whether a part of a prompt is a host's instruction to the agent. It is not a person's message, so it is neither
/// answered nor searched for words.
fn is_instruction(block: &ContentBlock) -> bool {
    let ContentBlock::Text(text) = block else { return false };
    text.annotations.as_ref().and_then(|known| known.audience.as_deref()) == Some(&[Role::Assistant])
}

fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(file) => format!("[{}]\n{}", file.uri, file.text),
            EmbeddedResourceResource::BlobResourceContents(file) => {
                format!("[{}, {} bytes in base64]", file.uri, file.blob.len())
            }
            _ => "[a file]".to_owned(),
        },
        ContentBlock::Image(image) => format!("[an image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a recording, {}]", audio.mime_type),
        _ => "[something that this agent doesn't know]".to_owned(),
    }
}

fn internal_error(message: String) -> Error {
    let mut error = Error::internal_error();
    error.message = message;
    error
}

fn not_found(id: &SessionId) -> Error {
    agent_client_protocol::v1::schema::Error::session_not_found(id.clone()).into()
}
