//! The other side of the demo's channel "Shop": a program on this machine that takes the answers of its agent.

use std::{
    io::{self, Write},
    net::Ipv4Addr,
};

use async_graphql::{InputType, MaybeUndefined};
use axum::{Router, body::Bytes, http::StatusCode, routing::post};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Failure;
use crate::{
    base::{
        ids::{AgentId, ChannelId},
        plain::without_controls,
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        config::Config,
        store::sql::{RunSql as _, row, sql},
    },
    domain::channels::{self, ChannelWebhookInput, CreateChannelInput, UpdateChannelInput},
};

const NAME: &str = "Shop";
/// Signs messages in both directions. Not a secret: the demo listens on this machine only.
pub const SECRET: &str = "the-secret-of-the-demo-shop";
/// The header with the signature: `sha256=`, and the HMAC of the body.
pub const HEADER: &str = "X-Signature";

row! {
    struct Channel {
        id: ChannelId,
        inbound_slug: String,
    }
}

/// The program, listening on a port that the system chose.
pub struct Shop {
    listener: TcpListener,
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
        let listener = TcpListener::bind((here, 0)).await?;
        let url = format!("http://{}/answers", listener.local_addr()?);
        Ok(Self { listener, url })
    }

    /// Connects it with an agent.
    pub async fn connect(&self, scope: &Scope, agent: AgentId) -> Result<()> {
        let input = json!({
            "name": NAME,
            "transport": "WEBHOOK",
            "agentId": agent,
            "webhook": {
                "outboundUrl": self.url, "outboundSecret": SECRET, "inboundSecret": SECRET, "signatureHeader": HEADER,
            },
        });
        let input = async_graphql::Value::from_json(input).map_err(Problem::internal)?;
        let input = CreateChannelInput::parse(Some(input))
            .map_err(|_| Problem::internal(anyhow::anyhow!("the demo's channel is invalid")))?;
        channels::create(scope, input).await.map(drop)
    }

    /// Gives the channel the program's current address. Returns the path for messages, unless the channel was deleted.
    pub async fn find(&self, scope: &Scope) -> Result<Option<String>> {
        let sql = sql!(
            "SELECT id, inbound_slug FROM channels \
             WHERE organization_id = $org AND name = $2 AND transport = 'WEBHOOK' AND archived_at IS NULL"
        );
        let Some(Channel { id, inbound_slug }) = scope.one(sql, [NAME.into()]).await? else {
            return Ok(None);
        };
        let url = MaybeUndefined::Value(self.url.clone());
        let webhook = ChannelWebhookInput { outbound_url: url, ..ChannelWebhookInput::default() };
        let moved =
            UpdateChannelInput { webhook: MaybeUndefined::Value(webhook), ..UpdateChannelInput::default() };
        channels::update(scope, id, moved).await?;
        Ok(Some(format!("/webhooks/webhook/{inbound_slug}")))
    }

    /// Prints each answer, until the future is dropped.
    pub async fn serve(self, print: bool) {
        let answers = async move |body: Bytes| {
            if print {
                let _ = writeln!(io::stdout(), "\nThe shop got an answer:\n{}", text(&body));
            }
            StatusCode::NO_CONTENT
        };
        let _ = axum::serve(self.listener, Router::new().route("/answers", post(answers))).await;
    }
}

/// The agent's text, without control characters that a terminal would obey.
fn text(body: &[u8]) -> String {
    let message: Value = muster_json::from_slice(body).unwrap_or_default();
    let lines = message["data"]["message"]["text"].as_str().unwrap_or_default().lines();
    lines.map(|line| format!("  {}\n", without_controls(line))).collect()
}
