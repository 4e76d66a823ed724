//! Unknown blocks: their known parts, or a note.

use serde_json::Value;

use super::{
    DEEPEST, TOO_DEEP,
    elements::{is_element, read_element},
    first_text, join_texts, read_block, read_row, read_text_object,
    rich_text::{read_line, read_rich_text},
    text_of,
};
use crate::{
    quoting::bracket_name,
    slack::mrkdwn::{Reader, format_link},
};

/// Fields of a block, in reading order.
const FIRST: [&str; 12] = [
    "title",
    "subtitle",
    "label",
    "caption",
    "text",
    "body",
    "description",
    "subtext",
    "details",
    "output",
    "columns",
    "rows",
];

/// Fields below the rest.
const LAST: [&str; 3] = ["sources", "actions", "footer"];

/// Fields shown only after a click, or never.
const HIDDEN: [&str; 4] = ["confirm", "filter", "metadata", "style"];

/// Elements of a line of rich text.
const INLINE: [&str; 10] =
    ["text", "link", "user", "usergroup", "channel", "team", "broadcast", "emoji", "date", "color"];

/// The known parts of an unknown block, or a note about it.
pub fn read_unknown(kind: &str, block: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    if !block.is_object() {
        return String::new();
    }
    let said = gather_texts(block, reader, depth);
    if said.is_empty() { note_unknown(kind) } else { said }
}

/// A note about something unknown without a text.
pub fn note_unknown(kind: &str) -> String {
    format!("[Something that Muster does not know: {}]", bracket_name(kind))
}

/// The texts of all known fields of an object.
pub fn gather_texts(thing: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    let Some(fields) = thing.as_object() else { return String::new() };
    if depth > DEEPEST {
        return TOO_DEEP.to_owned();
    }
    let named = |fields: &[&'static str]| -> Vec<_> {
        fields.iter().map(|field| &thing[*field]).filter(|value| !value.is_null()).collect()
    };
    let is_other = |field: &&str| [&FIRST[..], &LAST, &HIDDEN].iter().all(|known| !known.contains(field));
    let mut others: Vec<_> = fields.iter().filter(|(field, _)| is_other(&field.as_str())).collect();
    others.sort_by_key(|(field, _)| field.as_str());
    let (buttons, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .filter(|(_, value)| value.is_object() || value.is_array())
        .partition(|(field, value)| is_element(field) && value["type"].is_null() && value.is_object());
    let others = others.into_iter().map(|(_, value)| value);
    // Untyped objects, such as a chart's series.
    let called =
        if thing["type"].is_null() { read_text_object(&thing["name"], reader) } else { String::new() };
    let mut said = vec![called];
    for value in named(&FIRST).into_iter().chain(others).chain(named(&LAST)) {
        said.push(if value.is_string() {
            read_text_object(value, reader)
        } else {
            read_field(value, reader, depth + 1)
        });
    }
    let buttons = buttons.iter().map(|(_, button)| read_text_object(&button["text"], reader));
    let buttons: Vec<_> = buttons.filter(|said| !said.is_empty()).map(|said| format!("[{said}]")).collect();
    said.push(buttons.join(" "));
    let mut said: Vec<_> = said.into_iter().filter(|said| !said.trim().is_empty()).collect();
    let address = first_text(thing, &["url", "title_url"]);
    match said.first_mut() {
        Some(words) => *words = format_link(words, &address),
        None if !address.is_empty() => said.push(address),
        None => {}
    }
    let state = bracket_name(&first_text(thing, &["status", "level"]));
    if let Some(words) = said.first_mut().filter(|_| !matches!(state.as_str(), "" | "default")) {
        words.push_str(&format!(" ({state})"));
    }
    if let Some(number) = thing["value"].as_number() {
        said.push(number.to_string());
    }
    let between =
        if thing["type"].is_null() && said.iter().all(|said| !said.contains('\n')) { ": " } else { "\n\n" };
    said.join(between)
}

/// The text of such a field.
pub fn read_field(value: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    let Some(items) = value.as_array() else {
        return read_part(value, reader, depth).unwrap_or_else(|| gather_texts(value, reader, depth));
    };
    let kind = items.iter().find_map(|item| item["type"].as_str()).unwrap_or_default();
    if INLINE.contains(&kind) {
        return read_line(value, reader);
    }
    let item = |item: &Value| match item {
        Value::Array(_) => read_row(item, reader, depth),
        _ if item["type"].is_null() => gather_texts(item, reader, depth),
        _ => read_part(item, reader, depth).unwrap_or_else(|| read_block(item, reader, depth)),
    };
    let between = if kind.is_empty() {
        "\n"
    } else if is_element(kind) {
        " "
    } else {
        "\n\n"
    };
    join_texts(value, item, between)
}

/// The text of a part that is not a block itself.
fn read_part(value: &Value, reader: &mut Reader<'_>, depth: usize) -> Option<String> {
    match value["type"].as_str().unwrap_or_default() {
        "mrkdwn" | "plain_text" | "raw_text" => Some(read_text_object(value, reader)),
        "rich_text" => Some(read_rich_text(&value["elements"], reader, depth)),
        "url" => Some(format_link(&text_of(&value["text"]), &text_of(&value["url"]))),
        kind if is_element(kind) || value["image_url"].is_string() => {
            Some(read_element(value, reader, depth))
        }
        _ => None,
    }
}
