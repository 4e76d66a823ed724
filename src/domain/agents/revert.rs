//! Reverting to an earlier revision: an edit that sets everything at once.
//!
//! The agent gets the settings, credentials, MCP servers and skills of the revision; skills keep their current
//! versions. The model credential is not part of a revision and stays as it is.

use serde_json::{Map, Value, json};

use super::{
    SetAssignments, UpdateAgentInput, edit, revisions,
    rows::{finish, load},
    sync::mark_for_sync,
};
use crate::{
    base::{
        enums::ChangeOp,
        ids::{AgentId, CredentialId, McpServerId, SkillId},
        problem::Result,
    },
    core::{access::Scope, handlers::ask, store::Tx},
    domain::{
        orgs,
        versions::{as_edit, read},
    },
};

/// Reverts the agent to an earlier revision, which becomes its newest one. Does nothing if they are the same.
///
/// # Errors
/// `NOT_FOUND`; the errors of an edit with the same values; `VALIDATION_FAILED` naming a credential, MCP server or
/// skill that is archived; `PERMISSION_DENIED` if the agent would get or lose one that the caller may not assign.
pub async fn revert(scope: &Scope, id: AgentId, to: i64, reason: String) -> Result<()> {
    // A revision never changes, so it is read and parsed before anything is locked.
    let content = read(&revisions::load(&scope.begin().await?, id, to).await?.content)?;
    let edit: UpdateAgentInput = as_edit(&content)?;
    let cron = orgs::parse_cron(scope, edit.backup_cron.value()).await?;
    let mut tx = scope.begin().await?;
    tx.reason = Some(reason);
    // Credentials, MCP servers and skills are locked before the agent, as when they are assigned.
    let mut changes = restore_assignments(&tx, id, &content).await?;
    let agent = load(&tx, id).await?;
    let agent = match edit::write_edit(&tx, agent.clone(), edit, cron.as_ref()).await? {
        None if changes.is_empty() => return Ok(()),
        None => agent,
        Some(edited) => {
            changes.extend(edited.changes);
            edited.agent
        }
    };
    revisions::record_revisions(&tx, &[agent], Some(to)).await?;
    mark_for_sync(&tx, &[id]).await?;
    changes.insert("reverts_to".to_owned(), to.into());
    changes.insert("reason".to_owned(), json!(tx.reason));
    finish(tx, (ChangeOp::Updated, "revertAgent"), id, Value::Object(changes)).await
}

/// Restores the agent's credentials, MCP servers and skills. Returns the changes.
async fn restore_assignments(
    tx: &Tx,
    agent: AgentId,
    content: &Map<String, Value>,
) -> Result<Map<String, Value>> {
    let ids = |kind: &str| -> Option<Vec<i64>> {
        let id_of = |item: &Value| item.get("id").unwrap_or(item).as_i64();
        content.get(kind)?.as_array().map(|items| items.iter().filter_map(id_of).collect())
    };
    let mut changes = Map::new();
    let mut add_change =
        |kind: &str, change: Option<Value>| changes.extend(change.map(|it| (kind.to_owned(), it)));
    if let Some(wanted) = ids(revisions::CREDENTIALS) {
        let wanted = wanted.into_iter().map(CredentialId).collect();
        add_change("credentials", ask(tx, SetAssignments { agent, wanted }).await?);
    }
    if let Some(wanted) = ids(revisions::MCP_SERVERS) {
        let wanted = wanted.into_iter().map(McpServerId).collect();
        add_change("mcp_servers", ask(tx, SetAssignments { agent, wanted }).await?);
    }
    if let Some(wanted) = ids(revisions::SKILLS) {
        let wanted = wanted.into_iter().map(SkillId).collect();
        add_change("skills", ask(tx, SetAssignments { agent, wanted }).await?);
    }
    Ok(changes)
}
