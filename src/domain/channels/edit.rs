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
    open::{Opened, set_inlet, why_inactive},
    outbound::is_open,
    probe::{self, Answer},
    rows::{connected, finish, load},
    token,
};
use crate::{
    base::{
        enums::{ChangeOp, ChannelScope, RecordKind},
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

/// Another bot answers in a channel's chats than before.
#[derive(Debug)]
pub struct BotReplaced {
    /// The channel.
    pub channel: ChannelId,
    /// Its name.
    pub name: String,
}

impl DomainEvent for BotReplaced {}

/// A channel was edited.
#[derive(Debug)]
pub struct Edited {
    /// The channel.
    pub channel: ChannelId,
    /// Whether what is known of its vendor may no longer be true.
    pub is_new: bool,
    /// Whether what is said through it is sent.
    pub is_open: bool,
}

impl DomainEvent for Edited {}

/// Edits a channel (specification, operation 17). An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `VALIDATION_FAILED`; `PLAN_LIMIT_REACHED` and `ARCHIVED` if the edit activates the channel or
/// makes it external.
pub async fn update(scope: &Scope, id: ChannelId, edit: UpdateChannelInput) -> Result<()> {
    let answer = look(scope, id, edit.clone()).await?;
    let tx = scope.begin().await?;
    if edit.scope.is_value() || edit.is_active.is_value() {
        // `check_use` may lock it, and whoever restores an agent locks it before the agent's channels.
        orgs::lock(&tx).await?;
    }
    let before = load(&tx, id).await?;
    let mut violations = check::input(before.transport, &edit);
    violations.extend(check::references(&tx, &edit).await?);
    let mut after = before.clone();
    let secrets = merge(&mut after, edit);
    set_inlet(&mut after, &secrets);
    violations.extend(check::needs(&before, &after, &secrets));
    if let Some(mut answer) = answer {
        violations.append(&mut answer.refused);
        answer.apply(&mut after, secrets.any());
    }
    match token::check(&tx, id, before.transport, &secrets).await? {
        Ok(hash) => after.bot_hash = hash.or(after.bot_hash),
        Err(violation) => violations.push(violation),
    }
    Problem::refuse(violations)?;
    check_use(&tx, &before, &after).await?;
    let agent = before.agent_id;
    let is_new = is_new(&before, &after, &secrets);
    if is_new {
        // Who asked to wait may be someone else.
        after.send_after = None;
    }
    // A token that no longer opens counts as another.
    let is_another_bot = secrets.bot_token.is_value()
        && Opened::of(&scope.core, &before).map_or(true, |opened| opened.has_another_token(&secrets));
    let mut row = changed(before.clone(), &after);
    overlap(&tx, &before, &mut row, &secrets);
    seal(&tx, id, &mut row, secrets);
    if !row.is_changed() {
        return Ok(());
    }
    if is_another_bot {
        // Who answers there may be someone else by now.
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

/// Asks the vendor about the channel as it would be. `None`: there is nothing to ask.
async fn look(scope: &Scope, id: ChannelId, edit: UpdateChannelInput) -> Result<Option<Answer>> {
    let found = connected(scope).filter(Column::Id.eq(id)).one(scope.core.db.read()).await?;
    let Some(before) = found else { return Ok(None) };
    let mut violations = check::input(before.transport, &edit);
    let mut after = before.clone();
    let secrets = merge(&mut after, edit);
    violations.extend(check::needs(&before, &after, &secrets));
    if !violations.is_empty() || !after.is_active || !is_new(&before, &after, &secrets) {
        return Ok(None);
    }
    // Secrets that no longer open are no reason to refuse others.
    let Ok(opened) = Opened::of(&scope.core, &before) else { return Ok(None) };
    probe::ask(&scope.core, &after, opened.edited(&secrets)).await.map(Some)
}

/// Whether what is known of the vendor may no longer be true: it is reached in another way, or the channel was off.
fn is_new(before: &Model, after: &Model, secrets: &Secrets) -> bool {
    let is_woken = after.is_active && !before.is_active;
    secrets.any() || is_woken || settings(before) != settings(after)
}

/// The settings that a vendor is reached by, beside secrets.
fn settings(channel: &Model) -> impl PartialEq + use<> {
    let imap = (channel.email_imap_host.clone(), channel.email_imap_port, channel.email_imap_user.clone());
    let smtp = (channel.email_smtp_host.clone(), channel.email_smtp_port, channel.email_smtp_user.clone());
    let mail = (channel.email_imap_tls, channel.email_smtp_from.clone(), channel.email_authserv_id.clone());
    (imap, smtp, mail, channel.webhook_outbound_url.clone())
}

/// A channel that is activated, or becomes external, needs an existing agent and room in the plan.
async fn check_use(tx: &Tx, before: &Model, after: &Model) -> Result<()> {
    let woken = after.is_active && !before.is_active;
    if woken && why_inactive(after.transport).is_some() {
        let detail = format!("{} channels can't carry messages yet, so they stay inactive.", after.transport);
        return Err(Problem::new(Code::NotSupported, detail));
    }
    if woken && !agents::missing(tx, &[after.agent_id]).await?.is_empty() {
        return Err(Problem::new(Code::Archived, "The channel's agent has been deleted."));
    }
    let opened = after.scope == ChannelScope::External && before.scope != ChannelScope::External;
    if opened || (woken && after.scope == ChannelScope::External) {
        // A channel that is only reactivated was counted when it was connected, though the plan may have shrunk
        // since.
        check_limit(tx, after.agent_id, Some(after.id), !opened).await?;
    }
    Ok(())
}

/// Refuses one external channel too many for the agent. `except` is the channel in question.
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

/// A webhook's secret that an edit replaces counts for a while longer, so that the other side can follow. One that is removed
/// does not.
fn overlap(tx: &Tx, before: &Model, row: &mut ActiveModel, secrets: &Secrets) {
    // One that no longer opens is of no use to the other side either.
    let Ok(opened) = Opened::of(&tx.scope.core, before) else { return };
    let [outbound, inbound] = opened.webhook();
    let kept = |old: Option<SecretString>, new: &MaybeUndefined<SecretText>, field: &str| {
        let new = match new {
            MaybeUndefined::Undefined => return None,
            MaybeUndefined::Null => return Some(None),
            MaybeUndefined::Value(new) => new.0.expose_secret(),
        };
        let context = SealContext::new(tx.scope.org, "channels", before.id.0, field);
        let old = old?;
        (old.expose_secret() != new).then(|| Some(tx.scope.core.keys.seal(&old, &context)))
    };
    // The replaced secret still counts for a day.
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
        secret.map_value(|secret| tx.scope.core.keys.seal(&secret.0, &context))
    };
    patch(&mut row.bot_token_sealed, sealed(secrets.bot_token, "bot_token"));
    patch(&mut row.webhook_outbound_secret_sealed, sealed(secrets.outbound, "webhook_outbound_secret"));
    patch(&mut row.webhook_inbound_secret_sealed, sealed(secrets.inbound, "webhook_inbound_secret"));
    patch(&mut row.email_imap_pass_sealed, sealed(secrets.imap_pass, "email_imap_pass"));
    patch(&mut row.email_smtp_pass_sealed, sealed(secrets.smtp_pass, "email_smtp_pass"));
}
