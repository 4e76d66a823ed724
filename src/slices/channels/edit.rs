//! Edits a channel.

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, Iterable, ModelTrait, QueryFilter, Set};

use super::{
    check, connected,
    entity::channels::{ActiveModel, Column, Model},
    finish,
    input::UpdateChannelInput,
    load,
    merge::{Secrets, merge},
};
use crate::{
    base::{
        enums::{ChangeOp, ChannelScope},
        ids::{AgentId, ChannelId},
        problem::{Code, Problem, Result},
        secret::SecretText,
    },
    core::{
        access::Scope,
        audit,
        sealing::SealContext,
        store::{Tx, patch},
    },
    slices::{
        agents,
        orgs::{self, Limit},
    },
};

/// Edits a channel (specification, operation 17). An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `VALIDATION_FAILED`; `PLAN_LIMIT_REACHED` and `ARCHIVED` if the edit activates the channel or
/// makes it external.
pub async fn update(scope: &Scope, id: ChannelId, edit: UpdateChannelInput) -> Result<()> {
    let tx = scope.begin().await?;
    let before = load(&tx, id).await?;
    let mut violations = check::input(before.transport, &edit);
    violations.extend(check::references(&tx, &edit).await?);
    let mut after = before.clone();
    let secrets = merge(&mut after, edit);
    violations.extend(check::needs(&before, &after, &secrets));
    Problem::refuse(violations)?;
    check_use(&tx, &before, &after).await?;
    let agent = before.agent_id;
    let mut row = changed(before, &after);
    seal(&tx, id, &mut row, secrets);
    if !row.is_changed() {
        return Ok(());
    }
    let changes = audit::changed(&row);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    finish(tx, (ChangeOp::Updated, "updateChannel"), id, agent, changes).await
}

/// A channel that is activated, or becomes external, needs an existing agent and room in the plan.
async fn check_use(tx: &Tx, before: &Model, after: &Model) -> Result<()> {
    let woken = after.is_active && !before.is_active;
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
    orgs::check_limit(tx, Limit::ChannelsPerAgent, others).await
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
