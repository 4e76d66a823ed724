//! The demo's shop, a program on this machine: it takes the answers of its agent on the channel "Shop", and offers its
//! orders as the MCP server "Shop".

use std::{
    io::{self, Write},
    net::Ipv4Addr,
};

use async_graphql::{InputType, MaybeUndefined};
use axum::{
    Router,
    body::Bytes,
    extract::Request,
    http::StatusCode,
    routing::{any, post},
};
use muster_channels::post_signed;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Failure, orders::OrderEndpoint};
use crate::{
    base::{
        enums::McpTransport,
        ids::{AgentId, ChannelId, McpServerId},
        plain::without_controls,
        problem::{Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        config::Config,
        store::sql::{RunSql as _, row, sql},
    },
    domain::{
        channels::{self, ChannelWebhookInput, CreateChannelInput, UpdateChannelInput},
        mcp_servers::{self, CreateMcpServerInput, UpdateMcpServerInput},
    },
};

/// Of the channel and of the MCP server.
const NAME: &str = "Shop";
/// Signs messages in both directions. Not a secret: the demo listens on this machine only.
pub const SECRET: &str = "the-secret-of-the-demo-shop";
/// The header with the signature: `sha256=`, and the HMAC of the body.
pub const HEADER: &str = "X-Signature";

/// What the first customers write: name, subject, text. The agent asks for approval of the refund.
const CUSTOMERS: [(&str, &str, &str); 2] = [
    ("Amara Jansen", "Order 1004", "Good morning! Where is order 1004?"),
    (
        "Jonas Weber",
        "Refund for order 1007",
        "Hello, the coffee grinder of order 1007 arrived broken. Could I have a refund, please?",
    ),
];

row! {
    struct Channel {
        id: ChannelId,
        inbound_slug: String,
    }
}

/// The program, listening on a port that the system chose.
pub struct Shop {
    listener: TcpListener,
    /// Without a slash at the end.
    url: String,
}

impl Shop {
    /// Lets channels reach this machine, and listens.
    ///
    /// # Errors
    /// No port is free.
    pub async fn open(config: &mut Config) -> std::result::Result<Self, Failure> {
        let here = Ipv4Addr::LOCALHOST;
        config.channels.networks.push(std::net::IpAddr::from(here).into());
        config.channels.networks.push(config.listen.ip().into());
        let listener = TcpListener::bind((here, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        Ok(Self { listener, url })
    }

    /// The address for the agent's answers.
    fn answers(&self) -> String {
        format!("{}/answers", self.url)
    }

    /// The address of the MCP server.
    fn orders(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// Connects it with an agent: as a channel, and with its orders as tools.
    pub async fn connect(&self, scope: &Scope, agent: AgentId) -> Result<()> {
        let server = CreateMcpServerInput {
            name: NAME.to_owned(),
            description: Some("Finds orders, and refunds them.".to_owned()),
            transport: McpTransport::Http,
            command: None,
            args: None,
            url: Some(self.orders()),
            auth: None,
            workspace: None,
        };
        let server = mcp_servers::create(scope, server).await?;
        mcp_servers::set_agents(scope, server, &[agent]).await?;
        let input = json!({
            "name": NAME,
            "transport": "WEBHOOK",
            "agentId": agent,
            "webhook": {
                "outboundUrl": self.answers(), "outboundSecret": SECRET, "inboundSecret": SECRET, "signatureHeader": HEADER,
            },
        });
        let input = async_graphql::Value::from_json(input).map_err(Problem::internal)?;
        let input = CreateChannelInput::parse(Some(input))
            .map_err(|_| Problem::internal(anyhow::anyhow!("the demo's channel is invalid")))?;
        channels::create(scope, input).await.map(drop)
    }

    /// Gives the channel and the MCP server the program's current address. Returns the path for messages, unless the
    /// channel was deleted.
    pub async fn find(&self, scope: &Scope) -> Result<Option<String>> {
        self.move_server(scope).await?;
        let sql = sql!(
            "SELECT id, inbound_slug FROM channels \
             WHERE organization_id = $org AND name = $2 AND transport = 'WEBHOOK' AND archived_at IS NULL"
        );
        let Some(Channel { id, inbound_slug }) = scope.one(sql, [NAME.into()]).await? else {
            return Ok(None);
        };
        let url = MaybeUndefined::Value(self.answers());
        let webhook = ChannelWebhookInput { outbound_url: url, ..ChannelWebhookInput::default() };
        let moved =
            UpdateChannelInput { webhook: MaybeUndefined::Value(webhook), ..UpdateChannelInput::default() };
        Box::pin(channels::update(scope, id, moved)).await?;
        Ok(Some(format!("/webhooks/webhook/{inbound_slug}")))
    }

    async fn move_server(&self, scope: &Scope) -> Result<()> {
        let sql = sql!(
            "SELECT id FROM mcp_servers \
             WHERE organization_id = $org AND name = $2 AND transport = 'HTTP' AND archived_at IS NULL"
        );
        let Some(id) = scope.scalar::<McpServerId>(sql, [NAME.into()]).await? else { return Ok(()) };
        let url = MaybeUndefined::Value(self.orders());
        mcp_servers::update(scope, id, UpdateMcpServerInput { url, ..UpdateMcpServerInput::default() }).await
    }

    /// Serves orders, and prints each answer, until the future is dropped.
    pub async fn serve(self, print: bool) {
        let answers = async move |body: Bytes| {
            if print {
                let _ = writeln!(io::stdout(), "\nThe shop got an answer:\n{}", text(&body));
            }
            StatusCode::NO_CONTENT
        };
        let endpoint = OrderEndpoint::open();
        let orders = move |request: Request| endpoint.answer(request);
        let router = Router::new().route("/answers", post(answers)).route("/mcp", any(orders));
        let _ = axum::serve(self.listener, router).await;
    }
}

/// Writes to the webhook at `url` as the first customers do. The agent answers once it runs.
pub async fn write_as_customers(core: &Core, url: &str) {
    let secret = [SecretString::from(SECRET)];
    for (name, subject, text) in CUSTOMERS {
        let id = subject.to_lowercase().replace(' ', "-");
        let body =
            json!({ "thread": id, "title": subject, "text": text, "origin_id": name, "origin_name": name });
        let sent = post_signed(&core.network, url, &id, &secret, body.to_string().into_bytes()).await;
        if let Err(failure) = sent {
            tracing::error!(%failure, "demo.customer_could_not_write");
        }
    }
}

/// The agent's text, without control characters that a terminal would obey.
fn text(body: &[u8]) -> String {
    let message: Value = muster_json::from_slice(body).unwrap_or_default();
    let lines = message["data"]["message"]["text"].as_str().unwrap_or_default().lines();
    lines.map(|line| format!("  {}\n", without_controls(line))).collect()
}
