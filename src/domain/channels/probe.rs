//! Asks the vendor for a channel's identity: when the channel is created, when its settings change, when listening
//! starts, and until the vendor could be reached.
//!
//! A credential that the vendor refuses is a violation at its field. If the vendor can't be reached, the channel is
//! still created, and its warnings say that it was not checked. Never runs inside a transaction.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use muster_channels::{Choice, CodeHostLogin, Config, EmailConfig, Failure, Identity, WebhookConfig};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde_json::{Value, json};

use super::{
    check::is_bot,
    entity::channels::{Column, Entity, Model},
    open::{OpenedSecrets, config, open},
    outbound::switch_off,
    queries::channels_with_warning,
    rows,
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, InactiveReason, RecordKind},
        ids::ChannelId,
        plain::truncated,
        problem::{Code, Problem, Result, Violation},
    },
    core::{Core, Event, access::Scope},
};

/// The start of a warning that says why a vendor could not be asked.
const UNCHECKED: &str = "Not checked: ";

/// The vendor's answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// `None`: the vendor gave none.
    identity: Option<Identity>,
    /// Credentials that the vendor refused.
    pub refused: Vec<Violation>,
    /// Warnings about parts that could not be checked.
    unchecked: Vec<String>,
}

impl Answer {
    /// Updates the channel from the answer. Facts without an answer stay, unless the credentials changed.
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

    fn add(&mut self, field: &str, said: std::result::Result<Identity, Failure>) {
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
    truncated(&text, bounds::NAME)
}

fn words(texts: Vec<String>) -> Value {
    texts.into_iter().map(word).collect()
}

/// Lists what people choose from for a channel's settings, such as calendars.
///
/// # Errors
/// `NOT_FOUND`; `NOT_SUPPORTED` for a transport that carries nothing yet; `UNAVAILABLE` if the vendor gives no list.
pub async fn choices(scope: &Scope, id: ChannelId) -> Result<Vec<Choice>> {
    let found = rows::connected(scope).filter(Column::Id.eq(id)).one(scope.core.db.read()).await?;
    let channel = found.ok_or_else(|| Problem::not_found("channel", id))?;
    let none = || Problem::new(Code::NotSupported, "There is nothing to choose from.");
    let transport = open(&scope.core, &channel)?.ok_or_else(none)?;
    // A person is waiting for the answer.
    let listed = tokio::time::timeout(bounds::NETWORK_WAIT, transport.choices()).await;
    let listed = listed.unwrap_or_else(|_| Err(Failure::NotSent("There was no answer in time.".into())));
    listed.map_err(|failure| Problem::new(Code::Unavailable, failure.to_string()))
}

/// Refuses an installation of the GitHub App unless GitHub has confirmed that the channel's person may use it: anyone
/// can name another's.
pub(super) fn unconfirmed(answer: Option<&Answer>) -> Option<Violation> {
    if answer.is_some_and(|answer| answer.identity.is_some() || !answer.refused.is_empty()) {
        return None;
    }
    let why = answer.and_then(|answer| answer.unchecked.first()).map_or("", String::as_str);
    let detail = format!("GitHub could not be asked whether you may use this installation. Try again. {why}");
    Some(Violation::at("/code_host/installation_id", "NOT_ALLOWED", detail))
}

/// Asks a channel's vendor, with these secrets.
///
/// # Errors
/// The secrets are invalid for the transport.
pub(super) async fn ask_vendor(core: &Arc<Core>, channel: &Model, secrets: OpenedSecrets) -> Result<Answer> {
    let mut answer = Answer::default();
    let Some(config) = config(core, channel, secrets)? else { return Ok(answer) };
    let asked = split_by_credential(config).into_iter().map(|(field, config)| async move {
        let transport = muster_channels::open(config, &core.network);
        // A person is waiting for the answer.
        let said = tokio::time::timeout(Duration::from_secs(10), transport.probe()).await;
        (field, said.unwrap_or_else(|_| Err(Failure::NotSent("There was no answer in time.".into()))))
    });
    for (field, said) in join_all(asked).await {
        answer.add(field, said);
    }
    Ok(answer)
}

/// The parts that can be asked separately, with the fields of their credentials.
fn split_by_credential(config: Config) -> Vec<(&'static str, Config)> {
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
        calendar @ Config::Calendar(_) => vec![("/calendar/pass", calendar)],
        Config::CodeHost(config) => {
            let field = match config.login {
                CodeHostLogin::Account(_) => "/bot_token",
                CodeHostLogin::Installation(_) => "/code_host/installation_id",
            };
            vec![(field, Config::CodeHost(config))]
        }
        bot => vec![("/bot_token", bot)],
    }
}

/// Asks again before listening starts, so that a channel created during an outage of its vendor gets its identity.
/// Returns the updated channel, or why its credentials were refused.
///
/// # Errors
/// Its secrets can't be opened. The database is unreachable.
pub(crate) async fn ask_again(scope: &Scope, channel: Model) -> Result<std::result::Result<Model, String>> {
    let core = &scope.core;
    let answer = ask_vendor(core, &channel, OpenedSecrets::open(core, &channel)?).await?;
    if let Some(refused) = answer.refused.first() {
        return Ok(Err(refused.detail.clone()));
    }
    let mut now = channel.clone();
    answer.apply(&mut now, false);
    if now != channel {
        store_answer(scope, &now).await?;
    }
    Ok(Ok(now))
}

/// Asks the vendors again that could not be reached. Returns the number of channels with news.
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
                // For example, its secrets can't be opened. The other channels are still asked.
                Err(problem) => {
                    let (org, channel) = (place.organization_id.0, place.id.0);
                    tracing::warn!(org, channel, %problem, "channel.not_checked");
                }
            }
        }
    }
    Ok(learnt)
}

async fn check_one(scope: Scope, id: ChannelId) -> Result<bool> {
    let Some(channel) = rows::active(&scope, id).await? else { return Ok(false) };
    let (warnings, seen) = (channel.warnings.clone(), channel.updated_at);
    match ask_again(&scope, channel).await? {
        Ok(now) => Ok(now.warnings != warnings),
        Err(why) => {
            let tx = scope.begin().await?;
            let is_off = switch_off(&tx, id, seen, InactiveReason::AuthFailed, &why).await?;
            tx.commit().await?;
            Ok(is_off)
        }
    }
}

/// Stores the answer, unless the settings have changed meanwhile. Not an edit: `updated_at` stays, by which listeners
/// notice changed settings.
async fn store_answer(scope: &Scope, now: &Model) -> Result<()> {
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
