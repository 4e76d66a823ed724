//! Webhooks that Muster registers with vendors: with Telegram, if the installation's setting `channels.telegram_webhooks`
//! is on, so that it is not polled; and with code hosts other than GitHub.
//!
//! The channel's listener registers the webhook under the channel's lease, so that two processes never register
//! different addresses. This module creates the channel's path and the secret that proves the vendor's requests to it. Both end when
//! the webhook is removed: when the channel is switched off, deleted, made outbound, or gets another bot, and when the
//! setting is switched off. Removing it is a courtesy: otherwise vendors would send to a path that no longer exists.

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

/// Whether the channel uses a webhook.
pub(crate) fn is_wanted(core: &Core, channel: &Model) -> bool {
    match channel.transport {
        enums::Transport::CodeHost => channel.code_host_host.is_some(),
        enums::Transport::Telegram => core.config.channels.telegram_webhooks,
        _ => false,
    }
}

/// Gives a channel with a webhook its path and secret. `None`: its settings have changed meanwhile.
pub(crate) async fn prepare_path(scope: &Scope, mut channel: Model) -> Result<Option<Model>> {
    let has_both = channel.inbound_slug.is_some() && channel.webhook_inbound_secret_sealed.is_some();
    if !is_wanted(&scope.core, &channel) || has_both {
        return Ok(Some(channel));
    }
    let secret = SecretString::from(URL_SAFE_NO_PAD.encode(random_bytes::<32>()));
    let place = SealContext::new(scope.org, "channels", channel.id.0, "webhook_inbound_secret");
    channel.inbound_slug = Some(slug());
    channel.webhook_inbound_secret_sealed = Some(scope.core.sealing.seal(&secret, &place));
    let tx = scope.begin().await?;
    let row = tx.scope.update::<Entity>().filter(Column::Id.eq(channel.id));
    // Not an edit: `updated_at` stays, by which listeners notice changed settings.
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

/// Registers the webhook, and again every minute, in case another holder of the token replaced it. Returns the failure
/// that ended this.
pub(crate) async fn keep_registered(
    scope: &Scope,
    channel: &Model,
    transport: &dyn Transport,
    sink: &dyn Sink,
) -> Result<Failure> {
    let (base, slug) = (scope.core.config.links(), channel.inbound_slug.as_deref().unwrap_or_default());
    let address = format!("{base}/webhooks/{}/{slug}", channel.transport.as_str().to_lowercase());
    let mut is_up = false;
    loop {
        if let Err(failure) = transport.register(Some(&address)).await {
            return Ok(failure);
        }
        if !std::mem::replace(&mut is_up, true) {
            record_registered(scope, channel).await?;
            sink.link(Link::Up);
        }
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
}

/// Records that the webhook is registered.
async fn record_registered(scope: &Scope, channel: &Model) -> Result<()> {
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

/// Removes the webhook after a listener ended, unless the next listener needs it.
pub(crate) async fn release(scope: &Scope, channel: &Model, transport: &dyn Transport) -> Result<()> {
    if !is_wanted(&scope.core, channel) {
        return Ok(());
    }
    let place = |channel: &Model| (channel.inbound_slug.clone(), channel.bot_hash.clone());
    let now = rows::active(scope, channel.id).await?;
    if now.is_some_and(|now| place(&now) == place(channel) && now.direction != ChannelDirection::Outbound) {
        return Ok(());
    }
    if let Err(failure) = unregister(scope, channel, transport).await? {
        tracing::warn!(org = scope.org.0, channel = channel.id.0, %failure, "channel.webhook_not_taken_back");
    }
    Ok(())
}

/// Removes the webhook, if there is one, and then its path and secret.
pub(crate) async fn unregister(
    scope: &Scope,
    channel: &Model,
    transport: &dyn Transport,
) -> Result<std::result::Result<(), Failure>> {
    let registers = matches!(channel.transport, enums::Transport::CodeHost | enums::Transport::Telegram);
    if !registers || channel.inbound_slug.is_none() {
        return Ok(Ok(()));
    }
    // Less than the remaining time of the lease.
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
