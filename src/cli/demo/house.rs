//! The demo's initial data, created by the same operations that callers use.

use std::collections::BTreeMap;

use async_graphql::MaybeUndefined;

use super::machine;
use crate::{
    base::{
        enums::{CredentialKind, Effort, FieldType, McpTransport, ResponseStyle, RestartPolicy},
        ids::{AgentId, ServerId},
        problem::Result,
        secret::SecretText,
    },
    core::{
        access::Scope,
        store::sql::{RunSql as _, sql},
    },
    domain::{
        agents::{self, CreateAgentInput, UpdateAgentInput},
        credentials::{self, CreateCredentialInput, CredentialFieldInput},
        mcp_servers::{self, CreateMcpServerInput},
        servers::{self, CreateServerInput, Labels},
        skills::{self, CreateSkillInput},
    },
};

/// The agent that customers write to.
const SUPPORT: &str = "Marlow";
/// The risk from which that agent asks: above a tool that no rule knows, below a refund.
pub const ASK_FROM: i64 = 60;

/// Creates the data. Returns the agent that customers write to.
pub async fn furnish(scope: &Scope) -> Result<AgentId> {
    let server = server(scope, machine::SERVER, "eu-central").await?;
    server_in_lisbon(scope).await?;
    let support =
        agent(scope, server, (SUPPORT, "Customer support", "Answers customers about orders.")).await?;
    let reviewer =
        agent(scope, server, ("Redline", "Code review", "Reads changes before people do.")).await?;
    let style = UpdateAgentInput {
        response_style: MaybeUndefined::Value(ResponseStyle::Friendly),
        approval_ask_threshold: MaybeUndefined::Value(ASK_FROM),
        approval_timeout_minutes: MaybeUndefined::Value(24 * 60),
        approval_categories: MaybeUndefined::Value(vec!["money".to_owned()]),
        timezone: MaybeUndefined::Value("Europe/Berlin".to_owned()),
        ..UpdateAgentInput::default()
    };
    agents::update(scope, support, style, None).await?;
    tools(scope, &[support, reviewer]).await?;
    Ok(support)
}

/// The agent that customers write to, unless it was renamed or deleted.
pub async fn support(scope: &Scope) -> Result<Option<AgentId>> {
    let sql =
        sql!("SELECT id FROM agents WHERE organization_id = $org AND name = $2 AND archived_at IS NULL");
    scope.scalar(sql, [SUPPORT.into()]).await
}

async fn server(scope: &Scope, name: &str, region: &str) -> Result<ServerId> {
    let new = CreateServerInput {
        name: name.to_owned(),
        description: Some("Runs agents.".to_owned()),
        hostname: Some(format!("{name}.example.net")),
        address: None,
        region: Some(region.to_owned()),
        labels: Some(Labels(BTreeMap::from([("tier".to_owned(), "production".to_owned())]))),
    };
    Ok(servers::create(scope, new).await?.0)
}

async fn server_in_lisbon(scope: &Scope) -> Result<ServerId> {
    server(scope, "lisbon-1", "eu-west").await
}

async fn agent(
    scope: &Scope,
    server_id: ServerId,
    (name, role, about): (&str, &str, &str),
) -> Result<AgentId> {
    let new = CreateAgentInput {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        role: Some(role.to_owned()),
        instructions: None,
        server_id,
        image_id: None,
        model_override: Some(muster_agent::DEMO_MODEL.to_owned()),
    };
    agents::create(scope, new, RestartPolicy::OnFailure).await
}

async fn tools(scope: &Scope, agents: &[AgentId]) -> Result<()> {
    let field = |label: &str, kind, value: &str| CredentialFieldInput {
        label: label.to_owned(),
        r#type: Some(kind),
        value: MaybeUndefined::Value(SecretText(value.to_owned().into())),
        position: None,
    };
    let credential = CreateCredentialInput {
        name: "Shop API".to_owned(),
        description: Some("Reads orders and makes refunds.".to_owned()),
        kind: CredentialKind::ApiKey,
        destinations: Some(vec!["https://shop.example.org/".to_owned()]),
        fields: vec![
            field("account", FieldType::Text, "northwind"),
            field("key", FieldType::Secret, "demo-key-that-opens-nothing"),
        ],
    };
    let credential = credentials::create(scope, credential, false).await?;
    credentials::set_agents(scope, credential, agents).await?;
    let browser = CreateMcpServerInput {
        name: "Browser".to_owned(),
        description: Some("Opens pages and reads them.".to_owned()),
        transport: McpTransport::Stdio,
        command: Some("npx".to_owned()),
        args: Some(vec!["@playwright/mcp".to_owned(), "--headless".to_owned()]),
        url: None,
        auth: None,
        workspace: None,
    };
    // Assigned to no agent: the demo's agents run, and would download and start it.
    mcp_servers::create(scope, browser).await?;
    let skill = CreateSkillInput {
        name: "refund-policy".to_owned(),
        description: Some("When to give a refund, and when to ask someone first.".to_owned()),
        content: "# Refunds\n\nLook the order up first. Refund it in full within 30 days of its delivery; someone approves \
                  each refund.\nLater: offer a voucher over the same amount.\n"
            .to_owned(),
        model: None,
        effort: Some(Effort::Low),
    };
    let skill = skills::create(scope, skill).await?;
    skills::set_agents(scope, skill, &agents[..1]).await
}
