//! Channels: connections between an agent and a messaging transport.
//!
//! A channel is active, or inactive for a stated reason. Permissions: `agent.view` and `agent.edit`; connecting and
//! editing also require a confirmed e-mail address, and ask the vendor for the channel's identity (`probe.rs`).
//! Deleting hides a channel, wipes its secrets and path, and keeps its conversations.
//!
//! `authorization.rs`: connecting an account at the vendor (OAuth); `access_tokens.rs`: keeping its tokens valid.
//!
//! `filter.rs`: the messages that a channel accepts; `registration.rs`: registering our address with vendors.
//!
//! [`ingest`](super::ingest) receives messages through channels, and [`deliveries`](super::deliveries) sends them.

mod access_tokens;
mod authorization;
mod check;
mod create;
mod edit;
mod entity;
mod filter;
mod input;
mod instructions;
mod mail_room;
mod merge;
mod open;
mod outbound;
pub(crate) mod probe;
mod queries;
mod recipients;
pub(crate) mod registration;
mod rows;
mod token;
mod whitelist;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, Set, UpdateMany, sea_query::Expr,
};
use serde_json::json;

pub use self::{
    access_tokens::{access_token, refresh_tokens, token_source},
    authorization::{Authorization, authorize, complete, disconnect},
    check::HasConversation,
    create::create,
    edit::{BotReplaced, Edited, update},
    input::{
        ChannelCalendarChoiceInput, ChannelCalendarInput, ChannelCodeHostInput, ChannelDriveInput,
        ChannelEchoFilterInput, ChannelEmailInput, ChannelImapInput, ChannelSmtpInput, ChannelWebhookInput,
        CreateChannelInput, UpdateChannelInput,
    },
    instructions::instructions,
    outbound::{
        Failed, Sender, delay_sending, offered_actions, proves_people, record_not_sent, record_reached,
        sends_out, switch_off,
    },
    probe::{check_again, choices},
    recipients::forget_recipient,
    whitelist::{Listed, OriginAdded, add_origin, look_up_origin, move_origin, remove_origin},
};
pub(crate) use self::{
    entity::channels::Model as Channel,
    filter::{FilterDecision, FilterRules},
    open::{kind_of, open, open_to_listen},
    rows::{active, find, lock, note_activity, of_installation},
};
use self::{
    entity::{channel_whitelist, channels},
    rows::{finish, load},
};
use crate::{
    base::{
        enums::{ChangeOp, InactiveReason, RecordKind, Transport},
        ids::{AgentId, ChannelId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Event,
        access::Scope,
        handlers::{DomainEvent, emit},
        store::Tx,
    },
};

/// A channel was deleted.
#[derive(Debug)]
pub struct Deleted {
    pub channel: ChannelId,
    pub name: String,
}

impl DomainEvent for Deleted {}

/// A channel that was off is on again.
#[derive(Debug)]
pub struct Recovered {
    pub channel: ChannelId,
}

impl DomainEvent for Recovered {}

/// Deletes a channel: hides it, removes its secrets, path, and whitelist, and keeps its conversations.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn delete(scope: &Scope, id: ChannelId) -> Result<()> {
    let tx = scope.begin().await?;
    let channel = load(&tx, id).await?;
    let (name, agent) = (channel.name.clone(), channel.agent_id);
    let mut row = channel.clone().into_active_model();
    authorization::forget_account(&mut row, channel.transport);
    row.archived_at = Set(Some(tx.now));
    row.updated_at = Set(tx.now);
    row.is_active = Set(false);
    row.inactive_reason = Set(Some(InactiveReason::Manual));
    row.inbound_slug = Set(None);
    row.webhook_registered = Set(false);
    row.bot_token_sealed = Set(None);
    row.bot_hash = Set(None);
    row.webhook_outbound_secret_sealed = Set(None);
    row.webhook_inbound_secret_sealed = Set(None);
    row.webhook_outbound_previous_sealed = Set(None);
    row.webhook_inbound_previous_sealed = Set(None);
    row.email_imap_pass_sealed = Set(None);
    row.email_smtp_pass_sealed = Set(None);
    row.drive_pass_sealed = Set(None);
    row.calendar_pass_sealed = Set(None);
    row.notify_conversation_id = Set(None);
    row.update(tx.connection()).await?;
    emit(&tx, Deleted { channel: id, name: name.clone() }).await?;
    let origins = tx.scope.delete::<channel_whitelist::Entity>();
    origins.filter(channel_whitelist::Column::ChannelId.eq(id)).exec(tx.connection()).await?;
    finish(tx, (ChangeOp::Deleted, "deleteChannel"), id, agent, json!({ "name": name })).await?;
    Box::pin(authorization::revoke(scope, &channel)).await;
    Ok(())
}

/// Deactivates the channels of a deleted agent, and notifies people. Inactive channels keep their reason.
pub async fn deactivate_for_archived_agent(tx: &Tx, agent: AgentId) -> Result<()> {
    let active = tx.scope.update::<channels::Entity>().filter(channels::Column::IsActive.eq(true));
    let why = "Its agent was deleted. Restoring the agent activates the channel again.";
    for channel in set_active(tx, agent, active, Some(InactiveReason::AgentArchived)).await? {
        emit(tx, Failed::new(channel, why.to_owned())).await?;
    }
    Ok(())
}

/// Activates the channels that were deactivated with their agent.
pub async fn activate_for_restored_agent(tx: &Tx, agent: AgentId) -> Result<()> {
    let same = channels::Column::InactiveReason.eq(InactiveReason::AgentArchived);
    // The authorization of a channel at GitHub may have ended meanwhile.
    let unauthorized = tx.scope.update::<channels::Entity>().filter(same.clone());
    let unauthorized = unauthorized.filter(channels::Column::Transport.eq(Transport::CodeHost));
    let unauthorized = unauthorized.filter(channels::Column::CodeHostHost.is_null());
    let unauthorized = unauthorized.filter(channels::Column::CodeHostOauthAuthorized.eq(false));
    set_active(tx, agent, unauthorized, Some(InactiveReason::AuthFailed)).await?;
    let inactive = tx.scope.update::<channels::Entity>().filter(same);
    let inactive = inactive.filter(channels::Column::ArchivedAt.is_null());
    for channel in set_active(tx, agent, inactive, None).await? {
        emit(tx, Recovered { channel: channel.id }).await?;
    }
    Ok(())
}

/// Deactivates channels of an agent for a reason, or activates them. Returns them.
async fn set_active(
    tx: &Tx,
    agent: AgentId,
    channels: UpdateMany<channels::Entity>,
    reason: Option<InactiveReason>,
) -> Result<Vec<channels::Model>> {
    let switched = channels
        .col_expr(channels::Column::IsActive, Expr::value(reason.is_none()))
        .col_expr(channels::Column::InactiveReason, Expr::value(reason))
        .col_expr(channels::Column::FailingSince, Expr::value(None::<Timestamp>))
        .col_expr(channels::Column::UpdatedAt, Expr::value(tx.now))
        .filter(channels::Column::AgentId.eq(agent));
    let switched = switched.exec_with_returning(tx.connection()).await?;
    for channel in &switched {
        tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Channel, channel.id));
    }
    Ok(switched)
}
