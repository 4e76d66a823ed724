//! Channels: connections between an agent and a messaging transport, and the people on the other side
//! ([`contacts`]).
//!
//! A channel is active, or inactive for a stated reason. Permissions: `agent.view` and `agent.edit`; connecting
//! and editing also require a confirmed e-mail address. Nothing here leaves the process. Deleting hides a
//! channel, wipes its secrets and path, and keeps its conversations.

mod check;
pub mod contacts;
mod create;
mod edit;
mod entity;
pub mod graphql;
mod input;
mod merge;
mod record;
mod whitelist;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbBackend, IntoActiveModel, QueryFilter, Select, Set,
    sea_query::Expr,
};
use serde_json::json;

use self::entity::{channel_whitelist, channels};
pub use self::{
    create::create,
    edit::update,
    input::{
        ChannelCalendarChoiceInput, ChannelCalendarInput, ChannelCodeHostInput, ChannelDriveInput,
        ChannelEchoFilterInput, ChannelEmailInput, ChannelImapInput, ChannelSmtpInput, ChannelWebhookInput,
        CreateChannelInput, UpdateChannelInput,
    },
    whitelist::{add_origin, remove_origin},
};
use crate::{
    base::{
        enums::{ChangeOp, InactiveReason, RecordKind},
        ids::{AgentId, ChannelId, UserId},
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        store::{Tx, held},
    },
    slices::agents,
};

/// Deletes a channel: hides it, removes its secrets, path, and whitelist, and keeps its conversations.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn delete(scope: &Scope, id: ChannelId) -> Result<()> {
    let tx = scope.begin().await?;
    let channel = load(&tx, id).await?;
    let (name, agent) = (channel.name.clone(), channel.agent_id);
    let mut row = channel.into_active_model();
    row.archived_at = Set(Some(tx.now));
    row.updated_at = Set(tx.now);
    row.is_active = Set(false);
    row.inactive_reason = Set(Some(InactiveReason::Manual));
    row.inbound_slug = Set(None);
    row.bot_token_sealed = Set(None);
    row.webhook_outbound_secret_sealed = Set(None);
    row.webhook_inbound_secret_sealed = Set(None);
    row.email_imap_pass_sealed = Set(None);
    row.email_smtp_pass_sealed = Set(None);
    row.notify_conversation_id = Set(None);
    row.update(tx.connection()).await?;
    let origins = tx.scope.delete::<channel_whitelist::Entity>();
    origins.filter(channel_whitelist::Column::ChannelId.eq(id)).exec(tx.connection()).await?;
    finish(tx, (ChangeOp::Deleted, "deleteChannel"), id, agent, json!({ "name": name })).await
}

/// Deactivates the channels of a deleted agent. Inactive ones keep their reason.
///
/// # Errors
/// The database rejects a statement.
pub async fn deactivate_for_archived_agent(tx: &Tx, agent: AgentId) -> Result<()> {
    tx.scope
        .update::<channels::Entity>()
        .col_expr(channels::Column::IsActive, Expr::value(false))
        .col_expr(channels::Column::InactiveReason, Expr::value(InactiveReason::AgentArchived))
        .col_expr(channels::Column::UpdatedAt, Expr::value(tx.now))
        .filter(channels::Column::AgentId.eq(agent))
        .filter(channels::Column::IsActive.eq(true))
        .exec(tx.connection())
        .await?;
    Ok(())
}

/// Stops alerting a person about failing channels, because they left the organization.
///
/// # Errors
/// The database rejects a statement.
pub async fn forget_recipient(tx: &Tx, user: UserId) -> Result<()> {
    // Locks only these channels: someone may be working on any other.
    let names_them = match tx.connection().get_database_backend() {
        DbBackend::Postgres => "CAST(alert_recipient_user_ids AS JSONB) @> CAST($1 AS TEXT)::JSONB",
        _ => "EXISTS (SELECT 1 FROM json_each(alert_recipient_user_ids) WHERE value = CAST(? AS BIGINT))",
    };
    let names_them = Expr::cust_with_values(names_them, [user.0.to_string()]);
    let rows = held(tx.scope.find::<channels::Entity>().filter(names_them)).all(tx.connection()).await?;
    for channel in rows {
        let recipients = channel.alert_recipient_user_ids.as_array().cloned().unwrap_or_default();
        let left: Vec<_> = recipients.into_iter().filter(|id| id.as_i64() != Some(user.0)).collect();
        let mut row = channel.into_active_model();
        row.alert_recipient_user_ids = Set(json!(left));
        row.updated_at = Set(tx.now);
        row.update(tx.connection()).await?;
    }
    Ok(())
}

fn connected(scope: &Scope) -> Select<channels::Entity> {
    scope.find::<channels::Entity>().filter(channels::Column::ArchivedAt.is_null())
}

/// Loads the channel and locks it until the transaction ends.
async fn load(tx: &Tx, id: ChannelId) -> Result<channels::Model> {
    let found = held(connected(&tx.scope).filter(channels::Column::Id.eq(id)));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("channel", id))
}

/// Writes the audit entry and commits. Subscribers to the agent get its channels again.
async fn finish(
    tx: Tx,
    (op, operation): (ChangeOp, &'static str),
    id: ChannelId,
    agent: AgentId,
    changes: serde_json::Value,
) -> Result<()> {
    audit::record(&tx, audit::Entry { operation, op, kind: RecordKind::Channel, id: id.0, changes });
    agents::announce(&tx, agent);
    tx.commit().await
}
