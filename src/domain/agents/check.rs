//! Validates an edit of an agent: values that need the database or a library to check, and whether the resulting
//! settings agree with each other.

use async_graphql::MaybeUndefined;
use icu_locale_core::subtags::{Language, Region, Script, Variant};
use sea_orm::TryIntoModel;

use super::{UpdateAgentInput, entity::agents};
use crate::{
    base::{
        enums::{BackupSchedule, CredentialChoice, OverrideMode},
        problem::{Code, Problem, Result, Violation},
    },
    core::store::Tx,
    domain::{
        orgs::{self, Limit, ParsedCron},
        servers,
    },
};

/// Refuses to move a running agent: the host that launched it must learn of the stop.
///
/// # Errors
/// `AGENT_ALREADY_RUNNING`.
pub(super) fn require_at_rest_to_move(agent: &agents::Model, edit: &UpdateAgentInput) -> Result<()> {
    let moves = edit.server_id.value().is_some_and(|server| *server != agent.server_id)
        || edit.image_id.value().is_some_and(|image| *image != agent.image_id);
    if !moves || agent.status.is_at_rest() {
        return Ok(());
    }
    let detail = "Stop the agent before moving it to another server or image.";
    Err(Problem::new(Code::AgentAlreadyRunning, detail).with("status", agent.status.as_str()))
}

/// Checks each value of an edit by itself. `cron` is its parsed schedule.
pub(super) async fn check_values(
    tx: &Tx,
    agent: &agents::Model,
    edit: &UpdateAgentInput,
    cron: Option<&ParsedCron>,
) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    if let MaybeUndefined::Value(server) = edit.server_id
        && server != agent.server_id
        && !servers::lock_existing(tx, server).await?
    {
        violations.push(Violation::unknown("/server_id", "server", server));
    }
    if let MaybeUndefined::Value(image) = edit.image_id
        && image != agent.image_id
        && !servers::image_is_usable(tx, image).await?
    {
        violations.push(Violation::unknown("/image_id", "image", image));
    }
    if let MaybeUndefined::Value(zone) = &edit.timezone {
        violations.extend(orgs::check_timezone("/timezone", zone));
    }
    if let Some(cron) = cron {
        let minutes = orgs::limit(tx, Limit::MinCronInterval).await?;
        violations.extend(cron.check("/backup_cron", minutes));
    }
    if let MaybeUndefined::Value(language) = &edit.language
        && !is_language(language)
    {
        let detail = format!("`{language}` is not a valid language code. Examples: en, pt-BR.");
        violations.push(Violation::at("/language", "NOT_ALLOWED", detail));
    }
    if edit.cpu_override.value().is_some_and(|cores| *cores < 0.01) {
        let detail = "`cpu_override` must be at least 0.01. Send null for the default.";
        violations.push(Violation::at("/cpu_override", "TOO_SMALL", detail));
    }
    if let MaybeUndefined::Value(url) = &edit.model_credential_base_url {
        violations.extend(orgs::check_base_url("/model_credential_base_url", url));
    }
    // Otherwise an editor could have the credential sent to someone else.
    let url = edit.model_credential_base_url.as_opt_ref();
    let provider = edit.model_credential_provider.as_opt_ref();
    let is_redirected = url.is_some_and(|url| url != agent.model_credential_base_url.as_ref())
        || provider.is_some_and(|provider| provider != agent.model_credential_provider.as_ref());
    if is_redirected && agent.model_credential_sealed.is_some() && edit.model_credential.is_undefined() {
        let detail = "`model_credential` is required when the provider or the base URL changes: a stored credential is only used with those it was set for.";
        violations.push(Violation::at("/model_credential", "REQUIRED", detail));
    }
    Ok(violations)
}

/// A language tag with optional subtags: `en`, `pt-BR`, `zh-Hant-TW`.
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let narrows = |part: &str| {
        Script::try_from_str(part).is_ok()
            || Region::try_from_str(part).is_ok()
            || Variant::try_from_str(part).is_ok()
    };
    parts.next().is_some_and(|part| Language::try_from_str(part).is_ok()) && parts.all(narrows)
}

/// Refuses an edit with contradictory settings.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub(super) fn check_settings(agent: &agents::ActiveModel) -> Result<()> {
    let agent = agent.clone().try_into_model()?;
    let mut violations = Vec::new();
    let mut needs = |is_missing: bool, pointer: &str, because: &str| {
        if is_missing {
            let detail = format!("`{}` is required when {because}.", &pointer[1..]);
            violations.push(Violation::at(pointer, "REQUIRED", detail));
        }
    };
    if agent.backup_schedule == BackupSchedule::Cron {
        needs(agent.backup_cron.is_none(), "/backup_cron", "`backupSchedule` is CRON");
    }
    if agent.cost_guard_mode == OverrideMode::Custom {
        let because = "`costGuardMode` is CUSTOM";
        needs(agent.cost_guard_tokens_per_hour.is_none(), "/cost_guard_tokens_per_hour", because);
        needs(agent.cost_guard_action.is_none(), "/cost_guard_action", because);
    }
    if agent.session_reset_mode == OverrideMode::Custom {
        let because = "`sessionResetMode` is CUSTOM";
        needs(agent.session_reset_tokens.is_none(), "/session_reset_tokens", because);
    }
    if agent.credential_choice == CredentialChoice::Own {
        let because = "`credentialChoice` is OWN";
        needs(agent.model_credential_sealed.is_none(), "/model_credential", because);
    }
    if let (Some(ask), Some(block)) = (agent.approval_ask_threshold, agent.approval_block_threshold)
        && ask > block
    {
        let detail = format!("The agent would never ask, because `approvalBlockThreshold` is {block}.");
        violations.push(Violation::at("/approval_ask_threshold", "TOO_LARGE", detail));
    }
    Problem::fail_if_any(violations)
}
