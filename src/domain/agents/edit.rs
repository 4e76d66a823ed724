//! Edits of an agent's settings. Measured values (usage, tokens, uptime) can't be set.

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, IdenStatic, IntoActiveModel, Iterable, Set};
use serde_json::{Map, Value, json};

use super::{
    Edited, HasCredentials, LockedAgent, Moved, check,
    entity::agents,
    revisions,
    rows::{finish, load, require_free_name},
    sync::mark_for_sync,
};
use crate::{
    base::{
        enums::{ChangeOp, CredentialChoice, RestartPolicy},
        ids::AgentId,
        permission::Permission,
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        handlers::{ask, emit},
        sealing::SealContext,
        store::Tx,
    },
    domain::{
        agents::UpdateAgentInput,
        orgs::{self, ParsedCron},
        patch::{patch, patch_all, patch_required},
    },
};

/// Edits an agent. An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `VALIDATION_FAILED`, `NAME_TAKEN`; `AGENT_ALREADY_RUNNING` when moving a running agent;
/// `PERMISSION_DENIED` for settings that need more than `agent.edit` (`require_rights`).
pub async fn update(
    scope: &Scope,
    id: AgentId,
    edit: UpdateAgentInput,
    reason: Option<String>,
) -> Result<()> {
    let cron = orgs::parse_cron(scope, edit.backup_cron.value()).await?;
    let mut tx = scope.begin().await?;
    let agent = load(&tx, id).await?;
    let Some(mut edited) = write_edit(&tx, agent, edit, cron.as_ref()).await? else { return Ok(()) };
    tx.reason = reason;
    if edited.is_for_host {
        mark_for_sync(&tx, &[id]).await?;
    } else {
        revisions::record_revisions(&tx, &[edited.agent], None).await?;
    }
    if let Some(reason) = &tx.reason {
        edited.changes.insert("reason".to_owned(), json!(reason));
    }
    finish(tx, (ChangeOp::Updated, "updateAgent"), id, Value::Object(edited.changes)).await
}

pub(super) struct AppliedEdit {
    pub agent: agents::Model,
    /// As the audit log has them.
    pub changes: Map<String, Value>,
    is_for_host: bool,
}

/// Checks an edit and writes it, if it changes anything. The caller has locked the agent. `cron` is the edit's parsed
/// schedule.
pub(super) async fn write_edit(
    tx: &Tx,
    agent: agents::Model,
    edit: UpdateAgentInput,
    cron: Option<&ParsedCron>,
) -> Result<Option<AppliedEdit>> {
    let id = agent.id;
    check::require_at_rest_to_move(&agent, &edit)?;
    Problem::fail_if_any(check::check_values(tx, &agent, &edit, cron).await?)?;
    if let MaybeUndefined::Value(name) = &edit.name {
        require_free_name(tx, name.trim(), Some(id)).await?;
    }
    let before = agent.clone();
    let mut agent = agent.into_active_model();
    patch_row(tx, &mut agent, edit, id);
    check::check_settings(&agent)?;
    if !agent.is_changed() {
        return Ok(None);
    }
    require_rights(tx, &before, &agent).await?;
    agent.updated_at = Set(tx.now);
    let Value::Object(mut changes) = audit::changed(&before, &agent) else { return Ok(None) };
    if changes.contains_key("model_credential_sealed") {
        changes.insert("model_credential".to_owned(), json!(audit::CHANGED));
    }
    let is_for_host = is_for_host(&agent);
    let has_other_server = agent.server_id.is_set();
    if has_other_server || agent.image_id.is_set() {
        emit(tx, Moved { agent: LockedAgent::from_row(&before), has_other_server }).await?;
    }
    if agent.image_id.is_set() {
        // The new image's program offers other models and modes.
        agent.offered_models = Set(None);
        agent.offered_modes = Set(None);
    }
    let has_other_limits = agent.monthly_budget_micro.is_set()
        || agent.budget_action.is_set()
        || agent.cost_guard_mode.is_set()
        || agent.cost_guard_tokens_per_hour.is_set()
        || agent.cost_guard_action.is_set();
    let has_other_access = agent.model_credential_sealed.is_set() || agent.credential_choice.is_set();
    let agent = agent.update(tx.connection()).await?;
    if has_other_limits || has_other_access {
        emit(tx, Edited { agent: LockedAgent::from_row(&agent), has_other_limits, has_other_access }).await?;
    }
    Ok(Some(AppliedEdit { agent, changes, is_for_host }))
}

/// Some settings need more than `agent.edit`; `cli/apply/kinds.rs` names their permissions too (`needing`).
async fn require_rights(tx: &Tx, before: &agents::Model, agent: &agents::ActiveModel) -> Result<()> {
    let scope = &tx.scope;
    // The new server's host receives them. An inherited key is available to every host whose server has agents.
    if agent.server_id.is_set() && has_secrets(tx, before).await? {
        scope.require(Permission::CredentialEdit)?;
    }
    if agent.network_privileged.is_set() {
        scope.require(Permission::NetworkEdit)?;
    }
    if agent.monthly_budget_micro.is_set() || agent.budget_action.is_set() {
        scope.require(Permission::OrganizationEdit)?;
    }
    Ok(())
}

/// Whether the agent has secrets of its own: a model credential, or credentials, which its MCP servers receive as well.
async fn has_secrets(tx: &Tx, agent: &agents::Model) -> Result<bool> {
    Ok(agent.model_credential_sealed.is_some() || ask(tx, HasCredentials(agent.id)).await?)
}

/// Whether the agent's host needs the edit. The listed columns are only for people, come with each turn (instructions),
/// or take effect on the next launch (server and image).
fn is_for_host(agent: &agents::ActiveModel) -> bool {
    use agents::Column::{
        Description, ImageId, Instructions, Name, RestartAt, RestartPolicy, Role, ServerId, UpdatedAt,
    };
    let not_for_host =
        [Name, Description, Role, Instructions, ServerId, ImageId, RestartPolicy, RestartAt, UpdatedAt];
    agents::Column::iter().any(|column| {
        !not_for_host.iter().any(|known| known.as_str() == column.as_str()) && agent.get(column).is_set()
    })
}

fn patch_row(tx: &Tx, agent: &mut agents::ActiveModel, edit: UpdateAgentInput, id: AgentId) {
    patch_required(&mut agent.name, edit.name.map_value(|name| name.trim().to_owned()));
    if edit.model_credential.is_null() {
        // Clearing the credential clears its type.
        patch(&mut agent.model_credential_type, MaybeUndefined::Null);
    }
    if edit.model_credential.is_value() && edit.credential_choice.is_undefined() {
        // An agent that gets a credential of its own is meant to use it.
        agent.credential_choice.set_if_not_equals(CredentialChoice::Own);
    }
    if edit.restart_policy.as_opt_ref() == Some(Some(&RestartPolicy::Never)) {
        agent.restart_at.set_if_not_equals(None);
    }
    let context = SealContext::new(tx.scope.org, "agents", id.0, "model_credential");
    let sealed = edit.model_credential.map_value(|secret| tx.scope.core.sealing.seal(&secret.0, &context));
    patch(&mut agent.model_credential_sealed, sealed);
    patch_required(&mut agent.approval_categories, edit.approval_categories.map_value(|list| json!(list)));
    patch_required(&mut agent.disabled_tool_groups, edit.disabled_tool_groups.map_value(|list| json!(list)));
    patch_all!(agent, edit;
        required server_id, image_id, credential_choice, thinking_enabled, mcp_http_bridge,
            response_style, response_format, single_message, no_emoji, hub_available,
            voice_enabled, network_privileged, restart_policy, backup_schedule, backup_freeze, cost_guard_mode,
            budget_action, session_reset_mode;
        optional description, role, instructions, model_override, mode_override, model_credential_type,
            model_credential_provider, model_credential_base_url, effort_override, language,
            approval_ask_threshold, approval_block_threshold, approval_timeout_minutes,
            memory_mb_override, cpu_override, voice_id, timezone, backup_cron, backup_retention,
            cost_guard_tokens_per_hour, cost_guard_action, monthly_budget_micro, session_reset_tokens,
    );
}
