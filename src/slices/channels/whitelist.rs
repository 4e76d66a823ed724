//! The whitelist: who may write to a channel.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, Set,
};
use serde_json::json;

use super::{entity::channel_whitelist, finish, load};
use crate::{
    base::{
        enums::ChangeOp,
        ids::ChannelId,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, store::Tx},
};

/// Allows an origin to write to a channel (specification, operation 18). Adding it again does nothing.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn add_origin(scope: &Scope, id: ChannelId, origin: &str) -> Result<()> {
    let tx = scope.begin().await?;
    // The lock keeps everyone else from changing the list.
    let channel = load(&tx, id).await?;
    let origin = origin.trim();
    if of(&tx, id).filter(channel_whitelist::Column::OriginId.eq(origin)).count(tx.connection()).await? > 0 {
        return Ok(());
    }
    let row = channel_whitelist::ActiveModel {
        organization_id: Set(tx.scope.org),
        channel_id: Set(id),
        origin_id: Set(origin.to_owned()),
        created_at: Set(tx.now),
    };
    channel_whitelist::Entity::insert(row).exec_without_returning(tx.connection()).await?;
    changed(tx, channel, "addWhitelistOrigin", origin).await
}

/// Removes an origin's permission to write to a channel (specification, operation 19).
///
/// # Errors
/// `NOT_FOUND`, also for an origin that isn't on the list.
pub async fn remove_origin(scope: &Scope, id: ChannelId, origin: &str) -> Result<()> {
    let tx = scope.begin().await?;
    let channel = load(&tx, id).await?;
    let origin = origin.trim();
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

fn of(tx: &Tx, id: ChannelId) -> sea_orm::Select<channel_whitelist::Entity> {
    tx.scope.find::<channel_whitelist::Entity>().filter(channel_whitelist::Column::ChannelId.eq(id))
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
    finish(tx, (ChangeOp::Updated, operation), id, agent, json!({ "origin_id": origin })).await
}
