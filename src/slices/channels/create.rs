//! Connects a channel to an agent.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sea_orm::{ActiveModelTrait, IntoActiveModel, NotSet};
use serde_json::json;

use super::{
    check,
    edit::{self, seal},
    entity::channels::Model,
    finish,
    input::CreateChannelInput,
    merge::{Secrets, merge},
};
use crate::{
    base::{
        enums::{ChangeOp, ChannelDirection, ChannelScope, ListenScope, Transport},
        ids::{AgentId, ChannelId},
        problem::{Problem, Result, Violation},
    },
    core::{access::Scope, sealing::random_bytes, store::Tx},
    slices::agents,
};

/// Connects a channel to an agent (specification, operation 16). It is active right away.
///
/// # Errors
/// `VALIDATION_FAILED`, `PLAN_LIMIT_REACHED`.
pub async fn create(scope: &Scope, input: CreateChannelInput) -> Result<ChannelId> {
    let tx = scope.begin().await?;
    let (channel, secrets) = prepare(&tx, input).await?;
    if channel.scope == ChannelScope::External {
        edit::check_limit(&tx, channel.agent_id, None, false).await?;
    }
    let changes =
        json!({ "name": channel.name, "transport": channel.transport, "agent_id": channel.agent_id });
    let mut row = channel.into_active_model().reset_all();
    row.id = NotSet;
    let channel = row.insert(tx.connection()).await?;
    let (id, agent) = (channel.id, channel.agent_id);
    // Secrets are sealed for their row, whose id is only known now.
    let mut sealed = channel.into_active_model();
    seal(&tx, id, &mut sealed, secrets);
    if sealed.is_changed() {
        sealed.update(tx.connection()).await?;
    }
    finish(tx, (ChangeOp::Created, "createChannel"), id, agent, changes).await?;
    Ok(id)
}

/// The row that the input describes, without its secrets.
async fn prepare(tx: &Tx, input: CreateChannelInput) -> Result<(Model, Secrets)> {
    let mut violations = Vec::new();
    let (agent, transport) = (input.agent_id, input.transport);
    if transport == Transport::Internal {
        let detail = "INTERNAL is the panel and can't be connected.";
        violations.push(Violation::at("/transport", "NOT_ALLOWED", detail));
    }
    if !agents::hold(tx, agent).await? {
        violations.push(Violation::unknown("/agent_id", "agent", agent));
    }
    let edit = input.into_edit();
    violations.extend(check::input(transport, &edit));
    let nothing = empty(tx, agent, transport);
    let mut channel = nothing.clone();
    let secrets = merge(&mut channel, edit);
    violations.extend(check::needs(&nothing, &channel, &secrets));
    Problem::refuse(violations)?;
    Ok((channel, secrets))
}

/// A channel without any settings yet. The path of a webhook is as good as a secret: 144 random bits.
fn empty(tx: &Tx, agent_id: AgentId, transport: Transport) -> Model {
    let slug = || URL_SAFE_NO_PAD.encode(random_bytes::<18>());
    Model {
        organization_id: tx.scope.org,
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
        label_whitelist: json!([]),
        mention_off: json!([]),
        inbound_slug: (transport == Transport::Webhook).then(slug),
        webhook_registered: false,
        webhook_outbound_url: None,
        webhook_outbound_secret_sealed: None,
        webhook_inbound_secret_sealed: None,
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
        drive_folder_id: None,
        drive_folder_name: None,
        calendar_whitelist: json!([]),
        calendar_reminder_lead_minutes: None,
        instructions: None,
        notify_conversation_id: None,
        alert_recipient_user_ids: json!([]),
        is_active: true,
        inactive_reason: None,
        created_by: tx.scope.request.caller.user(),
        created_at: tx.now,
        updated_at: tx.now,
        last_activity_at: None,
        archived_at: None,
    }
}
