//! The whitelist: the origins that may write to a channel.

use muster_channels::Origin;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, Set,
};
use serde_json::json;

use super::{
    entity::channel_whitelist,
    queries::whitelisted,
    rows::{finish, load},
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, Transport},
        ids::ChannelId,
        json::texts,
        problem::{Code, Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{agents, edits},
};

/// An origin was added to a channel's whitelist.
#[derive(Debug)]
pub struct OriginAdded {
    pub channel: ChannelId,
    pub origin: String,
}

impl DomainEvent for OriginAdded {}

/// How a whitelist relates to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// It names the message's origin, or its place.
    Named,
    /// It names others.
    Others,
    /// It has no entries.
    Empty,
}

/// Looks up an origin in a channel's whitelist.
pub async fn look_up_origin(
    scope: &Scope,
    channel: ChannelId,
    Origin { id, place, .. }: &Origin,
) -> Result<Listed> {
    // PostgreSQL rejects text with NUL: no list can name it, and the query would fail at each retry of the message.
    if [Some(id), place.as_ref()].into_iter().flatten().any(|id| id.contains('\0')) {
        return Ok(Listed::Others);
    }
    let origins = [id.as_str(), place.as_deref().unwrap_or(id)];
    let Some(listed) = whitelisted(scope, channel, origins).await? else { return Ok(Listed::Others) };
    Ok(match (listed.names_some, listed.names_it) {
        (false, _) => Listed::Empty,
        (true, false) => Listed::Others,
        (true, true) => Listed::Named,
    })
}

/// Allows an origin to write to a channel (specification, operation 18). Adding it again does nothing.
///
/// # Errors
/// `NOT_FOUND`, `VALIDATION_FAILED` for an origin that no message can have.
pub async fn add_origin(scope: &Scope, id: ChannelId, origin: &str) -> Result<()> {
    let tx = scope.begin().await?;
    // The lock also protects the list from concurrent changes.
    let channel = load(&tx, id).await?;
    let origin = &normalize(channel.transport, origin.trim()).ok_or_else(|| {
        let detail =
            format!("`{origin}` is not an e-mail address. A list names each address, and no patterns.");
        Problem::invalid_at("/origin_id", "NOT_ALLOWED", detail)
    })?;
    if is_listed(&tx, id, origin).await? {
        return Ok(());
    }
    insert(&tx, id, origin).await?;
    emit(&tx, OriginAdded { channel: id, origin: origin.clone() }).await?;
    changed(tx, channel, "addWhitelistOrigin", origin).await
}

/// Normalizes an origin as messages have it: `Ada <Ada@Example.org>` is `ada@example.org`. `None`: no message can have
/// it.
fn normalize(transport: Transport, origin: &str) -> Option<String> {
    match transport {
        Transport::Email => muster_channels::email_origin(origin),
        _ => Some(origin.to_owned()),
    }
}

/// Removes an origin's permission to write to a channel (specification, operation 19).
///
/// # Errors
/// `NOT_FOUND`, also for an origin that isn't on the list.
pub async fn remove_origin(scope: &Scope, id: ChannelId, origin: &str) -> Result<()> {
    let tx = scope.begin().await?;
    let channel = load(&tx, id).await?;
    let origin = origin.trim();
    let normalized = normalize(channel.transport, origin);
    let origin = match &normalized {
        Some(normalized) if !is_listed(&tx, id, origin).await? => normalized.as_str(),
        _ => origin,
    };
    let removed = tx
        .scope
        .delete::<channel_whitelist::Entity>()
        .filter(channel_whitelist::Column::ChannelId.eq(id))
        .filter(channel_whitelist::Column::OriginId.eq(origin))
        .exec(tx.connection())
        .await?;
    if removed.rows_affected == 0 {
        let detail = format!("The origin `{origin}` is not on the whitelist of channel {id}.");
        return Err(Problem::new(Code::NotFound, detail));
    }
    changed(tx, channel, "removeWhitelistOrigin", origin).await
}

/// Renames an origin on a channel's lists, because the vendor gave its chat a new id. Not an edit by a caller.
pub async fn move_origin(tx: &Tx, id: ChannelId, from: &str, to: &str) -> Result<()> {
    let channel = load(tx, id).await?;
    let agent = channel.agent_id;
    let gone = tx.scope.delete::<channel_whitelist::Entity>();
    let gone = gone.filter(channel_whitelist::Column::ChannelId.eq(id));
    let gone = gone.filter(channel_whitelist::Column::OriginId.eq(from)).exec(tx.connection()).await?;
    if gone.rows_affected > 0 && !is_listed(tx, id, to).await? {
        insert(tx, id, to).await?;
    }
    let mut muted = texts(&channel.mention_off);
    let was_muted = muted.iter().any(|group| group == from);
    if gone.rows_affected == 0 && !was_muted {
        return Ok(());
    }
    let mut channel = channel.into_active_model();
    if was_muted {
        muted.retain(|group| group != from && group != to);
        muted.push(to.to_owned());
        channel.mention_off = Set(json!(muted));
    }
    channel.updated_at = Set(tx.now);
    channel.update(tx.connection()).await?;
    let changes = json!({ "origin_id": audit::from_to(from, to) });
    let (op, kind) = (ChangeOp::Updated, RecordKind::Channel);
    audit::record(tx, audit::Entry { operation: "moveOrigin", op, kind, id: id.0, changes });
    agents::announce(tx, agent);
    Ok(())
}

async fn is_listed(tx: &Tx, id: ChannelId, origin: &str) -> Result<bool> {
    let list = tx.scope.find::<channel_whitelist::Entity>();
    let found = list.filter(channel_whitelist::Column::ChannelId.eq(id));
    Ok(found.filter(channel_whitelist::Column::OriginId.eq(origin)).count(tx.connection()).await? > 0)
}

async fn insert(tx: &Tx, id: ChannelId, origin: &str) -> Result<()> {
    let row = channel_whitelist::ActiveModel {
        organization_id: Set(tx.scope.org),
        channel_id: Set(id),
        origin_id: Set(origin.to_owned()),
        created_at: Set(tx.now),
    };
    channel_whitelist::Entity::insert(row).exec_without_returning(tx.connection()).await?;
    Ok(())
}

async fn changed(
    tx: Tx,
    channel: super::entity::channels::Model,
    operation: &'static str,
    origin: &str,
) -> Result<()> {
    let (id, agent) = (channel.id, channel.agent_id);
    let mut channel = channel.into_active_model();
    channel.updated_at = Set(tx.now);
    channel.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::Channel, id).await?;
    finish(tx, (ChangeOp::Updated, operation), id, agent, json!({ "origin_id": origin })).await
}
