//! Edits a channel.

use std::time::Duration;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, Iterable, ModelTrait, QueryFilter, Set};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Recovered, check,
    entity::channels::{ActiveModel, Column, Model},
    input::UpdateChannelInput,
    merge::{Secrets, merge},
    open::{OpenedSecrets, is_github, set_inlet, why_inactive},
    outbound::is_open,
    probe::{self, Answer},
    rows::{connected, finish, load},
    token,
};
use crate::{
    base::{
        enums::{ChangeOp, ChannelScope, InactiveReason, RecordKind},
        ids::{AgentId, ChannelId},
        problem::{Code, Problem, Result},
        secret::SecretText,
    },
    core::{
        access::Scope,
        audit,
        handlers::{DomainEvent, emit},
        sealing::SealContext,
        store::Tx,
    },
    domain::{
        agents, edits,
        orgs::{self, Limit},
        patch::patch,
    },
};

/// A channel's token was replaced by that of another bot.
#[derive(Debug)]
pub struct BotReplaced {
    pub channel: ChannelId,
    pub name: String,
}

impl DomainEvent for BotReplaced {}

/// A channel was edited.
#[derive(Debug)]
pub struct Edited {
    pub channel: ChannelId,
    /// Whether stored facts about its vendor may be outdated.
    pub is_new: bool,
    /// Whether messages through it are sent.
    pub is_open: bool,
}

impl DomainEvent for Edited {}

/// Edits a channel (specification, operation 17). An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `VALIDATION_FAILED`; `PLAN_LIMIT_REACHED` and `ARCHIVED` if the edit activates the channel or
/// makes it external.
pub async fn update(scope: &Scope, id: ChannelId, edit: UpdateChannelInput) -> Result<()> {
    let asked = probe_edit(scope, id, edit.clone()).await?;
    let tx = scope.begin().await?;
    if edit.scope.is_value() || edit.is_active.is_value() {
        // `check_use` may lock the organization. Restoring an agent locks it before the agent's channels, so do the
        // same.
        orgs::lock(&tx).await?;
    }
    let before = load(&tx, id).await?;
    let mut violations = check::check_input(before.transport, &edit);
    violations.extend(check::check_references(&tx, &edit).await?);
    let mut after = before.clone();
    let secrets = merge(&mut after, edit);
    set_inlet(&mut after, &secrets);
    violations.extend(check::check_required(&before, &after, &secrets));
    let is_new = is_new(&before, &after, &secrets);
    let is_ready = after.is_active && why_inactive(&after).is_none();
    // An answer about other settings proves nothing: another edit may have changed them meanwhile.
    let is_about_these = |asked: &Model| connection_settings(asked) == connection_settings(&after);
    let answer = asked.filter(|(asked, _)| is_about_these(asked)).map(|(_, answer)| answer);
    if is_new && is_ready && is_github(&after) {
        violations.extend(probe::unconfirmed(answer.as_ref()));
    }
    if is_new && is_github(&after) && after.inactive_reason == Some(InactiveReason::AgentArchived) {
        // Restoring the agent must not activate an installation that nobody has confirmed.
        after.inactive_reason = Some(InactiveReason::AuthFailed);
    }
    if let Some(mut answer) = answer {
        violations.append(&mut answer.refused);
        answer.apply(&mut after, secrets.any());
    }
    match token::check_token(&tx, id, before.transport, &secrets).await? {
        Ok(hash) => after.bot_hash = hash.or(after.bot_hash),
        Err(violation) => violations.push(violation),
    }
    Problem::fail_if_any(violations)?;
    check_use(&tx, &before, &after).await?;
    let agent = before.agent_id;
    if is_new {
        // Another vendor or account may have asked to wait.
        after.send_after = None;
    }
    // A stored token that can't be opened counts as another one.
    let is_another_bot = secrets.bot_token.is_value()
        && OpenedSecrets::open(&scope.core, &before)
            .map_or(true, |opened| opened.has_another_token(&secrets));
    let mut row = changed(before.clone(), &after);
    keep_replaced_secrets(&tx, &before, &mut row, &secrets);
    seal(&tx, id, &mut row, secrets);
    if !row.is_changed() {
        return Ok(());
    }
    if is_another_bot {
        emit(&tx, BotReplaced { channel: id, name: after.name.clone() }).await?;
    }
    let changes = audit::changed(&before, &row);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    if after.is_active && !before.is_active {
        emit(&tx, Recovered { channel: id }).await?;
    }
    emit(&tx, Edited { channel: id, is_new, is_open: is_open(&after) }).await?;
    edits::raise(&tx, RecordKind::Channel, id).await?;
    finish(tx, (ChangeOp::Updated, "updateChannel"), id, agent, changes).await
}

/// Asks the vendor about the edited channel, which is returned with the answer. `None`: there is nothing to ask.
async fn probe_edit(
    scope: &Scope,
    id: ChannelId,
    edit: UpdateChannelInput,
) -> Result<Option<(Model, Answer)>> {
    let found = connected(scope).filter(Column::Id.eq(id)).one(scope.core.db.read()).await?;
    let Some(before) = found else { return Ok(None) };
    let mut violations = check::check_input(before.transport, &edit);
    let mut after = before.clone();
    let secrets = merge(&mut after, edit);
    violations.extend(check::check_required(&before, &after, &secrets));
    let is_ready = after.is_active && why_inactive(&after).is_none();
    if !violations.is_empty() || !is_ready || !is_new(&before, &after, &secrets) {
        return Ok(None);
    }
    // Stored secrets that can't be opened must not block their replacement.
    let Ok(opened) = OpenedSecrets::open(&scope.core, &before) else { return Ok(None) };
    let answer = probe::ask_vendor(&scope.core, &after, opened.apply_edit(&secrets)).await?;
    Ok(Some((after, answer)))
}

/// Whether stored facts about the vendor may be outdated: its address or credentials changed, or the channel was off.
fn is_new(before: &Model, after: &Model, secrets: &Secrets) -> bool {
    let is_woken = after.is_active && !before.is_active;
    secrets.any() || is_woken || connection_settings(before) != connection_settings(after)
}

/// The settings for reaching the vendor, apart from secrets.
fn connection_settings(channel: &Model) -> impl PartialEq + use<> {
    let imap = (channel.email_imap_host.clone(), channel.email_imap_port, channel.email_imap_user.clone());
    let smtp = (channel.email_smtp_host.clone(), channel.email_smtp_port, channel.email_smtp_user.clone());
    let mail = (channel.email_imap_tls, channel.email_smtp_from.clone(), channel.email_authserv_id.clone());
    let code = (channel.code_host_installation_id, channel.code_host_repos.clone());
    let drive = (channel.drive_url.clone(), channel.drive_user.clone(), channel.drive_folder_id.clone());
    let calendar =
        (channel.calendar_url.clone(), channel.calendar_user.clone(), channel.calendar_whitelist.clone());
    (imap, smtp, mail, channel.webhook_outbound_url.clone(), code, drive, calendar)
}

/// A channel that is activated, or becomes external, needs an existing agent and room in the plan.
async fn check_use(tx: &Tx, before: &Model, after: &Model) -> Result<()> {
    let woken = after.is_active && !before.is_active;
    if woken && why_inactive(after).is_some() {
        let detail = "Connect an account first: on the channel's page, or by authorizeChannel.";
        return Err(Problem::invalid_at("/is_active", "NOT_ALLOWED", detail));
    }
    if woken && !agents::missing(tx, &[after.agent_id]).await?.is_empty() {
        return Err(Problem::new(Code::Archived, "The channel's agent has been deleted."));
    }
    let opened = after.scope == ChannelScope::External && before.scope != ChannelScope::External;
    if opened || (woken && after.scope == ChannelScope::External) {
        // A reactivated channel was already counted when it was connected, but the plan may have shrunk since: only
        // active channels count against it.
        check_limit(tx, after.agent_id, Some(after.id), !opened).await?;
    }
    Ok(())
}

/// Refuses a further external channel if the agent is at its limit. `except` is the channel in question.
pub(super) async fn check_limit(
    tx: &Tx,
    agent: AgentId,
    except: Option<ChannelId>,
    active_only: bool,
) -> Result<()> {
    let mut others = connected(&tx.scope)
        .filter(Column::AgentId.eq(agent))
        .filter(Column::Scope.eq(ChannelScope::External));
    if let Some(id) = except {
        others = others.filter(Column::Id.ne(id));
    }
    if active_only {
        others = others.filter(Column::IsActive.eq(true));
    }
    orgs::check_count(tx, Limit::ChannelsPerAgent, others).await
}

/// The row with only the columns that differ from `before` set.
fn changed(before: Model, after: &Model) -> ActiveModel {
    let differing: Vec<Column> =
        Column::iter().filter(|column| before.get(*column) != after.get(*column)).collect();
    let mut row = before.into_active_model();
    for column in differing {
        row.set(column, after.get(column));
    }
    row
}

/// Keeps a webhook secret that the edit replaces valid for a day, so that the other side has time to change it. A
/// removed secret is invalid at once.
fn keep_replaced_secrets(tx: &Tx, before: &Model, row: &mut ActiveModel, secrets: &Secrets) {
    // A secret that can't be opened need not be kept.
    let Ok(opened) = OpenedSecrets::open(&tx.scope.core, before) else { return };
    let [outbound, inbound] = opened.into_webhook_secrets();
    let kept = |old: Option<SecretString>, new: &MaybeUndefined<SecretText>, field: &str| {
        let new = match new {
            MaybeUndefined::Undefined => return None,
            MaybeUndefined::Null => return Some(None),
            MaybeUndefined::Value(new) => new.0.expose_secret(),
        };
        let context = SealContext::new(tx.scope.org, "channels", before.id.0, field);
        let old = old?;
        (old.expose_secret() != new).then(|| Some(tx.scope.core.sealing.seal(&old, &context)))
    };
    let until = |sealed: &Option<Vec<u8>>| sealed.as_ref().map(|_| tx.now.plus(Duration::from_hours(24)));
    if let Some(sealed) = kept(outbound, &secrets.outbound, "webhook_outbound_previous") {
        row.webhook_outbound_previous_until = Set(until(&sealed));
        row.webhook_outbound_previous_sealed = Set(sealed);
    }
    if let Some(sealed) = kept(inbound, &secrets.inbound, "webhook_inbound_previous") {
        row.webhook_inbound_previous_until = Set(until(&sealed));
        row.webhook_inbound_previous_sealed = Set(sealed);
    }
}

/// Seals an edit's secrets for the row `id`.
pub(super) fn seal(tx: &Tx, id: ChannelId, row: &mut ActiveModel, secrets: Secrets) {
    let sealed = |secret: MaybeUndefined<SecretText>, field: &str| {
        let context = SealContext::new(tx.scope.org, "channels", id.0, field);
        secret.map_value(|secret| tx.scope.core.sealing.seal(&secret.0, &context))
    };
    patch(&mut row.bot_token_sealed, sealed(secrets.bot_token, "bot_token"));
    patch(&mut row.webhook_outbound_secret_sealed, sealed(secrets.outbound, "webhook_outbound_secret"));
    patch(&mut row.webhook_inbound_secret_sealed, sealed(secrets.inbound, "webhook_inbound_secret"));
    patch(&mut row.email_imap_pass_sealed, sealed(secrets.imap_pass, "email_imap_pass"));
    patch(&mut row.email_smtp_pass_sealed, sealed(secrets.smtp_pass, "email_smtp_pass"));
    patch(&mut row.drive_pass_sealed, sealed(secrets.drive_pass, "drive_pass"));
    patch(&mut row.calendar_pass_sealed, sealed(secrets.calendar_pass, "calendar_pass"));
}
