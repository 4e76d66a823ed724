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
    core::access::Scope,
    domain::{
        agents::{self, CreateAgentInput, UpdateAgentInput},
        conversations::{self, NewConversation},
        credentials::{self, CreateCredentialInput, CredentialFieldInput},
        mcp_servers::{self, CreateMcpServerInput},
        servers::{self, CreateServerInput, Labels},
        skills::{self, CreateSkillInput},
    },
};

/// Creates the data. Returns the agent that customers write to.
pub async fn furnish(scope: &Scope) -> Result<AgentId> {
    let server = server(scope, machine::SERVER, "eu-central").await?;
    server_in_lisbon(scope).await?;
    let support =
        agent(scope, server, ("Marlow", "Customer support", "Answers customers about orders.")).await?;
    let reviewer =
        agent(scope, server, ("Redline", "Code review", "Reads changes before people do.")).await?;
    let style = UpdateAgentInput {
        response_style: MaybeUndefined::Value(ResponseStyle::Friendly),
        approval_ask_threshold: MaybeUndefined::Value(40),
        approval_categories: MaybeUndefined::Value(vec!["money".to_owned()]),
        timezone: MaybeUndefined::Value("Europe/Berlin".to_owned()),
        ..UpdateAgentInput::default()
    };
    agents::update(scope, support, style, None).await?;
    tools(scope, &[support, reviewer]).await?;
    start_conversations(scope, support).await?;
    Ok(support)
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
        model_override: Some("large-2".to_owned()),
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
        content: "# Refunds\n\nUp to 50 EUR: refund at once.\nAbove: ask.\nAfter 30 days: offer a voucher.\n"
            .to_owned(),
        model: None,
        effort: Some(Effort::Low),
    };
    let skill = skills::create(scope, skill).await?;
    skills::set_agents(scope, skill, &agents[..1]).await
}

/// Creates conversations with messages to Marlow, which answers once it runs, and asks for approval. Without a model,
/// the last lines of a message are its instructions (docs/agents.md, "Words of the reference agent").
async fn start_conversations(scope: &Scope, agent: AgentId) -> Result<()> {
    let refund = "Please refund ORD-48213, the grinder came broken.

think 89.00 EUR is above the limit of 50, so I need approval before I refund it.

do other Refund 89.00 EUR for ORD-48213 {\"order\": \"ORD-48213\", \"amount\": \"89.00\", \"currency\": \"EUR\"}";
    let jacket = "What should we send instead of the sold-out blue jacket?

ask The blue trail jacket is sold out in size M. Which one should I offer? | Green, size M | Blue, size L | Refund";
    for (title, text) in [("Refund for ORD-48213", refund), ("Replacement for a trail jacket", jacket)] {
        let new = NewConversation { agent, title: Some(title.to_owned()), text: Some(text.to_owned()) };
        conversations::start(scope, new).await?;
    }
    Ok(())
}
