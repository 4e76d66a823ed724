//! Rows of a message: one in its transaction, and its parts when it is sent. Splitting is not part of the transaction,
//! because the author's text determines how long it takes.

use std::{ops::Range, time::Duration};

use muster_channels::{Files, Rendered, Traits, render, render_plain};
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel, NotSet, Set};

use super::entity::deliveries;
use crate::{
    base::{
        bounds,
        enums::TextFormat,
        problem::{Problem, Result},
    },
    core::{access::Scope, queue, store::Tx},
    domain::conversations::{Outgoing, OutgoingAdded},
};

/// How long rendering a text may take before it is sent as plain text: a guard against unknown slow cases of the
/// parser. 512 KiB take less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes a row for each of these messages.
pub async fn plan(tx: &Tx, sent: &OutgoingAdded) -> Result<()> {
    for messages in sent.messages.chunks(bounds::ROWS as usize) {
        let rows = messages.iter().map(|message| row(tx, sent, message));
        deliveries::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    }
    if !sent.messages.is_empty() {
        queue::wake_after(&tx.scope.core, tx.connection());
    }
    Ok(())
}

fn row(tx: &Tx, sent: &OutgoingAdded, message: &Outgoing) -> deliveries::ActiveModel {
    deliveries::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        channel_id: Set(sent.channel),
        conversation_id: Set(sent.conversation),
        message_id: Set(message.id),
        part: Set(1),
        status: Set(sent.status),
        draft: Set(Some(message.format).filter(|_| message.action.is_none())),
        action: Set(message.action.clone()),
        text: Set(Some(message.text.clone())),
        plain: Set(None),
        first_file: Set(0),
        files: Set(to_i64(message.files)),
        attempts: Set(0),
        available_at: Set(tx.now),
        code: Set(None),
        error: Set(None),
        vendor_id: Set(None),
        created_at: Set(tx.now),
        sent_at: Set(None),
    }
}

/// Splits a whole message into parts. Empty for a row that already is a part, and for an action.
///
/// # Errors
/// The process is ending.
pub(super) async fn split(
    scope: &Scope,
    whole: &deliveries::Model,
    facts: &Traits,
) -> Result<Vec<deliveries::Model>> {
    let Some(format) = whole.draft else { return Ok(Vec::new()) };
    let texts = render_text(scope, whole.text.clone().unwrap_or_default(), format, facts).await?;
    let files = usize::try_from(whole.files).unwrap_or_default();
    let parts = (1..).zip(distribute_files(texts, files, facts.files));
    Ok(parts
        .map(|(part, (Rendered { text, plain }, files))| deliveries::Model {
            part,
            draft: None,
            text: Some(text),
            plain: Some(plain),
            first_file: to_i64(files.start),
            files: to_i64(files.len()),
            ..whole.clone()
        })
        .collect())
}

/// Renders a text in the vendor's dialect, or as plain text if that takes too long. A slow rendering keeps the
/// organization's worker slot until it has ended.
async fn render_text(
    scope: &Scope,
    text: String,
    format: TextFormat,
    facts: &Traits,
) -> Result<Vec<Rendered>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (dialect, longest) = (facts.dialect, facts.longest);
    let slot = scope.core.cpu_pool.slot(scope.org).await.map_err(Problem::internal)?;
    if format == TextFormat::Markdown {
        let markdown = text.clone();
        let work = slot.run(move || render(&markdown, dialect, longest));
        if let Ok(Ok(rendered)) = tokio::time::timeout(PATIENCE, work).await {
            return Ok(rendered);
        }
        tracing::warn!(org = scope.org.0, bytes = text.len(), "deliveries.not_rendered");
        let work = move || render_plain(&text, dialect, longest);
        return tokio::task::spawn_blocking(work).await.map_err(Problem::internal);
    }
    slot.run(move || render_plain(&text, dialect, longest)).await.map_err(Problem::internal)
}

/// Distributes the files over the parts. Returns at least one part.
fn distribute_files(texts: Vec<Rendered>, count: usize, files: Files) -> Vec<(Rendered, Range<usize>)> {
    let nothing = || Rendered { text: String::new(), plain: String::new() };
    let mut parts: Vec<_> = texts.into_iter().map(|text| (text, 0..0)).collect();
    match files {
        Files::Apart => parts.extend((0..count).map(|n| (nothing(), n..n + 1))),
        Files::Together if count > 0 => match parts.last_mut() {
            Some((_, files)) => *files = 0..count,
            None => parts.push((nothing(), 0..count)),
        },
        Files::Together => {}
    }
    if parts.is_empty() {
        parts.push((nothing(), 0..0));
    }
    parts
}

/// Inserts the parts after the first, which replaces the whole message's row.
pub(super) async fn insert_rest(tx: &Tx, parts: &[deliveries::Model]) -> Result<()> {
    let rest = parts.get(1..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(());
    }
    let rows = rest.iter().map(|part| deliveries::ActiveModel { id: NotSet, ..all_set(part.clone()) });
    deliveries::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    Ok(())
}

fn all_set(part: deliveries::Model) -> deliveries::ActiveModel {
    part.into_active_model().reset_all()
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
