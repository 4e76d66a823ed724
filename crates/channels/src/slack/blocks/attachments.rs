//! Attachments: legacy content of apps, link previews, and shared messages.

use serde_json::Value;

use super::{DEEPEST, first_text, join_texts, merge::merge_blocks, note_depth, read_blocks, text_of};
use crate::{
    quoting::{bracket_name, join_paragraphs, quote},
    slack::mrkdwn::{Reader, format_link},
};

/// The text of attachments. `of_app`: an app wrote the message; attachments of people's messages may be previews, which
/// no one wrote.
pub fn read_attachments(attachments: &Value, of_app: bool, reader: &mut Reader<'_>) -> String {
    read_nested_attachments(attachments, of_app, reader, 0)
}

fn read_nested_attachments(
    attachments: &Value,
    of_app: bool,
    reader: &mut Reader<'_>,
    depth: usize,
) -> String {
    if depth > DEEPEST {
        return note_depth(attachments);
    }
    join_texts(attachments, |one| read_attachment(one, of_app, reader, depth), "\n\n")
}

fn read_attachment(attachment: &Value, of_app: bool, reader: &mut Reader<'_>, depth: usize) -> String {
    if is_shared(attachment) {
        return read_shared_message(attachment, depth);
    }
    if is_preview(attachment) && !of_app {
        return String::new();
    }
    let mut read = |field: &str| reader.read(&text_of(&attachment[field]));
    let (pretext, author, text) = (read("pretext"), read("author_name"), read("text"));
    let title = format_link(&read("title"), &text_of(&attachment["title_link"]));
    let footer = read("footer");
    let fields = join_texts(&attachment["fields"], |field| read_attachment_field(field, reader), "\n");
    let blocks = read_blocks(&attachment["blocks"], reader, depth + 1);
    let buttons = join_texts(&attachment["actions"], read_legacy_button, " ");
    let image = first_text(attachment, &["image_url", "thumb_url"]);
    let image = if image.is_empty() { image } else { format!("[An image: {image}]") };
    let said =
        join_paragraphs(&[&pretext, &author, &title, &text, &fields, &blocks, &image, &buttons, &footer]);
    if said.is_empty() { reader.read(&text_of(&attachment["fallback"])) } else { said }
}

/// Whether it previews a link.
pub fn is_preview(attachment: &Value) -> bool {
    ["from_url", "original_url", "app_unfurl_url"].iter().any(|field| attachment[*field].is_string())
}

/// Whether it is another message.
pub fn is_shared(attachment: &Value) -> bool {
    attachment["is_share"] == true
        || attachment["is_msg_unfurl"] == true
        || attachment["message_blocks"].is_array()
}

/// Another person's message, as its author's words. Mentions of us stay, and don't address us.
fn read_shared_message(attachment: &Value, depth: usize) -> String {
    let reader = &mut Reader::new(&[]);
    let said = reader.read(&text_of(&attachment["text"]));
    let blocks = join_texts(
        &attachment["message_blocks"],
        |one| read_blocks(&one["message"]["blocks"], reader, depth + 1),
        "\n\n",
    );
    let said = merge_blocks(said, blocks);
    let of_app = attachment["bot_id"].is_string() || attachment["author_id"].is_null();
    let within = read_nested_attachments(&attachment["attachments"], of_app, reader, depth + 1);
    let files = join_texts(&attachment["files"], |file| format!("[A file: {}]", file_name(file)), "\n\n");
    let said = join_paragraphs(&[&said, &within, &files]);
    let said = if said.is_empty() { reader.read(&text_of(&attachment["fallback"])) } else { said };
    let author = bracket_name(&first_text(attachment, &["author_name", "author_subname", "author_id"]));
    let author = if author.is_empty() { "someone".to_owned() } else { author };
    let channel = shared_channel(attachment);
    let place = match channel.as_str() {
        "" => String::new(),
        channel if channel.starts_with('D') && attachment["channel_id"] == channel => {
            " in a direct message".to_owned()
        }
        channel => format!(" in #{channel}"),
    };
    quote(&format!("Forwarded from {author}{place}"), &said)
}

/// The channel of a shared message: its name, which may appear only in the footer, or its id.
fn shared_channel(attachment: &Value) -> String {
    let footer = text_of(&attachment["footer"]);
    let below =
        footer.split_once('#').and_then(|(_, name)| name.split_whitespace().next()).unwrap_or_default();
    let named = bracket_name(&first_text(attachment, &["channel_name"]));
    let named = if named.is_empty() { bracket_name(below) } else { named };
    if named.is_empty() { bracket_name(&text_of(&attachment["channel_id"])) } else { named }
}

pub fn file_name(file: &Value) -> String {
    let said = bracket_name(&first_text(file, &["name", "title"]));
    if said.is_empty() { "file".to_owned() } else { said }
}

fn read_attachment_field(field: &Value, reader: &mut Reader<'_>) -> String {
    let (title, value) = (reader.read(&text_of(&field["title"])), reader.read(&text_of(&field["value"])));
    if title.is_empty() || value.is_empty() { title + &value } else { format!("{title}: {value}") }
}

/// The label of a legacy attachment button.
fn read_legacy_button(action: &Value) -> String {
    let label = text_of(&action["text"]);
    if label.is_empty() { label } else { format!("[{}]", format_link(&label, &text_of(&action["url"]))) }
}
