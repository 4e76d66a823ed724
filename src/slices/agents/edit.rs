//! Edits an agent's settings. Measured values (usage, tokens, uptime) can't be set.

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, IdenStatic, IntoActiveModel, Iterable, Set};
use serde_json::json;

use super::{check, entity::agents, finish, load, mark_for_sync, require_free_name};
use crate::{
    base::{
        enums::ChangeOp,
        ids::AgentId,
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        sealing::SealContext,
        store::{Tx, patch, patch_all, patch_required},
    },
    slices::{agents::UpdateAgentInput, conversations},
};

/// Edits an agent. An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `VALIDATION_FAILED`, `NAME_TAKEN`; `AGENT_ALREADY_RUNNING` when moving a running agent.
pub async fn update(scope: &Scope, id: AgentId, edit: UpdateAgentInput) -> Result<()> {
    let mut tx = scope.begin().await?;
    let agent = load(&tx, id).await?;
    check::at_rest(&agent, &edit)?;
    Problem::refuse(check::values(&tx, &agent, &edit).await?)?;
    if let MaybeUndefined::Value(name) = &edit.name {
        require_free_name(&tx, name.trim(), Some(id)).await?;
    }
    let mut agent = agent.into_active_model();
    apply(&tx, &mut agent, edit, id);
    check::settings(&agent)?;
    if !agent.is_changed() {
        return Ok(());
    }
    agent.updated_at = Set(tx.now);
    let mut changes = audit::changed(&agent);
    if changes.get("model_credential_sealed").is_some() {
        changes["model_credential"] = json!("changed");
    }
    let is_for_host = is_for_host(&agent);
    if agent.server_id.is_set() || agent.image_id.is_set() {
        conversations::forget_sessions(&tx, id).await?;
    }
    agent.update(tx.connection()).await?;
    if is_for_host {
        mark_for_sync(&mut tx, &[id]).await?;
    }
    finish(tx, (ChangeOp::Updated, "updateAgent"), id, changes).await
}

/// Whether the edit concerns the agent's host. Some columns are only for people, and the host learns of a new
/// server or image on the next launch.
fn is_for_host(agent: &agents::ActiveModel) -> bool {
    use agents::Column::{Description, ImageId, Name, Role, ServerId, UpdatedAt};
    let for_people = [Name, Description, Role, ServerId, ImageId, UpdatedAt];
    agents::Column::iter().any(|column| {
        !for_people.iter().any(|known| known.as_str() == column.as_str()) && agent.get(column).is_set()
    })
}

fn apply(tx: &Tx, agent: &mut agents::ActiveModel, edit: UpdateAgentInput, id: AgentId) {
    patch_required(&mut agent.name, edit.name.map_value(|name| name.trim().to_owned()));
    if edit.model_credential.is_null() {
        // The type goes with the credential.
        patch(&mut agent.model_credential_type, MaybeUndefined::Null);
    }
    let context = SealContext::new(tx.scope.org, "agents", id.0, "model_credential");
    let sealed = edit.model_credential.map_value(|secret| tx.scope.core.keys.seal(&secret.0, &context));
    patch(&mut agent.model_credential_sealed, sealed);
    patch_required(&mut agent.approval_categories, edit.approval_categories.map_value(|list| json!(list)));
    patch_required(&mut agent.disabled_tool_groups, edit.disabled_tool_groups.map_value(|list| json!(list)));
    patch_all!(agent, edit;
        required server_id, image_id, credential_choice, thinking_enabled, mcp_http_bridge,
            response_style, response_format, single_message, no_emoji, hub_available,
            voice_enabled, network_privileged, backup_schedule, backup_freeze, cost_guard_mode,
            session_reset_mode;
        optional description, role, model_override, model_credential_type,
            model_credential_provider, model_credential_base_url, effort_override, language,
            approval_ask_threshold, approval_block_threshold, approval_timeout_minutes,
            memory_mb_override, cpu_override, voice_id, timezone, backup_cron, backup_retention,
            cost_guard_tokens_per_hour, cost_guard_action, session_reset_tokens,
    );
}
