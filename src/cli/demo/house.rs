//! The demo's initial data, created by the same operations that callers use.

use std::collections::BTreeMap;

use async_graphql::MaybeUndefined;
use serde_json::{Value, json};

use super::machine;
use crate::{
    base::{
        enums::{
            ApprovalKind, CredentialKind, Effort, FieldType, McpTransport, MessageKind, MessageRole,
            ResponseStyle, Severity,
        },
        ids::{AgentId, ConversationId, ServerId},
        problem::Result,
        secret::SecretText,
    },
    core::access::Scope,
    slices::{
        agents::{self, CreateAgentInput, UpdateAgentInput},
        approvals::{self, Choice, NewApproval, Question, ToolRequest},
        conversations::{self, NewConversation, NewMessage},
        credentials::{self, CreateCredentialInput, CredentialFieldInput},
        mcp_servers::{self, CreateMcpServerInput},
        servers::{self, CreateServerInput, Labels},
        skills::{self, CreateSkillInput},
    },
};

/// Creates all of it. Returns the agent that customers write to.
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
        approval_categories: MaybeUndefined::Value(vec!["payments".to_owned()]),
        timezone: MaybeUndefined::Value("Europe/Berlin".to_owned()),
        ..UpdateAgentInput::default()
    };
    agents::update(scope, support, style, None).await?;
    tools(scope, &[support, reviewer]).await?;
    talk(scope, support).await?;
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
        server_id,
        image_id: None,
        model_override: Some("large-2".to_owned()),
    };
    agents::create(scope, new).await
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
    };
    // Assigned to nobody: the agents here run, and this would download and start it.
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

/// Two conversations in the panel: one waiting for a decision, one for an answer.
async fn talk(scope: &Scope, agent: AgentId) -> Result<()> {
    let refund =
        start(scope, agent, "Refund for ORD-48213", "Please refund ORD-48213, the grinder came broken.");
    let refund = refund.await?;
    say(
        scope,
        refund,
        MessageRole::Assistant,
        MessageKind::Thinking,
        json!({ "text": "89.00 EUR is above the limit of 50, so I need approval before I refund it." }),
    )
    .await?;
    let call = json!({ "tool": "orders.lookup", "call_id": "call_1", "input": { "order": "ORD-48213" } });
    say(scope, refund, MessageRole::Assistant, MessageKind::ToolCall, call).await?;
    let result = json!({ "call_id": "call_1", "output": { "item": "espresso grinder", "paid": "89.00" }, "is_error": false });
    say(scope, refund, MessageRole::Tool, MessageKind::ToolResult, result).await?;
    let action = NewApproval {
        severity: Severity::High,
        category: Some("payments".to_owned()),
        risk: Some(62),
        body: Some("The amount is above the limit of the refund policy.".to_owned()),
        request: Some(ToolRequest {
            tool: "payments.refund".to_owned(),
            input: json!({ "order": "ORD-48213", "amount": "89.00", "currency": "EUR" }),
        }),
        ..NewApproval::new(ApprovalKind::Action, "Refund 89.00 EUR for ORD-48213")
    };
    ask(scope, agent, refund, action).await?;
    let text = "What should we send instead of the sold-out blue jacket?";
    let jacket = start(scope, agent, "Replacement for a trail jacket", text).await?;
    let choice = |id: &str, label: &str, about: &str| Choice {
        id: id.to_owned(),
        label: label.to_owned(),
        description: Some(about.to_owned()),
    };
    let question = NewApproval {
        question: Some(Question {
            text: "The blue trail jacket is sold out in size M. Which one should I offer?".to_owned(),
            options: vec![
                choice("green", "Green, size M", "In stock in Frankfurt"),
                choice("blue-l", "Blue, size L", "In stock in Lisbon"),
                choice("refund", "Refund", "The full amount"),
            ],
            multiple: false,
            allow_text: true,
        }),
        ..NewApproval::new(ApprovalKind::Question, "Which jacket should I offer?")
    };
    ask(scope, agent, jacket, question).await
}

async fn start(scope: &Scope, agent: AgentId, title: &str, text: &str) -> Result<ConversationId> {
    let new = NewConversation { agent, title: Some(title.to_owned()), text: Some(text.to_owned()) };
    conversations::start(scope, new).await
}

async fn say(
    scope: &Scope,
    conversation: ConversationId,
    role: MessageRole,
    kind: MessageKind,
    content: Value,
) -> Result<()> {
    let mut tx = scope.begin().await?;
    conversations::append(&mut tx, NewMessage::new(conversation, role, kind, content)).await?;
    tx.commit().await
}

async fn ask(
    scope: &Scope,
    agent: AgentId,
    conversation: ConversationId,
    approval: NewApproval,
) -> Result<()> {
    let mut tx = scope.begin().await?;
    let approval = NewApproval { agent_id: Some(agent), conversation_id: Some(conversation), ..approval };
    let id = approvals::raise(&mut tx, approval).await?;
    let content = json!({ "approval_id": id });
    let message = NewMessage::new(conversation, MessageRole::Assistant, MessageKind::Approval, content);
    conversations::append(&mut tx, message).await?;
    tx.commit().await
}
