//! The visible content of a message beside its text: blocks (<https://docs.slack.dev/reference/block-kit/blocks>),
//! attachments (<https://docs.slack.dev/messaging/formatting-message-text#attachments>), and shared messages. Any field
//! may be missing or of another type: apps write them, and Slack adds more.
//!
//! - `elements.rs`: images and interactive elements; `rich_text.rs`: rich text; `unknown.rs`: unknown blocks.
//! - `attachments.rs`: attachments and shared messages; `merge.rs`: merging with the message's text.

mod attachments;
mod elements;
mod merge;
mod rich_text;
mod unknown;

use serde_json::Value;

pub use self::{
    attachments::{file_name, is_preview, is_shared, read_attachments},
    merge::{merge_blocks, merge_texts},
};
use self::{
    elements::read_element,
    rich_text::read_rich_text,
    unknown::{read_field, read_unknown},
};
use super::mrkdwn::{Reader, escape_literal, format_link, unescape};
use crate::quoting::{bracket_name, join_paragraphs};

/// Nesting of shared messages and blocks: each level marks every line again, and anyone in a channel may post such a
/// message.
const DEEPEST: usize = 4;

/// Stands for what is nested deeper.
const TOO_DEEP: &str = "[Deeper levels are left out]";

/// The text of blocks.
pub fn read(blocks: &Value, reader: &mut Reader<'_>) -> String {
    read_blocks(blocks, reader, 0)
}

fn read_blocks(blocks: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    if depth > DEEPEST {
        return note_depth(blocks);
    }
    join_texts(blocks, |one| read_block(one, reader, depth), "\n\n")
}

fn note_depth(items: &Value) -> String {
    let is_something = items.as_array().is_some_and(|items| !items.is_empty());
    if is_something { TOO_DEEP.to_owned() } else { String::new() }
}

/// Joins the non-empty texts of a list's items.
fn join_texts(items: &Value, mut read: impl FnMut(&Value) -> String, between: &str) -> String {
    let said = items.as_array().into_iter().flatten().map(|item| read(item).trim().to_owned());
    said.filter(|said| !said.is_empty()).collect::<Vec<_>>().join(between)
}

fn read_block(block: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    match block["type"].as_str().unwrap_or_default() {
        "rich_text" => read_rich_text(&block["elements"], reader, depth),
        "header" => read_text_object(&block["text"], reader),
        "section" => {
            let said = read_text_object(&block["text"], reader);
            let fields = join_texts(&block["fields"], |field| read_text_object(field, reader), "\n");
            join_paragraphs(&[&said, &fields, &read_element(&block["accessory"], reader, depth)])
        }
        "markdown" => text_of(&block["text"]),
        "image" => read_element(block, reader, depth),
        "context" | "actions" | "context_actions" => {
            join_texts(&block["elements"], |one| read_element(one, reader, depth), " ")
        }
        "input" => {
            let (label, hint) =
                (read_text_object(&block["label"], reader), read_text_object(&block["hint"], reader));
            join_paragraphs(&[&label, &read_element(&block["element"], reader, depth), &hint])
        }
        "video" => {
            let said =
                [read_text_object(&block["title"], reader), read_text_object(&block["description"], reader)];
            let address = first_text(block, &["title_url", "video_url"]);
            join_paragraphs(&[&format!("[A video: {}]", format_link(&said[0], &address)), &said[1]])
        }
        "table" => read_rows(block, reader, depth),
        "file" => "[A file of another service]".to_owned(),
        "call" => {
            let call = &block["call"]["v1"];
            let said = format_link(&bracket_name(&text_of(&call["name"])), &text_of(&call["join_url"]));
            if said.is_empty() { "[A call]".to_owned() } else { format!("[A call: {said}]") }
        }
        "divider" => String::new(),
        kind => read_unknown(kind, block, reader, depth),
    }
}

/// The rows of a `table`, or of a `data_table`, which also has a `caption`.
fn read_rows(block: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    join_texts(&block["rows"], |row| read_row(row, reader, depth), "\n")
}

/// A row's cells, each in its column.
fn read_row(row: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    let cells = row.as_array().into_iter().flatten();
    let cells = cells
        .map(|cell| read_cell(cell, reader, depth).trim().replace('|', "\\|"))
        .collect::<Vec<_>>()
        .join(" | ");
    // Otherwise the second column would become the first.
    if cells.starts_with(" | ") { format!("| {cells}") } else { cells }
}

fn read_cell(cell: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    match cell["type"].as_str() {
        Some("rich_text") => read_rich_text(&cell["elements"], reader, depth).replace('\n', " "),
        _ if cell["text"].is_string() => escape_literal(&text_of(&cell["text"])).replace('\n', " "),
        _ if cell["value"].is_number() => cell["value"].to_string(),
        _ => read_field(cell, reader, depth + 1).replace('\n', " "),
    }
}

/// A text object: `mrkdwn` or plain text.
fn read_text_object(object: &Value, reader: &mut Reader<'_>) -> String {
    match object["type"].as_str() {
        Some("mrkdwn") => reader.read(&text_of(&object["text"])),
        Some("rich_text") => read_rich_text(&object["elements"], reader, DEEPEST),
        // Slack escapes plain text, too.
        _ => escape_literal(&unescape(&text_of(if object.is_string() { object } else { &object["text"] }))),
    }
}

/// The first non-empty text of these fields.
fn first_text(value: &Value, fields: &[&str]) -> String {
    let mut said = fields.iter().map(|field| text_of(&value[*field]));
    said.find(|said| !said.is_empty()).unwrap_or_default()
}

fn text_of(value: &Value) -> String {
    value.as_str().map(|text| text.trim_matches('\0').to_owned()).unwrap_or_default()
}
