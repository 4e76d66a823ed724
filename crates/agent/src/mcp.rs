//! The MCP servers of a session, over stdio and streamable HTTP.
//!
//! They connect in the background while the session is already open; a request for their tools waits. An unreachable
//! server does not affect the others.

use std::{collections::HashMap, process::Stdio, str::FromStr, sync::Arc};

use agent_client_protocol::v1::schema::{McpServer, McpServerHttp, McpServerStdio};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, join_all},
};
use http::{HeaderName, HeaderValue};
use rmcp::{
    ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock, Implementation,
    },
    service::{RoleClient, RunningService},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Map, Value, json};
use tokio::{process::Command, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    bounds::{ANSWER_WAIT, NETWORK_WAIT, TEXT},
    history::{Outcome, truncate},
    outbound::Http,
};

/// The environment variables that a server inherits. The others may be secret, such as the model's key.
const INHERITED: [&str; 8] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER"];

type Client = RunningService<RoleClient, ClientConfig>;
type Connecting = Shared<BoxFuture<'static, Result<Arc<Connection>, Arc<str>>>>;

struct Connection {
    client: Client,
    tools: Vec<rmcp::model::Tool>,
}

pub struct Servers {
    list: Vec<(String, Connecting)>,
    closed: CancellationToken,
}

#[derive(Clone)]
pub struct Tool {
    pub server: String,
    pub name: String,
    pub description: String,
    /// The JSON Schema of the input.
    pub schema: Arc<Map<String, Value>>,
    connection: Arc<Connection>,
}

impl Servers {
    pub fn connect(servers: Vec<McpServer>, http: &Http, tasks: &TaskTracker) -> Self {
        let closed = CancellationToken::new();
        let list = servers.into_iter().take(32).map(|server| {
            let (name, connecting) = connect(server, http.clone());
            let closed = closed.clone();
            let connecting = async move {
                tokio::select! {
                    () = closed.cancelled() => Err("the session is closed".into()),
                    connected = timeout(NETWORK_WAIT, connecting) => {
                        connected.unwrap_or_else(|_| Err("it doesn't answer in time".into())).map(Arc::new)
                    }
                }
            };
            let connecting = connecting.boxed().shared();
            // The connection must progress without a waiting caller too.
            tasks.spawn(connecting.clone());
            (name, connecting)
        });
        Self { list: list.collect(), closed }
    }

    /// The tools of all connected servers, and the problems of the others.
    pub async fn tools(&self) -> (Vec<Tool>, Vec<String>) {
        let (mut tools, mut problems) = (Vec::new(), Vec::new());
        let connected = join_all(self.list.iter().map(|(_, connecting)| connecting.clone())).await;
        for ((server, _), connected) in self.list.iter().zip(connected) {
            match connected {
                Ok(connection) => tools.extend(connection.tools.iter().map(|tool| Tool {
                    server: server.clone(),
                    name: tool.name.to_string(),
                    description: tool.description.as_deref().unwrap_or_default().to_owned(),
                    schema: tool.input_schema.clone(),
                    connection: connection.clone(),
                })),
                Err(problem) => problems.push(format!("MCP server {server}: {problem}")),
            }
        }
        (tools, problems)
    }

    pub fn close(&self) {
        self.closed.cancel();
        for (_, connecting) in &self.list {
            if let Some(Ok(connection)) = connecting.peek() {
                connection.client.cancellation_token().cancel();
            }
        }
    }
}

impl Tool {
    /// A unique name that every model accepts: at most 64 letters, digits, `_` and `-`.
    pub fn full_name(&self) -> String {
        let mut name = format!("{}__{}", self.server, self.name);
        name.retain(|c| c.is_ascii());
        name.truncate(64);
        name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_")
    }

    /// Calls the tool. Dropping the future cancels the call.
    pub async fn call(&self, input: Map<String, Value>) -> (Outcome, Option<Value>) {
        let request = CallToolRequestParams::new(self.name.clone()).with_arguments(input);
        // A server may have to ask a person.
        match timeout(ANSWER_WAIT, self.connection.client.call_tool(request)).await {
            Ok(Ok(result)) => {
                let outcome = Outcome { failed: result.is_error == Some(true), text: result_text(&result) };
                (outcome, result.structured_content.filter(|value| value.to_string().len() <= TEXT))
            }
            Ok(Err(error)) => (Outcome { failed: true, text: format!("The call failed: {error}") }, None),
            Err(_) => (Outcome { failed: true, text: "The call took too long.".to_owned() }, None),
        }
    }
}

fn result_text(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(block_text).collect();
    if let (true, Some(structured)) = (parts.is_empty(), &result.structured_content) {
        parts.push(structured.to_string());
    }
    let mut text = parts.join("\n");
    truncate(&mut text, TEXT);
    text
}

fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a recording, {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        _ => "[a resource]".to_owned(),
    }
}

type Connected = BoxFuture<'static, Result<Connection, Arc<str>>>;

fn connect(server: McpServer, http: Http) -> (String, Connected) {
    match server {
        McpServer::Stdio(server) => (server.name.clone(), connect_stdio(server).boxed()),
        McpServer::Http(server) => (server.name.clone(), connect_http(server, http).boxed()),
        McpServer::Sse(server) => {
            let problem = "this agent speaks MCP over stdio and streamable HTTP, not over server-sent events";
            (server.name, async move { Err(problem.into()) }.boxed())
        }
        _ => ("?".to_owned(), async { Err("an unknown kind of server".into()) }.boxed()),
    }
}

async fn connect_stdio(server: McpServerStdio) -> Result<Connection, Arc<str>> {
    let mut command = Command::new(&server.command);
    command.args(&server.args).kill_on_drop(true).env_clear();
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(server.env.iter().map(|variable| (&variable.name, &variable.value)));
    let (transport, _) = TokioChildProcess::builder(command)
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("{} can't be started: {error}", server.command.display()))?;
    list_tools(client_config().serve(transport).await).await
}

async fn connect_http(server: McpServerHttp, http: Http) -> Result<Connection, Arc<str>> {
    let mut headers = HashMap::new();
    for header in &server.headers {
        let (name, value) = (HeaderName::from_str(&header.name), HeaderValue::from_str(&header.value));
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err(format!("{:?} can't be sent as a header", header.name).into());
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(server.url).custom_headers(headers);
    let http = http.client().map_err(|error| format!("the system's certificates can't be read: {error}"))?;
    let transport = StreamableHttpClientTransport::with_client(http, config);
    list_tools(client_config().serve(transport).await).await
}

fn client_config() -> ClientConfig {
    let name = Implementation::new("muster-agent", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), name)
}

async fn list_tools<E: std::fmt::Display>(client: Result<Client, E>) -> Result<Connection, Arc<str>> {
    let client = client.map_err(|error| format!("it can't be reached: {error}"))?;
    let mut tools = client.list_all_tools().await.map_err(|error| format!("it lists no tools: {error}"))?;
    tools.retain(|tool| tool.name.len() <= 128 && json!(tool).to_string().len() <= 64 * 1024);
    tools.truncate(256);
    Ok(Connection { client, tools })
}
