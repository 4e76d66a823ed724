//! The sockets of MCP servers, and Muster's own server in every session of an agent: ask a person, ask for approval,
//! send a file, and the actions of the conversation's channel (`actions.rs`).
//!
//! The agent starts `muster-shim mcp SOCKET`, which connects its stdin and stdout to a socket of the host. There is one
//! socket per conversation and server, so calls need no authentication. The gate serves all other servers
//! (`crates/egress/src/mcp`). Clients give up on a call after about a minute, and people take hours: a call waits
//! briefly, and then announces that the answer comes as the next message.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use muster_egress::{AWAY, turn_away};
use muster_protocol::{
    event::{Asked, Choice, Content},
    plan::{Action, Crossing},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientJsonRpcMessage, ClientNotification,
        ContentBlock, GetExtensions, Implementation, JsonObject, JsonRpcMessage, ListToolsResult,
        PaginatedRequestParams, RequestId, ServerCapabilities, ServerConfig, Tool,
    },
    service::{RequestContext, TxJsonRpcMessage, serve_directly},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use crate::{
    acp::{decision_text, is_too_long, not_judged, short},
    agent::{
        AuthoredDecision,
        home::{self, LARGEST_FILE},
    },
    checked_lines::CheckedLines,
    gate::Outlet,
    runtime::Files,
};

/// Bytes of a message: a client may write without end. Enough for a call with a file of 512 KiB.
const LONGEST_LINE: usize = 1024 * 1024;
const CROWDED: &str = "This conversation has too many clients of Muster's MCP server. End one of them first.";
/// Open requests of a client, which may send any number: further ones wait.
const OPEN: usize = 16;
/// Options of a question.
const MAX_OPTIONS: usize = 20;

/// A call for the agent's task.
#[derive(Debug)]
pub enum Call {
    /// A question for a person.
    Ask {
        conversation_id: i64,
        asked: Asked,
        /// Receives the decision. Dropped if there will be none.
        decided: oneshot::Sender<AuthoredDecision>,
    },
    /// A crossing of the agent's boundary, for a person to decide.
    Judge {
        /// The conversation, if known.
        conversation_id: Option<i64>,
        /// The request as people see it.
        asked: Asked,
        crossing: Crossing,
        /// Receives the decision. Dropped if there will be none.
        decided: oneshot::Sender<AuthoredDecision>,
    },
    /// A file to send.
    File {
        conversation_id: i64,
        content: Content,
        /// Signals that it is in the journal.
        sent: oneshot::Sender<()>,
    },
}

/// The sockets of an agent's conversations, for Muster's own server and for the agent's.
#[derive(Debug, Default)]
pub struct McpSockets {
    /// By conversation, and by server id.
    open: BTreeMap<(i64, Option<i64>), AbortHandle>,
    tasks: JoinSet<()>,
}

/// The socket's name for a server in a conversation. Muster's own server has no id.
pub fn socket_name(conversation_id: i64, server_id: Option<i64>) -> String {
    server_id.map_or_else(|| conversation_id.to_string(), |id| format!("{conversation_id}-{id}"))
}

impl McpSockets {
    /// Listens for the clients of a server in a conversation, unless it already does. `serve` gets the listener.
    pub fn listen<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        conversation_id: i64,
        server_id: Option<i64>,
        folder: &Path,
        mode: u32,
        serve: impl FnOnce(UnixListener) -> F,
    ) {
        // A closed gate has ended its task.
        let key = (conversation_id, server_id);
        if self.open.get(&key).is_some_and(|listening| !listening.is_finished()) {
            return;
        }
        let socket = folder.join(socket_name(conversation_id, server_id));
        let _ = std::fs::remove_file(&socket);
        let bound = UnixListener::bind(&socket).and_then(|listener| {
            std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(mode))?;
            Ok(listener)
        });
        match bound {
            Ok(listener) => _ = self.open.insert(key, self.tasks.spawn(serve(listener))),
            Err(error) => {
                tracing::error!(socket = %socket.display(), %error, "an MCP server can't be served");
            }
        }
    }

    /// Closes a conversation's sockets: its session is closed.
    pub fn end(&mut self, conversation_id: i64) {
        self.open.retain(|(id, _), listening| {
            if *id == conversation_id {
                listening.abort();
            }
            *id != conversation_id
        });
        while self.tasks.try_join_next().is_some() {}
    }
}

/// Serves Muster's own server.
pub async fn serve_own(listener: UnixListener, conversation_id: i64, outlet: Outlet, files: Files) {
    listen(listener, Server { conversation_id, outlet, files }).await;
}

async fn listen(listener: UnixListener, server: Server) {
    // Parallel clients of a conversation.
    let slot = || Arc::new(Semaphore::new(8));
    let (mut clients, slot, lobby) = (JoinSet::new(), slot(), slot());
    loop {
        let Ok((client, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        if let Ok(held) = Arc::clone(&slot).try_acquire_owned() {
            clients.spawn(serve(Connection::new(client, held), server.clone()));
        } else if let Ok(held) = Arc::clone(&lobby).try_acquire_owned() {
            clients.spawn(async move {
                turn_away(client, CROWDED).await;
                drop(held);
            });
        }
        while clients.try_join_next().is_some() {}
    }
}

async fn serve(client: Connection, server: Server) {
    // Without waiting for the handshake: it is answered like any other request.
    let _ = serve_directly::<RoleServer, _, _, _, _>(server, client, None).waiting().await;
}

/// A client. The library would start any number of tasks for requests and answers, even of a client that never reads.
/// Here a request waits for a slot, and nothing behind it is read.
struct Connection {
    lines: AsyncRwTransport<RoleServer, CheckedLines<OwnedReadHalf>, OwnedWriteHalf>,
    /// The received message that waits for a slot.
    next: Option<ClientJsonRpcMessage>,
    slot: Arc<Semaphore>,
    /// Requests neither answered nor cancelled.
    open: HashMap<RequestId, Arc<RequestSlot>>,
    /// The client's permit in its conversation.
    held: Arc<OwnedSemaphorePermit>,
}

/// A request's slot: held until its handler has ended, which may be after its client, and its answer is written.
struct RequestSlot {
    _request: OwnedSemaphorePermit,
    _client: Arc<OwnedSemaphorePermit>,
}

impl Connection {
    fn new(client: UnixStream, held: OwnedSemaphorePermit) -> Self {
        let (read, write) = client.into_split();
        let read = CheckedLines::new(read, LONGEST_LINE);
        let lines = AsyncRwTransport::new(read, write).with_max_line_length(LONGEST_LINE);
        let slot = Arc::new(Semaphore::new(OPEN));
        Self { lines, next: None, slot, open: HashMap::new(), held: Arc::new(held) }
    }
}

impl Transport<RoleServer> for Connection {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let slot = id.and_then(|id| self.open.remove(id));
        let writing = self.lines.send(item);
        async move {
            let written = writing.await;
            drop(slot);
            written
        }
    }

    /// Cancel-safe: a received message is returned by the next call.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        if self.next.is_none() {
            self.next = Some(self.lines.receive().await?);
        }
        match &mut self.next {
            Some(JsonRpcMessage::Request(asked)) => {
                let request = Arc::clone(&self.slot).acquire_owned().await.ok()?;
                let slot = Arc::new(RequestSlot { _request: request, _client: Arc::clone(&self.held) });
                // Passed to the handler, which drops it at its end.
                asked.request.extensions_mut().insert(Arc::clone(&slot));
                self.open.insert(asked.id.clone(), slot);
            }
            Some(JsonRpcMessage::Notification(told)) => {
                // A cancelled request gets no answer.
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                }
            }
            _ => {}
        }
        self.next.take()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}

/// Serves one conversation.
#[derive(Clone)]
struct Server {
    conversation_id: i64,
    outlet: Outlet,
    files: Files,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskPerson {
    question: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    multiple: bool,
    allow_text: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestApproval {
    title: String,
    kind: String,
    #[serde(default)]
    input: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendFile {
    path: Option<String>,
    #[serde(alias = "text")]
    content: Option<String>,
    filename: Option<String>,
    caption: Option<String>,
}

const KINDS: [&str; 9] = ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"];
const INSTRUCTIONS: &str = "Muster runs you for people. Ask them with `ask_person` when you need a decision or an answer, \
    ask with `request_approval` before you do something that can't be undone or that they may not want, and give them \
    files with `send_file`. All other tools act where the conversation takes place. If an answer takes long, the tool tells \
    you to end your turn: the answer is your next message.";

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("muster", env!("CARGO_PKG_VERSION")).with_title("Muster");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut all = tools();
        // Without the control plane only the own ones: an agent waits for the list before it works.
        let actions = self.outlet.actions(self.conversation_id).await.unwrap_or_default();
        all.extend(actions.into_iter().map(tool_of));
        Ok(ListToolsResult::with_all_items(all))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let result = match request.name.as_ref() {
            "ask_person" => self.ask_person(arguments).await,
            "request_approval" => self.request_approval(arguments).await,
            "send_file" => self.send_file(arguments).await,
            name => match self.outlet.actions(self.conversation_id).await {
                Some(actions) if actions.iter().any(|action| action.name == name) => {
                    self.outlet.act(self.conversation_id, name, arguments).await
                }
                Some(_) => {
                    return Err(ErrorData::invalid_params(
                        format!("Unknown tool: {}.", short(name, 60)),
                        None,
                    ));
                }
                None => Err(AWAY.to_owned()),
            },
        };
        Ok(match result {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        }
        .into())
    }
}

fn wrong(error: &serde_json::Error) -> String {
    // The error quotes unknown fields of any length.
    format!("The arguments are not valid: {}.", short(&error.to_string(), 500))
}

impl Server {
    async fn ask_person(&self, arguments: Value) -> Result<String, String> {
        let asked: AskPerson = serde_json::from_value(arguments).map_err(|error| wrong(&error))?;
        if asked.question.trim().is_empty() {
            return Err("`question` is empty.".to_owned());
        }
        if asked.options.len() > MAX_OPTIONS {
            return Err(format!("A question may have at most {MAX_OPTIONS} options."));
        }
        let option =
            |label: &String| Choice { id: short(label, 200), label: short(label, 500), description: None };
        let options: Vec<Choice> = asked.options.iter().map(option).collect();
        let allow_text = asked.allow_text.unwrap_or(true) || options.is_empty();
        let text = short(&asked.question, 4000);
        self.decided(Asked::Question { text, options, multiple: asked.multiple, allow_text }).await
    }

    async fn request_approval(&self, arguments: Value) -> Result<String, String> {
        let asked: RequestApproval = serde_json::from_value(arguments).map_err(|error| wrong(&error))?;
        if !KINDS.contains(&asked.kind.as_str()) {
            return Err(format!("`kind` must be one of {}.", KINDS.join(", ")));
        }
        if is_too_long(&asked.input) {
            return Err(not_judged());
        }
        let title = short(&asked.title, 1000);
        self.decided(Asked::Action { tool: None, tool_kind: asked.kind, title, input: asked.input }).await
    }

    async fn decided(&self, asked: Asked) -> Result<String, String> {
        let (decided, mut answer) = oneshot::channel();
        let call = Call::Ask { conversation_id: self.conversation_id, asked, decided };
        self.outlet.calls.send(call).await.map_err(|_| "The agent is being stopped.".to_owned())?;
        let answered = match tokio::time::timeout(self.outlet.shared.options.ask_wait, &mut answer).await {
            Ok(answered) => answered.ok(),
            Err(_) => {
                // A later decision finds no waiting call; one that just arrived is not lost.
                answer.close();
                match answer.try_recv() {
                    Ok(answered) => Some(answered),
                    Err(_) => {
                        let text = "Asked. No answer yet. End your turn now: the answer comes as the next \
                                    message of this conversation. Don't ask again.";
                        return Ok(text.to_owned());
                    }
                }
            }
        };
        let Some((decision, by)) = answered else { return Err("This can't be asked now.".to_owned()) };
        Ok(decision_text(&decision, by.as_deref()).to_string())
    }

    async fn send_file(&self, arguments: Value) -> Result<String, String> {
        let file: SendFile = serde_json::from_value(arguments).map_err(|error| wrong(&error))?;
        let (bytes, name) = match (file.path, file.content) {
            (Some(path), None) => {
                let path = PathBuf::from(path);
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                let read = self.outlet.shared.runtime.read(&self.files, path).await;
                let bytes = read.map_err(|error| error.to_string())?;
                (bytes, file.filename.or(name))
            }
            (None, Some(content)) if content.len() as u64 <= LARGEST_FILE => {
                (content.into_bytes(), file.filename)
            }
            (None, Some(_)) => return Err("The file is larger than 512 KiB.".to_owned()),
            _ => return Err("Give either `path` or `content`.".to_owned()),
        };
        let filename = home::file_name(&name.unwrap_or_else(|| "file.txt".to_owned()));
        let content = Content::File {
            mime_type: mime_guess::from_path(&filename).first_or_octet_stream().to_string(),
            filename,
            base64: BASE64_STANDARD.encode(bytes),
            caption: file.caption.map(|caption| short(&caption, 1000)),
        };
        let (sent, done) = oneshot::channel();
        let call = Call::File { conversation_id: self.conversation_id, content, sent };
        self.outlet.calls.send(call).await.map_err(|_| "The agent is being stopped.".to_owned())?;
        done.await.map_err(|_| "The agent is being stopped.".to_owned())?;
        Ok("Sent.".to_owned())
    }
}

fn tool_of(action: Action) -> Tool {
    let schema: JsonObject = serde_json::from_value(action.schema).unwrap_or_default();
    let mut tool = Tool::new(action.name, action.description, schema);
    tool.title = Some(action.title);
    tool
}

fn tools() -> Vec<Tool> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let tool = |name: &'static str, description: &'static str, properties: Value, required: &[&str]| {
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        let schema: JsonObject = serde_json::from_value(schema).unwrap_or_default();
        Tool::new(name, description, schema)
    };
    vec![
        tool(
            "ask_person",
            "Ask the people of this conversation a question, and wait a short time for the answer.",
            json!({
                "question": text("The question."),
                "options": {
                    "type": "array", "items": { "type": "string" }, "maxItems": MAX_OPTIONS,
                    "description": "Answers to choose from.",
                },
                "multiple": { "type": "boolean", "description": "Whether several may be chosen." },
                "allow_text": { "type": "boolean", "description": "Whether another answer may be written. Default: true." },
            }),
            &["question"],
        ),
        tool(
            "request_approval",
            "Ask whether you may do something, before you do it.",
            json!({
                "title": text("What you want to do, in one line."),
                "kind": { "type": "string", "enum": KINDS, "description": "What kind of action it is." },
                "input": { "description": "Everything needed for the decision, such as the whole command." },
            }),
            &["title", "kind"],
        ),
        tool(
            "send_file",
            "Send a file of at most 512 KiB to the people of this conversation.",
            json!({
                "path": text("A file in your home folder."),
                "content": text("The text of the file, instead of a path."),
                "filename": text("What the file is called."),
                "caption": text("What you say about it."),
            }),
            &[],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerResult;
    use tokio::{io::AsyncWriteExt, time::timeout};

    use super::*;

    async fn waits(connection: &mut Connection) -> bool {
        timeout(Duration::from_millis(50), connection.receive()).await.is_err()
    }

    #[tokio::test]
    async fn a_request_slot_is_held_until_handled_and_answered() {
        let (mut client, host) = UnixStream::pair().unwrap();
        let slots = Arc::new(Semaphore::new(1));
        let mut connection = Connection::new(host, Arc::clone(&slots).try_acquire_owned().unwrap());
        let ping = |id: usize| format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        let pings: String = (0..OPEN).map(ping).collect();
        client.write_all(pings.as_bytes()).await.unwrap();
        let mut handled = Vec::new();
        for _ in 0..OPEN {
            handled.push(connection.receive().await.unwrap());
        }
        let cancelled = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 0 },
        });
        let more = format!("{cancelled}\n{}{}", ping(OPEN), ping(OPEN + 1));
        client.write_all(more.as_bytes()).await.unwrap();
        let told = connection.receive().await;
        assert!(matches!(told, Some(JsonRpcMessage::Notification(_))), "that needs no room: {told:?}");
        assert!(waits(&mut connection).await, "the handler of what was cancelled has not ended");
        drop(handled.remove(0));
        handled.push(connection.receive().await.unwrap());
        let answer = JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(1));
        let writing = connection.send(answer);
        drop(handled.remove(0));
        assert!(waits(&mut connection).await, "the answer is not written");
        writing.await.unwrap();
        handled.push(connection.receive().await.unwrap());
        drop((client, connection));
        assert_eq!(slots.available_permits(), 0, "handlers go on");
        drop(handled);
        assert_eq!(slots.available_permits(), 1);
    }
}
