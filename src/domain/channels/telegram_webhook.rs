//! Vendors that are told where to send what comes in, instead of being asked: Telegram, where the installation wants it
//! (`channels.telegram_webhooks`).
//!
//! This is the listener's work, under the lease of its channel, so that no two processes tell a bot different things. The
//! channel's path and the secret that Telegram sends there are made here, and end when the webhook is taken back: when the
//! channel is switched off, deleted, only sends or has another bot, and when the setting is switched off. That is a courtesy:
//! without it, what Telegram sends finds nothing.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use muster_channels::{Failure, Link, Sink, Transport};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use secrecy::SecretString;

use super::{
    entity::channels::{Column, Entity, Model},
    open::slug,
    rows,
};
use crate::{
    base::{
        bounds,
        enums::{self, ChangeOp, ChannelDirection, RecordKind},
        ids::ChannelId,
        problem::Result,
    },
    core::{
        Core, Event,
        access::Scope,
        sealing::{SealContext, random_bytes},
        store::Tx,
    },
};

/// Whether a channel's vendor is told where to send.
pub(crate) fn is_wanted(core: &Core, channel: &Model) -> bool {
    channel.transport == enums::Transport::Telegram && core.config.channels.telegram_webhooks
}

/// The channel, with a path and a secret for its vendor, if it is told of them. `None`: its settings have changed meanwhile.
pub(crate) async fn prepared(scope: &Scope, mut channel: Model) -> Result<Option<Model>> {
    let has_both = channel.inbound_slug.is_some() && channel.webhook_inbound_secret_sealed.is_some();
    if !is_wanted(&scope.core, &channel) || has_both {
        return Ok(Some(channel));
    }
    let secret = SecretString::from(URL_SAFE_NO_PAD.encode(random_bytes::<32>()));
    let place = SealContext::new(scope.org, "channels", channel.id.0, "webhook_inbound_secret");
    channel.inbound_slug = Some(slug());
    channel.webhook_inbound_secret_sealed = Some(scope.core.keys.seal(&secret, &place));
    let tx = scope.begin().await?;
    let row = tx.scope.update::<Entity>().filter(Column::Id.eq(channel.id));
    // It is not an edit: `updated_at` stays, by which listeners know that settings changed.
    let row = row
        .filter(Column::UpdatedAt.eq(channel.updated_at))
        .col_expr(Column::InboundSlug, Expr::value(channel.inbound_slug.clone()))
        .col_expr(
            Column::WebhookInboundSecretSealed,
            Expr::value(channel.webhook_inbound_secret_sealed.clone()),
        );
    let prepared = row.exec(tx.connection()).await?;
    tx.commit().await?;
    Ok((prepared.rows_affected > 0).then_some(channel))
}

/// Tells the vendor where to send, and again every minute: someone else with the token may have told it otherwise. Returns why
/// that ended.
pub(crate) async fn keep(
    scope: &Scope,
    channel: &Model,
    transport: &dyn Transport,
    sink: &dyn Sink,
) -> Result<Failure> {
    let (base, slug) = (scope.core.config.links(), channel.inbound_slug.as_deref().unwrap_or_default());
    let address = format!("{base}/webhooks/telegram/{slug}");
    let mut is_up = false;
    loop {
        if let Err(failure) = transport.register(Some(&address)).await {
            return Ok(failure);
        }
        if !std::mem::replace(&mut is_up, true) {
            registered(scope, channel).await?;
            sink.link(Link::Up);
        }
        // Then it is registered again, and the vendor asked whether it gets through.
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
}

/// Writes down that the vendor sends.
async fn registered(scope: &Scope, channel: &Model) -> Result<()> {
    let tx = scope.begin().await?;
    let row = tx.scope.update::<Entity>().filter(Column::Id.eq(channel.id));
    let row = row.filter(Column::InboundSlug.eq(channel.inbound_slug.clone()));
    let row = row.filter(Column::WebhookRegistered.eq(false));
    let row = row.col_expr(Column::WebhookRegistered, Expr::value(true)).exec(tx.connection()).await?;
    if row.rows_affected > 0 {
        announce(&tx, channel.id);
    }
    tx.commit().await
}

/// After a listener ended: takes the webhook back, unless another listener will go on with it.
pub(crate) async fn ended(scope: &Scope, channel: &Model, transport: &dyn Transport) -> Result<()> {
    if !is_wanted(&scope.core, channel) {
        return Ok(());
    }
    let place = |channel: &Model| (channel.inbound_slug.clone(), channel.bot_hash.clone());
    let now = rows::active(scope, channel.id).await?;
    if now.is_some_and(|now| place(&now) == place(channel) && now.direction != ChannelDirection::Outbound) {
        return Ok(());
    }
    if let Err(failure) = take_back(scope, channel, transport).await? {
        tracing::warn!(channel = channel.id.0, %failure, "channel.webhook_not_taken_back");
    }
    Ok(())
}

/// Takes a webhook back, if there is one. Once the vendor has taken it back, its path and secret end.
pub(crate) async fn take_back(
    scope: &Scope,
    channel: &Model,
    transport: &dyn Transport,
) -> Result<std::result::Result<(), Failure>> {
    if channel.transport != enums::Transport::Telegram || channel.inbound_slug.is_none() {
        return Ok(Ok(()));
    }
    // Less than what is left of a lease.
    let taken = tokio::time::timeout(bounds::ANSWER_WAIT, transport.register(None)).await;
    let late = |_| Err(Failure::NotSent("There was no answer in time.".into()));
    if let Err(failure) = taken.unwrap_or_else(late) {
        return Ok(Err(failure));
    }
    let tx = scope.begin().await?;
    let row = tx.scope.update::<Entity>().filter(Column::Id.eq(channel.id));
    let row = row
        .filter(Column::InboundSlug.eq(channel.inbound_slug.clone()))
        .col_expr(Column::InboundSlug, Expr::value(None::<String>))
        .col_expr(Column::WebhookInboundSecretSealed, Expr::value(None::<Vec<u8>>))
        .col_expr(Column::WebhookRegistered, Expr::value(false));
    if row.exec(tx.connection()).await?.rows_affected > 0 {
        announce(&tx, channel.id);
    }
    tx.commit().await?;
    Ok(Ok(()))
}

fn announce(tx: &Tx, id: ChannelId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Channel, id));
}
