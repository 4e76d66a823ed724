//! The tools of MCP servers: hosts report definitions, people accept them, switch tools and set risks.
//!
//! The first tools of a server are accepted as they are. From then on a new or changed definition waits for a person;
//! until it is accepted, the tool can't be called, and hosts don't show it to agents. Another address or command means
//! another server, so all definitions are forgotten; a test of the connection forgets those that the server no longer
//! lists. Switches and risks stay, by the tool's name.

use std::{collections::BTreeMap, time::Duration};

use muster_protocol::{
    Command,
    event::{McpTest, McpToolReport},
    plan::ToolPin,
};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde_json::json;

use super::{
    Callable,
    entity::{mcp_server_agents, mcp_servers},
    input::McpServerToolInput,
    queries::{self, KnownTool, ReportedTool},
    reports::MAX_TOOLS,
};
use crate::{
    base::{
        bounds,
        enums::{AgentStatus, ChangeOp},
        ids::{AgentId, McpServerId},
        plain::{truncated_line, without_nul},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{access::Scope, store::Tx},
    domain::{
        agents::{
            self, assignments,
            reporter::{Reporter, lock_current},
        },
        commands, orgs,
    },
};

/// The longest name of a tool, in characters, as in the gate. A hostile host's longer names would keep the page from
/// loading.
const NAME: usize = 200;

/// People's decisions about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// Whether it is switched on.
    pub is_enabled: bool,
    /// Whether its last definition was accepted.
    pub is_accepted: bool,
    /// Its risk, instead of the risk rules'.
    pub risk: Option<i64>,
}

impl KnownTool {
    /// Whether the server lists it. Otherwise only its switch and risk are kept.
    fn is_listed(&self) -> bool {
        self.digest.is_some() || self.new_digest.is_some()
    }

    fn rule(&self) -> ToolRule {
        let is_accepted = self.digest.is_some() && self.new_digest.is_none();
        ToolRule { is_enabled: self.enabled, is_accepted, risk: self.risk }
    }

    fn into_pin(self) -> Option<ToolPin> {
        let ToolRule { is_enabled, is_accepted, .. } = self.rule();
        let digest = self.new_digest.or(self.digest)?;
        Some(ToolPin { name: self.name, digest, usable: is_enabled && is_accepted })
    }
}

/// The known tools of servers, by the server's id. Servers whose tools are unknown are missing.
pub async fn pins(tx: &Tx, servers: &[Callable]) -> Result<BTreeMap<i64, Vec<ToolPin>>> {
    let mut pins: BTreeMap<i64, Vec<ToolPin>> = BTreeMap::new();
    let ids: Vec<i64> = servers.iter().map(|server| server.id).collect();
    for tool in queries::known_tools(tx, &ids).await?.into_iter().filter(KnownTool::is_listed) {
        let of_server = pins.entry(tool.mcp_server_id).or_default();
        of_server.extend(tool.into_pin());
    }
    Ok(pins)
}

/// People's decisions about a call at the gate, `<server>.<tool>`. None: the server's tools are unknown. An unknown
/// tool of a server with known ones was not accepted.
pub async fn rule_of_call(tx: &Tx, server: &Callable, called: &str) -> Result<Option<ToolRule>> {
    let known = queries::known_tools(tx, &[server.id]).await?;
    let name = called.strip_prefix(&server.name).and_then(|rest| rest.strip_prefix('.'));
    let found = known.iter().find(|tool| name == Some(tool.name.as_str())).map(KnownTool::rule);
    let unknown = ToolRule { is_enabled: true, is_accepted: false, risk: None };
    Ok(found.or(known.iter().any(KnownTool::is_listed).then_some(unknown)))
}

/// People's decisions about a tool that an agent asks for: `<server>.<tool>`, or `mcp__<server>__<tool>` in any case,
/// with underscores for spaces and hyphens. Of several such tools the strictest counts, unless one has exactly this name:
/// otherwise a server could pass off a tool as a harmless one. None: the agent's servers have no such tool.
pub async fn rule_of_request(tx: &Tx, agent: AgentId, asked: &str) -> Result<Option<ToolRule>> {
    let servers = super::of_agent(tx, agent).await?;
    let folded = |text: &str| text.to_lowercase().replace([' ', '-'], "_");
    let wanted = folded(asked);
    let ids: Vec<i64> = servers.iter().map(|server| server.id).collect();
    let known = queries::known_tools(tx, &ids).await?;
    let candidates = known.iter().filter_map(|tool| {
        let server = servers.iter().find(|server| server.id == tool.mcp_server_id)?;
        let is_exact = asked == format!("{}.{}", server.name, tool.name);
        let (server, name) = (folded(&server.name), folded(&tool.name));
        let is_asked = wanted == format!("{server}.{name}") || wanted == format!("mcp__{server}__{name}");
        is_asked.then(|| (is_exact, tool.rule()))
    });
    let strictest = candidates.max_by_key(|(is_exact, rule)| {
        (*is_exact, !rule.is_enabled, !rule.is_accepted, rule.risk.is_none(), rule.risk)
    });
    Ok(strictest.map(|(_, rule)| rule))
}

/// Stores a host's report of tools. The host gets a new plan, because its plan is older.
pub async fn reported(tx: &Tx, from: &Reporter, report: McpToolReport) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let server = McpServerId(report.server_id);
    let links = tx.scope.find::<mcp_server_agents::Entity>();
    let link = links
        .filter(mcp_server_agents::Column::McpServerId.eq(server))
        .filter(mcp_server_agents::Column::AgentId.eq(agent.id));
    if link.one(tx.connection()).await?.is_none() {
        return Ok(());
    }
    let known = queries::known_tools(tx, &[server.0]).await?;
    // The pages of a first list may take a minute. Later tools are new.
    let first_list = tx.now.minus(Duration::from_mins(1));
    let mut listed = known.iter().filter(|tool| tool.is_listed());
    let is_first = report.is_first && listed.all(|tool| tool.known_since >= first_list);
    let mut is_news = false;
    let mut room = MAX_TOOLS.saturating_sub(known.len());
    for tool in report.tools {
        let is_text =
            |text: &str, most| (1..=most).contains(&text.chars().count()) && !text.contains(char::is_control);
        let is_known = known.iter().any(|known| known.name == tool.name);
        let has_room = is_known || room > 0;
        if !has_room || !is_text(&tool.name, NAME) || !is_text(&tool.digest, bounds::LABEL) {
            continue;
        }
        room -= usize::from(!is_known);
        // As in the gate. A hostile host's longer ones would keep the page from loading.
        let definition = tool.definition.filter(|definition| definition.to_string().len() <= 16 << 10);
        let definition = definition.map(without_nul);
        let tool = ReportedTool { name: tool.name, digest: tool.digest, definition };
        queries::store_tool(tx, server, tool, is_first).await?;
        is_news = true;
    }
    if is_news { agents::mark_for_sync(tx, &[agent.id]).await } else { Ok(()) }
}

/// Stores the result of a test.
pub async fn tested(tx: &Tx, from: &Reporter, test: McpTest) -> Result<()> {
    use mcp_server_agents::Column;
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let line = |text: Option<String>, most| text.map(|text| truncated_line(&text, most));
    let row = tx.scope.update::<mcp_server_agents::Entity>();
    let row = row.filter(Column::McpServerId.eq(test.server_id)).filter(Column::AgentId.eq(agent.id));
    let stored = row
        .col_expr(Column::TestedAt, Expr::value(from.time(tx, Timestamp(0))))
        .col_expr(Column::TestError, Expr::value(line(test.error, bounds::REASON)))
        .col_expr(Column::Protocol, Expr::value(line(test.protocol, bounds::NAME)))
        .col_expr(Column::Program, Expr::value(line(test.program, bounds::NAME)))
        .exec(tx.connection())
        .await?;
    agents::announce(tx, agent.id);
    if let Some(listed) = test.listed
        && stored.rows_affected > 0
        && forget_unlisted(tx, McpServerId(test.server_id), &listed).await?
    {
        agents::mark_for_sync(tx, &[agent.id]).await?;
    }
    Ok(())
}

/// Forgets all definitions of a server.
pub(super) async fn forget_all(tx: &Tx, server: McpServerId) -> Result<()> {
    let known = queries::known_tools(tx, &[server.0]).await?;
    let names: Vec<String> = known.into_iter().map(|tool| tool.name).collect();
    queries::forget_definitions(tx, server, &names).await
}

/// Forgets the definitions that aren't in a server's complete list. Returns whether there were any.
async fn forget_unlisted(tx: &Tx, server: McpServerId, listed: &[String]) -> Result<bool> {
    let known = queries::known_tools(tx, &[server.0]).await?.into_iter().filter(KnownTool::is_listed);
    let (present, gone): (Vec<_>, Vec<_>) =
        known.map(|tool| tool.name).partition(|name| listed.contains(name));
    // A server without definitions would have its next list accepted as its first one.
    if present.is_empty() || gone.is_empty() {
        return Ok(false);
    }
    queries::forget_definitions(tx, server, &gone).await?;
    Ok(true)
}

/// Asks the host of a running agent that has the server to start a session and list the tools, under the agent's rules.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `ORGANIZATION_STOPPED`, `AGENT_NOT_RUNNING`; `VALIDATION_FAILED` for an agent that doesn't
/// have the server.
pub async fn test(scope: &Scope, id: McpServerId, agent: AgentId) -> Result<()> {
    let tx = scope.begin().await?;
    orgs::require_going(&tx).await?;
    assignments::load_active::<mcp_servers::Entity>(&tx, id).await?;
    let found = agents::lock_agent(&tx, agent).await?;
    let agent = found.ok_or_else(|| Problem::not_found("agent", agent))?;
    if !queries::begin_test(&tx, id, agent.id).await? {
        let detail = "This agent does not have the MCP server.";
        return Err(Problem::invalid_parameter("agent_id", "NOT_ALLOWED", detail));
    }
    if !matches!(agent.status, AgentStatus::Running | AgentStatus::Paused) {
        let detail = "The host tests the connection as a running agent. Start the agent first.";
        return Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()));
    }
    commands::enqueue(&tx, agent.host(), &Command::TestMcp { server_id: id.0 });
    agents::announce(&tx, agent.id);
    let changes = json!({ "agent": agent.id });
    assignments::audit_change::<mcp_servers::Entity>(&tx, (ChangeOp::Updated, "testMcpServer"), id, changes);
    tx.commit().await
}

/// Switches a tool, and sets its risk. Calls obey the change at once; agents see it when they list the tools again.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`.
pub async fn set(scope: &Scope, id: McpServerId, name: &str, edit: McpServerToolInput) -> Result<()> {
    let tx = lock(scope, id).await?;
    let known = queries::known_tools(&tx, &[id.0]).await?;
    let tool = known.into_iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| Problem::not_found("MCP tool", name))?;
    let before = (tool.enabled, tool.risk);
    let enabled = edit.enabled.take().unwrap_or(tool.enabled);
    let risk = if edit.risk.is_undefined() { tool.risk } else { edit.risk.take() };
    if before == (enabled, risk) {
        return Ok(());
    }
    queries::set_tool(&tx, id, name, (enabled, risk)).await?;
    if !tool.is_listed() {
        // Without a decision nothing of it is left.
        queries::forget_definitions(&tx, id, &[name.to_owned()]).await?;
    }
    let changes = json!({ "tool": name, "enabled": [before.0, enabled], "risk": [before.1, risk] });
    finish(tx, id, "setMcpServerTool", changes).await
}

/// Accepts the definitions with these digests.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`; `CONFLICT` if one of them is no longer the last one, in which case nothing changes.
pub async fn accept(scope: &Scope, id: McpServerId, digests: &[String]) -> Result<()> {
    let tx = lock(scope, id).await?;
    if digests.is_empty() {
        return Ok(());
    }
    let known = queries::known_tools(&tx, &[id.0]).await?;
    let mut names = Vec::new();
    for digest in digests {
        if !queries::accept_tool(&tx, id, digest).await? {
            let detail = "The server has changed a definition again. Review it, and accept the new one.";
            return Err(Problem::new(Code::Conflict, detail));
        }
        names.extend(
            known.iter().find(|tool| tool.new_digest.as_ref() == Some(digest)).map(|tool| &tool.name),
        );
    }
    let changes = json!({ "accepted": names });
    finish(tx, id, "acceptMcpServerTools", changes).await
}

/// Begins a change of a server's tools. Agents are locked before tools, as in reports.
async fn lock(scope: &Scope, id: McpServerId) -> Result<Tx> {
    let tx = scope.begin().await?;
    assignments::load_active::<mcp_servers::Entity>(&tx, id).await?;
    assignments::lock_assigned::<mcp_servers::Entity>(&tx, id).await?;
    Ok(tx)
}

async fn finish(tx: Tx, id: McpServerId, operation: &'static str, changes: serde_json::Value) -> Result<()> {
    assignments::count_edit::<mcp_servers::Entity>(&tx, id).await?;
    assignments::mark_assigned::<mcp_servers::Entity>(&tx, id).await?;
    assignments::audit_change::<mcp_servers::Entity>(&tx, (ChangeOp::Updated, operation), id, changes);
    tx.commit().await
}
