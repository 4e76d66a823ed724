//! What a message becomes: one row in its transaction, and its parts when it is sent. How long splitting a text takes is decided
//! by who wrote it, so no transaction waits for it.

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
    domain::conversations::{Outgoing, SentOut},
};

/// How long splitting a text may take before it is sent letter by letter: for a text that the parser is slow at in a way that
/// no one has found yet. 512 KiB take less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes a row for each of these messages.
pub async fn plan(tx: &Tx, sent: &SentOut) -> Result<()> {
    for said in sent.messages.chunks(bounds::ROWS as usize) {
        let rows = said.iter().map(|message| row(tx, sent, message));
        deliveries::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    }
    if !sent.messages.is_empty() {
        queue::wake_after(&tx.scope.core, tx.connection());
    }
    Ok(())
}

fn row(tx: &Tx, sent: &SentOut, message: &Outgoing) -> deliveries::ActiveModel {
    deliveries::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        channel_id: Set(sent.channel),
        conversation_id: Set(sent.conversation),
        message_id: Set(message.id),
        part: Set(1),
        status: Set(sent.status),
        draft: Set(Some(message.format)),
        text: Set(Some(message.text.clone())),
        plain: Set(None),
        first_file: Set(0),
        files: Set(number(message.files)),
        attempts: Set(0),
        available_at: Set(tx.now),
        code: Set(None),
        error: Set(None),
        vendor_id: Set(None),
        created_at: Set(tx.now),
        sent_at: Set(None),
    }
}

/// A message's parts. Empty for a row that is a part already.
///
/// # Errors
/// The process is ending.
pub(super) async fn split(
    scope: &Scope,
    whole: &deliveries::Model,
    facts: &Traits,
) -> Result<Vec<deliveries::Model>> {
    let Some(format) = whole.draft else { return Ok(Vec::new()) };
    let texts = rendered(scope, whole.text.clone().unwrap_or_default(), format, facts).await?;
    let files = usize::try_from(whole.files).unwrap_or_default();
    let parts = (1..).zip(with_files(texts, files, facts.files));
    Ok(parts
        .map(|(part, (Rendered { text, plain }, files))| deliveries::Model {
            part,
            draft: None,
            text: Some(text),
            plain: Some(plain),
            first_file: number(files.start),
            files: number(files.len()),
            ..whole.clone()
        })
        .collect())
}

/// A text as the vendor's people read it. One that takes too long is sent letter by letter; its rendering keeps the
/// organization's turn until it has ended.
async fn rendered(scope: &Scope, text: String, format: TextFormat, facts: &Traits) -> Result<Vec<Rendered>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (dialect, longest) = (facts.dialect, facts.longest);
    let turn = scope.core.workshop.turn(scope.org).await.map_err(Problem::internal)?;
    if format == TextFormat::Markdown {
        let markdown = text.clone();
        let work = turn.run(move || render(&markdown, dialect, longest));
        if let Ok(Ok(rendered)) = tokio::time::timeout(PATIENCE, work).await {
            return Ok(rendered);
        }
        tracing::warn!(org = scope.org.0, bytes = text.len(), "deliveries.not_rendered");
        let work = move || render_plain(&text, dialect, longest);
        return tokio::task::spawn_blocking(work).await.map_err(Problem::internal);
    }
    turn.run(move || render_plain(&text, dialect, longest)).await.map_err(Problem::internal)
}

/// The parts of a message, each with the files that go with it. There is at least one.
fn with_files(texts: Vec<Rendered>, count: usize, files: Files) -> Vec<(Rendered, Range<usize>)> {
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

/// Writes the parts after the first, which takes the place of the whole message.
pub(super) async fn add_rest(tx: &Tx, parts: &[deliveries::Model]) -> Result<()> {
    let rest = parts.get(1..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(());
    }
    let rows = rest.iter().map(|part| deliveries::ActiveModel { id: NotSet, ..all_set(part.clone()) });
    deliveries::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    Ok(())
}

/// A row of which every column is written.
fn all_set(part: deliveries::Model) -> deliveries::ActiveModel {
    part.into_active_model().reset_all()
}

fn number(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}
