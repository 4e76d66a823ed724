//! Asking the vendor who we are: when a channel is made, when its settings change, when someone begins to listen to it, and as
//! long as it could not be reached.
//!
//! A credential that the vendor refuses is refused at once, with the field that holds it. A vendor that can't be reached
//! refuses nothing: the channel is made, and its warnings say that it was not checked. Never inside a transaction.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use muster_channels::{Config, EmailConfig, Failure, Identity, WebhookConfig};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde_json::{Value, json};

use super::{
    check::is_bot,
    entity::channels::{Column, Entity, Model},
    open::{Opened, config},
    outbound::fail,
    queries::channels_with_warning,
    rows,
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, InactiveReason, RecordKind},
        ids::ChannelId,
        plain::bounded,
        problem::{Result, Violation},
    },
    core::{Core, Event, access::Scope},
};

/// How a warning begins that says why a vendor could not be asked.
const UNCHECKED: &str = "Not checked: ";

/// What vendors said.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Who we are. `None`: no one said so.
    identity: Option<Identity>,
    /// Credentials that don't count.
    pub refused: Vec<Violation>,
    /// What could not be checked.
    unchecked: Vec<String>,
}

impl Answer {
    /// Writes down what was learnt. What was not stays as it is, or is forgotten if it was said to other credentials.
    pub fn apply(self, channel: &mut Model, is_other: bool) {
        if is_other {
            channel.self_ids = json!([]);
            channel.bot_username = None;
            channel.invite_url = None;
        }
        let identity = self.identity.unwrap_or_default();
        if !identity.self_ids.is_empty() {
            channel.self_ids = words(identity.self_ids);
        }
        if is_bot(channel.transport) {
            channel.bot_username = identity.handle.map(word).or_else(|| channel.bot_username.take());
            channel.invite_url = identity.invite_url.map(word).or_else(|| channel.invite_url.take());
        }
        channel.warnings = words(identity.warnings.into_iter().chain(self.unchecked).collect());
    }

    fn take(&mut self, field: &str, said: std::result::Result<Identity, Failure>) {
        match said {
            Ok(found) => {
                let known = self.identity.get_or_insert_default();
                known.self_ids.extend(found.self_ids);
                known.self_ids.dedup();
                known.handle = known.handle.take().or(found.handle);
                known.invite_url = known.invite_url.take().or(found.invite_url);
                known.warnings.extend(found.warnings);
            }
            Err(Failure::Credentials(cause)) => {
                let detail = format!("This credential is not accepted. {cause}");
                self.refused.push(Violation::at(field, "NOT_ALLOWED", detail));
            }
            Err(failure) => self.unchecked.push(format!("{UNCHECKED}{failure}")),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "maps a text")]
fn word(text: String) -> String {
    bounded(&text, bounds::NAME)
}

fn words(texts: Vec<String>) -> Value {
    texts.into_iter().map(word).collect()
}

/// Asks a channel's vendor, with these secrets.
///
/// # Errors
/// The secrets are not what the transport needs.
pub(super) async fn ask(core: &Core, channel: &Model, secrets: Opened) -> Result<Answer> {
    let mut answer = Answer::default();
    let Some(config) = config(core, channel, secrets)? else { return Ok(answer) };
    let asked = halves(config).into_iter().map(|(field, config)| async move {
        let transport = muster_channels::open(config, &core.network);
        // A person waits for it.
        let said = tokio::time::timeout(Duration::from_secs(10), transport.probe()).await;
        (field, said.unwrap_or_else(|_| Err(Failure::NotSent("There was no answer in time.".into()))))
    });
    for (field, said) in join_all(asked).await {
        answer.take(field, said);
    }
    Ok(answer)
}

/// What can be asked by itself, with the field that holds its credential.
fn halves(config: Config) -> Vec<(&'static str, Config)> {
    match config {
        Config::Email(config) => {
            let (imap, smtp) = (config.imap.clone(), config.smtp.clone());
            let only = |imap, smtp| Config::Email(Box::new(EmailConfig { imap, smtp, ..(*config).clone() }));
            let mut halves = Vec::with_capacity(2);
            halves.extend(imap.map(|imap| ("/email/imap/pass", only(Some(imap), None))));
            halves.extend(smtp.map(|smtp| ("/email/smtp/pass", only(None, Some(smtp)))));
            halves
        }
        Config::Webhook(config) => {
            let inward =
                WebhookConfig { outbound_url: None, outbound_secrets: Vec::new(), ..(*config).clone() };
            let outward = WebhookConfig { inbound_secrets: Vec::new(), ..*config };
            vec![
                ("/webhook/inbound_secret", Config::Webhook(Box::new(inward))),
                ("/webhook/outbound_secret", Config::Webhook(Box::new(outward))),
            ]
        }
        bot => vec![("/bot_token", bot)],
    }
}

/// Asks again before someone listens, so that a channel that was made while its vendor was away learns who it is. Returns the
/// channel as it is now, or why its credentials don't count.
///
/// # Errors
/// Its secrets can't be opened. The database is unreachable.
pub(crate) async fn again(scope: &Scope, channel: Model) -> Result<std::result::Result<Model, String>> {
    let core = &scope.core;
    let answer = ask(core, &channel, Opened::of(core, &channel)?).await?;
    if let Some(refused) = answer.refused.first() {
        return Ok(Err(refused.detail.clone()));
    }
    let mut now = channel.clone();
    answer.apply(&mut now, false);
    if now != channel {
        keep(scope, &now).await?;
    }
    Ok(Ok(now))
}

/// Asks vendors again that could not be reached. Returns of how many channels something was learnt.
pub async fn check_again(core: &Arc<Core>) -> Result<u64> {
    let unchecked = channels_with_warning(core, UNCHECKED).await?;
    let mut learnt = 0;
    for some in unchecked.chunks(bounds::BATCH as usize) {
        if core.tasks.stopping.is_cancelled() {
            break;
        }
        let asked = some.iter().map(|place| check_one(Scope::system(core, place.organization_id), place.id));
        for (place, asked) in some.iter().zip(join_all(asked).await) {
            match asked {
                Ok(is_learnt) => learnt += u64::from(is_learnt),
                // Its secrets can't be opened, say: the others are asked all the same.
                Err(problem) => tracing::warn!(channel = %place.id, %problem, "channel.not_checked"),
            }
        }
    }
    Ok(learnt)
}

async fn check_one(scope: Scope, id: ChannelId) -> Result<bool> {
    let Some(channel) = rows::active(&scope, id).await? else { return Ok(false) };
    let (warnings, seen) = (channel.warnings.clone(), channel.updated_at);
    match again(&scope, channel).await? {
        Ok(now) => Ok(now.warnings != warnings),
        Err(why) => {
            let tx = scope.begin().await?;
            let is_off = fail(&tx, id, seen, InactiveReason::AuthFailed, &why).await?;
            tx.commit().await?;
            Ok(is_off)
        }
    }
}

/// Keeps what was learnt, unless the settings are others by now. It is not an edit: `updated_at` stays, by which listeners know
/// that settings changed.
async fn keep(scope: &Scope, now: &Model) -> Result<()> {
    let tx = scope.begin().await?;
    let row = tx.scope.update::<Entity>().filter(Column::Id.eq(now.id));
    let row = row.filter(Column::UpdatedAt.eq(now.updated_at));
    row.col_expr(Column::SelfIds, Expr::value(now.self_ids.clone()))
        .col_expr(Column::BotUsername, Expr::value(now.bot_username.clone()))
        .col_expr(Column::InviteUrl, Expr::value(now.invite_url.clone()))
        .col_expr(Column::Warnings, Expr::value(now.warnings.clone()))
        .exec(tx.connection())
        .await?;
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Channel, now.id));
    tx.commit().await
}
