//! Connects a channel to an agent.

use sea_orm::{ActiveModelTrait, IntoActiveModel, NotSet};
use serde_json::json;

use super::{
    check,
    edit::{self, seal},
    entity::channels::Model,
    input::CreateChannelInput,
    merge::{Secrets, merge},
    open::{OpenedSecrets, set_inlet, slug, why_inactive},
    probe,
    rows::finish,
    token,
};
use crate::{
    base::{
        enums::{ChangeOp, ChannelDirection, ChannelScope, ListenScope, Transport},
        ids::{AgentId, ChannelId},
        problem::{Problem, Result, Violation},
    },
    core::{access::Scope, store::Tx},
    domain::agents,
};

/// Connects a channel to an agent (specification, operation 16). The channel is active at once, unless it needs an
/// account first. The vendor is asked for the channel's identity.
///
/// # Errors
/// `VALIDATION_FAILED`, also for credentials that the vendor refuses; `PLAN_LIMIT_REACHED`.
pub async fn create(scope: &Scope, input: CreateChannelInput) -> Result<ChannelId> {
    let mut draft = build_draft(scope, input);
    ask_vendor(scope, &mut draft).await?;
    let tx = scope.begin().await?;
    let (channel, secrets) = check_references(&tx, draft).await?;
    if channel.scope == ChannelScope::External {
        edit::check_limit(&tx, channel.agent_id, None, false).await?;
    }
    let changes =
        json!({ "name": channel.name, "transport": channel.transport, "agent_id": channel.agent_id });
    let mut row = channel.into_active_model().reset_all();
    row.id = NotSet;
    let channel = row.insert(tx.connection()).await?;
    let (id, agent) = (channel.id, channel.agent_id);
    // Secrets are sealed for their row's id, which the insert assigns.
    let mut sealed = channel.into_active_model();
    seal(&tx, id, &mut sealed, secrets);
    if sealed.is_changed() {
        sealed.update(tx.connection()).await?;
    }
    finish(tx, (ChangeOp::Created, "createChannel"), id, agent, changes).await?;
    Ok(id)
}

/// The channel that an input describes.
struct Draft {
    channel: Model,
    secrets: Secrets,
    violations: Vec<Violation>,
}

/// Builds and validates the channel as far as possible without the database.
fn build_draft(scope: &Scope, input: CreateChannelInput) -> Draft {
    let mut violations = Vec::new();
    let (agent, transport) = (input.agent_id, input.transport);
    if transport == Transport::Internal {
        let detail = "INTERNAL is the panel and can't be connected.";
        violations.push(Violation::at("/transport", "NOT_ALLOWED", detail));
    }
    let edit = input.into_edit();
    violations.extend(check::check_input(transport, &edit));
    let nothing = empty_channel(scope, agent, transport);
    let mut channel = nothing.clone();
    let secrets = merge(&mut channel, edit);
    set_inlet(&mut channel, &secrets);
    violations.extend(check::check_required(&nothing, &channel, &secrets));
    violations.extend(check::check_code_host(&channel, &scope.core.config.channels));
    channel.inactive_reason = why_inactive(&channel);
    channel.is_active = channel.inactive_reason.is_none();
    Draft { channel, secrets, violations }
}

/// Asks the vendor for the channel's identity.
async fn ask_vendor(scope: &Scope, draft: &mut Draft) -> Result<()> {
    if !draft.violations.is_empty() || !draft.channel.is_active {
        return Ok(());
    }
    let secrets = OpenedSecrets::default().apply_edit(&draft.secrets);
    let mut answer = probe::ask_vendor(&scope.core, &draft.channel, secrets).await?;
    draft.violations.append(&mut answer.refused);
    answer.apply(&mut draft.channel, true);
    Ok(())
}

/// Checks the draft against the organization's records and, for its bot token, the whole installation.
async fn check_references(tx: &Tx, mut draft: Draft) -> Result<(Model, Secrets)> {
    let channel = &mut draft.channel;
    if agents::lock_agent(tx, channel.agent_id).await?.is_none() {
        draft.violations.insert(0, Violation::unknown("/agent_id", "agent", channel.agent_id));
    }
    match token::check_token(tx, channel.id, channel.transport, &draft.secrets).await? {
        Ok(hash) => channel.bot_hash = hash,
        Err(violation) => draft.violations.push(violation),
    }
    Problem::fail_if_any(draft.violations)?;
    Ok((draft.channel, draft.secrets))
}

/// A channel without any settings.
fn empty_channel(scope: &Scope, agent_id: AgentId, transport: Transport) -> Model {
    let now = scope.core.clock.now();
    Model {
        organization_id: scope.org,
        id: ChannelId(0),
        agent_id,
        transport,
        scope: ChannelScope::External,
        direction: ChannelDirection::Bidirectional,
        name: String::new(),
        name_folded: String::new(),
        target: None,
        bot_username: None,
        bot_token_sealed: None,
        bot_hash: None,
        self_ids: json!([]),
        warnings: json!([]),
        label_whitelist: json!([]),
        mention_off: json!([]),
        inbound_slug: (transport == Transport::Webhook).then(slug),
        webhook_registered: false,
        webhook_outbound_url: None,
        webhook_outbound_secret_sealed: None,
        webhook_inbound_secret_sealed: None,
        webhook_outbound_previous_sealed: None,
        webhook_outbound_previous_until: None,
        webhook_inbound_previous_sealed: None,
        webhook_inbound_previous_until: None,
        webhook_signature_header: None,
        webhook_actor_paths: json!([]),
        webhook_self_ids: json!([]),
        invite_url: None,
        email_imap_host: None,
        email_imap_port: None,
        email_imap_user: None,
        email_imap_pass_sealed: None,
        email_imap_tls: true,
        email_smtp_host: None,
        email_smtp_port: None,
        email_smtp_user: None,
        email_smtp_pass_sealed: None,
        email_smtp_from: None,
        email_authserv_id: None,
        code_host_host: None,
        code_host_installation_id: None,
        code_host_repos: json!([]),
        code_host_events: json!([]),
        code_host_listen_scope: ListenScope::Involved,
        code_host_raw_payload: false,
        code_host_oauth_authorized: false,
        code_host_oauth_user_login: None,
        code_host_oauth_expires_at: None,
        provider_connected: false,
        provider_email: None,
        provider_expires_at: None,
        oauth_access_token_sealed: None,
        oauth_access_until: None,
        oauth_refresh_token_sealed: None,
        oauth_refreshing_until: None,
        oauth_state_hash: None,
        oauth_state_session: None,
        oauth_state_until: None,
        drive_folder_id: None,
        drive_folder_name: None,
        drive_url: None,
        drive_user: None,
        drive_pass_sealed: None,
        calendar_url: None,
        calendar_user: None,
        calendar_pass_sealed: None,
        calendar_whitelist: json!([]),
        calendar_reminder_lead_minutes: None,
        instructions: None,
        notify_conversation_id: None,
        alert_recipient_user_ids: json!([]),
        is_active: true,
        inactive_reason: None,
        created_by: scope.request.caller.user(),
        created_at: now,
        updated_at: now,
        last_activity_at: None,
        send_after: None,
        failing_since: None,
        archived_at: None,
    }
}
