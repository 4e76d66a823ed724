//! One good call of every mutation in an organization: the arguments with which it succeeds.
//!
//! The laws that need such calls read this table: the audit log, the tenants, the routes of `/v1`. A new mutation gets a line
//! here; `audit::law` names the one that has none.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Population, TestApp, fixtures};

/// Rows that nothing depends on, for the calls that change or delete them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    pub server: i64,
    pub image: i64,
    pub agent: i64,
    pub conversation: i64,
}

impl Spare {
    /// New rows, for who runs all calls.
    pub async fn make(app: &TestApp, all: &Population) -> Self {
        Self {
            server: app.server().await,
            image: app.image().await,
            agent: app.agent().await,
            conversation: app.conversation(all.agents[0]).await,
        }
    }

    /// Rows of the population, which can't all be deleted.
    pub fn of(all: &Population) -> Self {
        Self {
            server: all.servers[0],
            image: all.images[0],
            agent: all.agents[0],
            conversation: all.conversations[0],
        }
    }
}

/// Each mutation with its arguments but `orgId`, in an order in which all succeed. The population has four of everything.
pub fn good_calls(all: &Population, spare: Spare) -> Vec<(&'static str, Value)> {
    let mut calls = of_fleet(all, &spare);
    calls.extend(of_work(all, &spare));
    calls
}

fn id(id: i64) -> Value {
    json!({ "id": id })
}

fn edit(id: i64, input: Value) -> Value {
    [("id", json!(id)), ("input", input)].into_iter().collect()
}

fn new(input: Value) -> Value {
    [("input", input)].into_iter().collect()
}

/// Servers, images and agents.
fn of_fleet(all: &Population, spare: &Spare) -> Vec<(&'static str, Value)> {
    vec![
        ("createServer", new(json!({ "name": "law", "labels": { "rack": "1" } }))),
        ("updateServer", edit(spare.server, json!({ "region": "north" }))),
        ("regenerateProvisioningToken", id(all.servers[0])),
        ("confirmHost", json!({ "id": all.servers[3], "join": 1 })),
        ("deleteServer", id(spare.server)),
        ("createImage", new(json!({ "name": "law", "reference": "registry.example/law:1" }))),
        ("updateImage", edit(spare.image, json!({ "description": "edited" }))),
        ("archiveImage", id(spare.image)),
        ("unarchiveImage", id(spare.image)),
        ("createAgent", new(json!({ "name": "law", "serverId": all.servers[0], "imageId": all.images[0] }))),
        ("updateAgent", edit(spare.agent, json!({ "name": "Édited" }))),
        ("revertAgent", json!({ "id": all.agents[0], "revision": 1, "reason": "law" })),
        ("setAgentAvatar", edit(spare.agent, picture_input())),
        ("deleteAgent", id(spare.agent)),
        ("restoreAgent", id(spare.agent)),
        ("cancelTurn", id(all.turns[0])),
        ("retryTurn", id(all.turns[3])),
        ("restoreBackup", id(all.backups[0])),
        ("deleteBackup", id(all.backups[1])),
        ("startAgent", id(all.agents[0])),
        ("startAgents", json!({ "serverId": all.servers[2] })),
        ("backupAgent", id(all.agents[0])),
        ("testMcpServer", json!({ "id": all.mcp_servers[1], "agentId": all.agents[1] })),
        ("pauseAgent", id(all.agents[1])),
        ("resumeAgent", id(all.agents[1])),
        ("stopAgent", id(all.agents[1])),
        ("restartAgent", id(all.agents[1])),
    ]
}

/// Calls about agents' equipment, and all others.
fn of_work(all: &Population, spare: &Spare) -> Vec<(&'static str, Value)> {
    let webhook = json!({ "outboundUrl": "https://hook.example/in", "inboundSecret": "a long secret text" });
    let fields = json!([{ "label": "key", "type": "secret", "value": "hush", "position": 0 }]);
    let agents = json!({ "agentIds": [all.agents[1]] });
    vec![
        (
            "createChannel",
            new(
                json!({ "name": "law", "transport": "WEBHOOK", "agentId": all.agents[0], "webhook": webhook }),
            ),
        ),
        (
            "updateChannel",
            edit(
                all.channels[0],
                json!({ "name": "Édited", "instructions": null, "notifyConversationId": all.conversations[0] }),
            ),
        ),
        ("addWhitelistOrigin", edit(all.channels[0], json!({ "originId": "a new one" }))),
        ("removeWhitelistOrigin", json!({ "id": all.channels[0], "originId": "origin-0" })),
        ("testChannel", id(all.channels[0])),
        ("deleteChannel", id(all.channels[3])),
        ("updateContact", edit(all.contacts[0], json!({ "name": "Édited" }))),
        ("deleteContact", id(all.contacts[2])),
        ("startConversation", new(json!({ "agentId": all.agents[0], "title": "law" }))),
        ("postMessage", json!({ "conversationId": spare.conversation, "input": { "text": "hello" } })),
        ("retryDelivery", json!({ "messageId": all.messages[0] })),
        ("takeOverConversation", id(spare.conversation)),
        ("handBackConversation", id(spare.conversation)),
        ("markRead", json!({ "conversationId": all.conversations[2], "seq": 1 })),
        ("updateConversation", edit(spare.conversation, json!({ "title": "edited" }))),
        ("uploadAttachment", new(json!({ "filename": "a.txt", "contentBase64": STANDARD.encode("a file") }))),
        ("assignApproval", json!({ "id": all.approvals[0], "userId": all.members[3] })),
        ("snoozeApproval", json!({ "id": all.approvals[0], "until": "2026-06-02T08:00:00.000Z" })),
        ("watchConversation", json!({ "id": spare.conversation, "watch": true })),
        ("linkChat", json!({ "channelId": all.channels[1] })),
        ("unlinkChat", json!({ "channelId": all.channels[1] })),
        ("setNotifications", new(json!({ "agentFailed": "DIGEST" }))),
        ("answerApproval", edit(all.approvals[0], json!({ "options": ["a"], "text": "so" }))),
        ("dismissApproval", id(all.approvals[1])),
        ("resolveApproval", id(all.approvals[2])),
        (
            "createCredential",
            new(
                json!({ "name": "law", "kind": "api-key", "destinations": ["api.example"], "fields": fields }),
            ),
        ),
        ("updateCredential", edit(all.credentials[0], json!({ "description": "edited" }))),
        ("setCredentialAgents", edit(all.credentials[0], agents.clone())),
        ("setCredentialMembers", edit(all.credentials[0], json!({ "userIds": [all.members[3]] }))),
        ("archiveCredential", id(all.credentials[0])),
        ("unarchiveCredential", id(all.credentials[0])),
        ("createMcpServer", new(json!({ "name": "law", "transport": "HTTP", "url": "https://mcp.example" }))),
        ("updateMcpServer", edit(all.mcp_servers[0], json!({ "description": "edited" }))),
        ("setMcpServerAgents", edit(all.mcp_servers[0], agents.clone())),
        (
            "setMcpServerTool",
            json!({ "id": all.mcp_servers[0], "tool": "sum", "input": { "enabled": false, "risk": 70 } }),
        ),
        ("acceptMcpServerTools", json!({ "id": all.mcp_servers[0], "digests": ["echo-2"] })),
        ("archiveMcpServer", id(all.mcp_servers[0])),
        ("unarchiveMcpServer", id(all.mcp_servers[0])),
        ("createSkill", new(json!({ "name": "law", "content": "# Law" }))),
        ("updateSkill", edit(all.skills[0], json!({ "content": "# New", "effort": "LOW" }))),
        ("revertSkill", json!({ "id": all.skills[0], "version": 1, "reason": "law" })),
        ("setSkillAgents", edit(all.skills[0], agents)),
        ("archiveSkill", id(all.skills[0])),
        ("unarchiveSkill", id(all.skills[0])),
        ("updateMember", json!({ "userId": all.members[0], "input": { "role": "VIEWER" } })),
        ("removeMember", json!({ "userId": all.members[1] })),
        ("createServiceToken", new(json!({ "name": "law", "permissions": ["agent.view"] }))),
        ("updateServiceToken", edit(all.service_tokens[0], json!({ "name": "edited" }))),
        ("rotateServiceToken", edit(all.service_tokens[0], json!({ "overlapSeconds": 60 }))),
        ("revokeServiceToken", id(all.service_tokens[0])),
        ("updateOrganization", new(json!({ "timezone": "Europe/Vienna" }))),
        (
            "createModelCredential",
            new(json!({ "name": "law", "provider": "openai", "secret": "hush", "isDefault": true })),
        ),
        ("updateModelCredential", edit(all.model_credentials[0], json!({ "name": "edited" }))),
        ("archiveModelCredential", id(all.model_credentials[0])),
        ("allowHost", new(json!({ "host": "law.example" }))),
        ("removeAllowedHost", id(all.allowed_hosts[0])),
        ("allowSpending", new(json!({ "costMicro": 1000 }))),
        (
            "createEventEndpoint",
            new(json!({ "name": "law", "url": "https://hook.example/law", "types": ["agent.failed"] })),
        ),
        ("updateEventEndpoint", edit(all.event_endpoints[0], json!({ "name": "edited" }))),
        ("rotateEventEndpointSecret", json!({ "id": all.event_endpoints[0], "overlapSeconds": 60 })),
        ("retryEventDelivery", id(all.event_deliveries[0])),
        ("replayEvents", json!({ "endpointId": all.event_endpoints[0], "from": "2026-01-01T00:00:00.000Z" })),
        ("deleteEventEndpoint", id(all.event_endpoints[3])),
        ("setOrganizationAvatar", new(picture_input())),
        ("stopOrganization", json!({ "reason": "law" })),
        ("releaseOrganization", json!({})),
        ("eraseMember", json!({ "userId": all.members[2] })),
        ("eraseContact", json!({ "contactId": all.contacts[1] })),
        ("cancelErasure", json!({ "erasureId": all.erasures[0] })),
        ("scheduleDeletion", json!({ "name": fixtures::ORG_NAME })),
    ]
}

/// The input of the mutations that set a picture.
pub fn picture_input() -> Value {
    json!({ "contentBase64": STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x08\0\0\0\x08\x08\x02\0\0\0not much of a picture") })
}
