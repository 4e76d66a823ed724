//! Editing an agent: its settings, one by one. What is measured (usage, tokens, uptime) can't be set.

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, IdenStatic, IntoActiveModel, Iterable, Set};
use secrecy::SecretString;
use serde_json::json;

use super::{check, entity::agents, finish, load, mark_for_sync, require_free_name};
use crate::{
    base::{
        enums::{
            BackupSchedule, ChangeOp, CostGuardAction, CredentialChoice, Effort, ModelCredentialType,
            OverrideMode, ResponseFormat, ResponseStyle,
        },
        ids::{AgentId, ImageId, ServerId},
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        sealing::SealContext,
        store::{Tx, patch, patch_required},
    },
};

/// What an edit changes: absent is untouched, null clears what may be empty.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each is the agent's field of the same name, which the schema describes")]
pub struct AgentEdit {
    pub name: MaybeUndefined<String>,
    pub description: MaybeUndefined<String>,
    pub role: MaybeUndefined<String>,
    pub server_id: MaybeUndefined<ServerId>,
    pub image_id: MaybeUndefined<ImageId>,
    pub model_override: MaybeUndefined<String>,
    pub model_credential_type: MaybeUndefined<ModelCredentialType>,
    pub model_credential_provider: MaybeUndefined<String>,
    pub model_credential_base_url: MaybeUndefined<String>,
    pub model_credential: MaybeUndefined<SecretString>,
    pub credential_choice: MaybeUndefined<CredentialChoice>,
    pub effort_override: MaybeUndefined<Effort>,
    pub thinking_enabled: MaybeUndefined<bool>,
    pub language: MaybeUndefined<String>,
    pub mcp_http_bridge: MaybeUndefined<bool>,
    pub response_style: MaybeUndefined<ResponseStyle>,
    pub response_format: MaybeUndefined<ResponseFormat>,
    pub single_message: MaybeUndefined<bool>,
    pub no_emoji: MaybeUndefined<bool>,
    pub approval_ask_threshold: MaybeUndefined<i64>,
    pub approval_block_threshold: MaybeUndefined<i64>,
    pub approval_timeout_minutes: MaybeUndefined<i64>,
    pub approval_categories: MaybeUndefined<Vec<String>>,
    pub disabled_tool_groups: MaybeUndefined<Vec<String>>,
    pub memory_mb_override: MaybeUndefined<i64>,
    pub cpu_override: MaybeUndefined<f64>,
    pub hub_available: MaybeUndefined<bool>,
    pub voice_enabled: MaybeUndefined<bool>,
    pub network_privileged: MaybeUndefined<bool>,
    pub voice_id: MaybeUndefined<String>,
    pub backup_schedule: MaybeUndefined<BackupSchedule>,
    pub timezone: MaybeUndefined<String>,
    pub backup_cron: MaybeUndefined<String>,
    pub backup_retention: MaybeUndefined<i64>,
    pub backup_freeze: MaybeUndefined<bool>,
    pub cost_guard_mode: MaybeUndefined<OverrideMode>,
    pub cost_guard_tokens_per_hour: MaybeUndefined<i64>,
    pub cost_guard_action: MaybeUndefined<CostGuardAction>,
    pub session_reset_mode: MaybeUndefined<OverrideMode>,
    pub session_reset_tokens: MaybeUndefined<i64>,
}

/// Edits an agent, unless nothing changes.
///
/// # Errors
/// `NOT_FOUND`, `VALIDATION_FAILED`, `NAME_TAKEN`; `AGENT_ALREADY_RUNNING` for moving an agent that is up.
pub async fn update(scope: &Scope, id: AgentId, edit: AgentEdit) -> Result<()> {
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
    agent.update(tx.connection()).await?;
    if is_for_host {
        mark_for_sync(&mut tx, &[id]).await?;
    }
    finish(tx, (ChangeOp::Updated, "updateAgent"), id, changes).await
}

/// Whether an edit changes what the agent's host works with. Some columns are for people alone, and where it lives and what
/// it runs from is told by the next launch.
fn is_for_host(agent: &agents::ActiveModel) -> bool {
    use agents::Column::{Description, ImageId, Name, Role, ServerId, UpdatedAt};
    let for_people = [Name, Description, Role, ServerId, ImageId, UpdatedAt];
    agents::Column::iter().any(|column| {
        !for_people.iter().any(|known| known.as_str() == column.as_str()) && agent.get(column).is_set()
    })
}

fn apply(tx: &Tx, agent: &mut agents::ActiveModel, edit: AgentEdit, id: AgentId) {
    patch_required(&mut agent.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch(&mut agent.description, edit.description);
    patch(&mut agent.role, edit.role);
    patch_required(&mut agent.server_id, edit.server_id);
    patch_required(&mut agent.image_id, edit.image_id);
    patch(&mut agent.model_override, edit.model_override);
    if edit.model_credential.is_null() {
        // Without a credential it is of no kind.
        patch(&mut agent.model_credential_type, MaybeUndefined::Null);
    }
    patch(&mut agent.model_credential_type, edit.model_credential_type);
    patch(&mut agent.model_credential_provider, edit.model_credential_provider);
    patch(&mut agent.model_credential_base_url, edit.model_credential_base_url);
    let context = SealContext::new(tx.scope.org, "agents", id.0, "model_credential");
    let sealed = edit.model_credential.map_value(|secret| tx.scope.core.keys.seal(&secret, &context));
    patch(&mut agent.model_credential_sealed, sealed);
    patch_required(&mut agent.credential_choice, edit.credential_choice);
    patch(&mut agent.effort_override, edit.effort_override);
    patch_required(&mut agent.thinking_enabled, edit.thinking_enabled);
    patch(&mut agent.language, edit.language);
    patch_required(&mut agent.mcp_http_bridge, edit.mcp_http_bridge);
    patch_required(&mut agent.response_style, edit.response_style);
    patch_required(&mut agent.response_format, edit.response_format);
    patch_required(&mut agent.single_message, edit.single_message);
    patch_required(&mut agent.no_emoji, edit.no_emoji);
    patch(&mut agent.approval_ask_threshold, edit.approval_ask_threshold);
    patch(&mut agent.approval_block_threshold, edit.approval_block_threshold);
    patch(&mut agent.approval_timeout_minutes, edit.approval_timeout_minutes);
    patch_required(&mut agent.approval_categories, edit.approval_categories.map_value(|list| json!(list)));
    patch_required(&mut agent.disabled_tool_groups, edit.disabled_tool_groups.map_value(|list| json!(list)));
    patch(&mut agent.memory_mb_override, edit.memory_mb_override);
    patch(&mut agent.cpu_override, edit.cpu_override);
    patch_required(&mut agent.hub_available, edit.hub_available);
    patch_required(&mut agent.voice_enabled, edit.voice_enabled);
    patch_required(&mut agent.network_privileged, edit.network_privileged);
    patch(&mut agent.voice_id, edit.voice_id);
    patch_required(&mut agent.backup_schedule, edit.backup_schedule);
    patch(&mut agent.timezone, edit.timezone);
    patch(&mut agent.backup_cron, edit.backup_cron);
    patch(&mut agent.backup_retention, edit.backup_retention);
    patch_required(&mut agent.backup_freeze, edit.backup_freeze);
    patch_required(&mut agent.cost_guard_mode, edit.cost_guard_mode);
    patch(&mut agent.cost_guard_tokens_per_hour, edit.cost_guard_tokens_per_hour);
    patch(&mut agent.cost_guard_action, edit.cost_guard_action);
    patch_required(&mut agent.session_reset_mode, edit.session_reset_mode);
    patch(&mut agent.session_reset_tokens, edit.session_reset_tokens);
}
