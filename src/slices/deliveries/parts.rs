//! What a message becomes: its parts, written in its transaction.

use std::ops::Range;

use muster_channels::{Files, Kind, Rendered, Traits, render, render_plain, traits};
use sea_orm::{EntityTrait, NotSet, Set};

use super::entity::deliveries;
use crate::{
    base::{
        enums::DeliveryStatus,
        ids::{ChannelId, ConversationId, MessageId},
        problem::Result,
    },
    core::{outbox, store::Tx},
    slices::channels,
};

/// From how many parts on they are written, before those of further messages: SQLite binds 32,766 values to one statement, a part
/// has 17, and a message has at most 100 parts, and its files.
const ROWS: usize = 500;

/// The way out of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    channel: ChannelId,
    kind: Kind,
    /// Whether what is said is sent: PENDING or SKIPPED.
    pub status: DeliveryStatus,
}

/// The way out through a channel. `None`: it carries no messages.
///
/// # Errors
/// The database is unreachable.
pub async fn way(tx: &Tx, channel: ChannelId) -> Result<Option<Way>> {
    let Some((kind, is_open)) = channels::way_out(tx, channel).await? else { return Ok(None) };
    let status = if is_open { DeliveryStatus::Pending } else { DeliveryStatus::Skipped };
    Ok(Some(Way { channel, kind, status }))
}

/// What is said to the people on the other side.
#[derive(Clone, Copy, Debug)]
pub struct Spoken<'a> {
    /// The message.
    pub message: MessageId,
    /// Its text. May be empty if there are files.
    pub text: &'a str,
    /// Whether nothing in the text is markup. If not, it is markdown.
    pub is_plain: bool,
    /// How many files are attached to it.
    pub files: usize,
}

/// Writes the parts of messages of one conversation, in this order.
///
/// # Errors
/// The database is unreachable.
pub async fn plan(tx: &Tx, way: Way, conversation: ConversationId, said: &[Spoken<'_>]) -> Result<()> {
    let facts = traits(way.kind);
    let mut rows = Vec::new();
    for spoken in said {
        for (part, (rendered, files)) in (1..).zip(parts(spoken, facts)) {
            rows.push(row(tx, way, conversation, (spoken.message, part), rendered, &files));
        }
        if rows.len() >= ROWS {
            write(tx, std::mem::take(&mut rows)).await?;
        }
    }
    write(tx, rows).await
}

async fn write(tx: &Tx, rows: Vec<deliveries::ActiveModel>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    deliveries::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    outbox::wake_after(tx);
    Ok(())
}

/// The parts of a message, each with the files that go with it.
fn parts(spoken: &Spoken<'_>, facts: &Traits) -> Vec<(Rendered, Range<usize>)> {
    let nothing = || Rendered { text: String::new(), plain: String::new() };
    let render = if spoken.is_plain { render_plain } else { render };
    let has_text = !spoken.text.trim().is_empty();
    let rendered = if has_text { render(spoken.text, facts.dialect, facts.longest) } else { Vec::new() };
    let mut parts: Vec<_> = rendered.into_iter().map(|text| (text, 0..0)).collect();
    match facts.files {
        Files::Apart => parts.extend((0..spoken.files).map(|n| (nothing(), n..n + 1))),
        Files::Together if spoken.files > 0 => match parts.last_mut() {
            Some((_, files)) => *files = 0..spoken.files,
            None => parts.push((nothing(), 0..spoken.files)),
        },
        Files::Together => {}
    }
    parts
}

fn row(
    tx: &Tx,
    way: Way,
    conversation: ConversationId,
    (message, part): (MessageId, i64),
    rendered: Rendered,
    files: &Range<usize>,
) -> deliveries::ActiveModel {
    deliveries::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        channel_id: Set(way.channel),
        conversation_id: Set(conversation),
        message_id: Set(message),
        part: Set(part),
        status: Set(way.status),
        text: Set(Some(rendered.text)),
        plain: Set(Some(rendered.plain)),
        first_file: Set(number(files.start)),
        files: Set(number(files.len())),
        attempts: Set(0),
        available_at: Set(tx.now),
        code: Set(None),
        error: Set(None),
        vendor_id: Set(None),
        created_at: Set(tx.now),
        sent_at: Set(None),
    }
}

fn number(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}
