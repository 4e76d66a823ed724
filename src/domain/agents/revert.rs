//! Going back to an earlier revision: an edit like any other, that sets everything at once.
//!
//! The agent gets the settings it had, and the credentials, MCP servers and skills, the skills in their present versions.
//! What a revision doesn't contain stays as it is: the model credential.

use serde_json::{Map, Value, json};

use super::{
    Equip, UpdateAgentInput, edit, revisions,
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

/// Makes the agent again what it was in an earlier revision, as a new revision. If it is that already, nothing happens.
///
/// # Errors
/// `NOT_FOUND`; whatever an edit with the same values would be refused for; `VALIDATION_FAILED` naming a credential, MCP
/// server or skill that is archived; `PERMISSION_DENIED` if it would get or lose one that the caller may not assign.
pub async fn revert(scope: &Scope, id: AgentId, to: i64, reason: String) -> Result<()> {
    // A revision never changes, so it is read and judged before anything is locked.
    let content = read(&revisions::load(&scope.begin().await?, id, to).await?.content)?;
    let edit: UpdateAgentInput = as_edit(&content)?;
    let cron = orgs::judge_cron(scope, edit.backup_cron.value()).await?;
    let mut tx = scope.begin().await?;
    tx.reason = Some(reason);
    // What is assigned is locked before the agent, as when it is assigned.
    let mut changes = equip(&tx, id, &content).await?;
    let agent = load(&tx, id).await?;
    let agent = match edit::write(&tx, agent.clone(), edit, cron.as_ref()).await? {
        None if changes.is_empty() => return Ok(()),
        None => agent,
        Some(edited) => {
            changes.extend(edited.changes);
            edited.agent
        }
    };
    revisions::follow(&tx, &[agent], Some(to)).await?;
    mark_for_sync(&tx, &[id]).await?;
    changes.insert("reverts_to".to_owned(), to.into());
    changes.insert("reason".to_owned(), json!(tx.reason));
    finish(tx, (ChangeOp::Updated, "revertAgent"), id, Value::Object(changes)).await
}

/// Gives the agent what it worked with, and takes the rest. Returns what changed.
async fn equip(tx: &Tx, agent: AgentId, content: &Map<String, Value>) -> Result<Map<String, Value>> {
    let ids = |kind: &str| -> Option<Vec<i64>> {
        let of = |item: &Value| item.get("id").unwrap_or(item).as_i64();
        content.get(kind)?.as_array().map(|items| items.iter().filter_map(of).collect())
    };
    let mut changes = Map::new();
    let mut note = |kind: &str, change: Option<Value>| changes.extend(change.map(|it| (kind.to_owned(), it)));
    if let Some(wanted) = ids(revisions::CREDENTIALS) {
        let wanted = wanted.into_iter().map(CredentialId).collect();
        note("credentials", ask(tx, Equip { agent, wanted }).await?);
    }
    if let Some(wanted) = ids(revisions::MCP_SERVERS) {
        let wanted = wanted.into_iter().map(McpServerId).collect();
        note("mcp_servers", ask(tx, Equip { agent, wanted }).await?);
    }
    if let Some(wanted) = ids(revisions::SKILLS) {
        let wanted = wanted.into_iter().map(SkillId).collect();
        note("skills", ask(tx, Equip { agent, wanted }).await?);
    }
    Ok(changes)
}
