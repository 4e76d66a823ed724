//! What people see of a message beside its text: blocks (<https://docs.slack.dev/reference/block-kit/blocks>), attachments
//! (<https://docs.slack.dev/messaging/formatting-message-text#attachments>), and messages of others that it shares. Any field may be
//! missing or of another type: apps write them, and Slack adds some.

use serde_json::Value;

use super::mrkdwn::{Reader, link, literal, unescaped};
use crate::quoted::{apart, coded, fenced, name, quote};

/// How deep shared messages and blocks may lie in each other: each level marks every line once more, and anyone in a channel may
/// post such a message.
const DEEPEST: usize = 4;

/// The text of blocks.
pub fn text(blocks: &Value, reader: &mut Reader<'_>) -> String {
    deep(blocks, reader, 0)
}

/// The text of attachments. People's links have previews, which no one wrote: `of_app` says that an app wrote the message.
pub fn attachments(attachments: &Value, of_app: bool, reader: &mut Reader<'_>) -> String {
    attached(attachments, of_app, reader, 0)
}

fn deep(blocks: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    if depth > DEEPEST {
        return too_deep(blocks);
    }
    joined(blocks, |one| block(one, reader, depth), "\n\n")
}

fn too_deep(items: &Value) -> String {
    let is_something = items.as_array().is_some_and(|items| !items.is_empty());
    if is_something { "[Deeper levels are left out]".to_owned() } else { String::new() }
}

/// The words of a list's items, those that say something.
fn joined(items: &Value, mut words: impl FnMut(&Value) -> String, between: &str) -> String {
    let said = items.as_array().into_iter().flatten().map(|item| words(item).trim().to_owned());
    said.filter(|said| !said.is_empty()).collect::<Vec<_>>().join(between)
}

fn block(block: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    match block["type"].as_str().unwrap_or_default() {
        "rich_text" => rich(&block["elements"], reader, depth),
        "header" => object(&block["text"], reader),
        "section" => {
            let said = object(&block["text"], reader);
            let fields = joined(&block["fields"], |field| object(field, reader), "\n");
            apart(&[&said, &fields, &element(&block["accessory"], reader)])
        }
        "context" => joined(&block["elements"], |one| element(one, reader), " "),
        "markdown" => string(&block["text"]),
        "image" => element(block, reader),
        "actions" | "context_actions" => joined(&block["elements"], |one| element(one, reader), " "),
        "input" => {
            let (label, hint) = (object(&block["label"], reader), object(&block["hint"], reader));
            apart(&[&label, &element(&block["element"], reader), &hint])
        }
        "video" => {
            let said = [object(&block["title"], reader), object(&block["description"], reader)];
            let address = first(block, &["title_url", "video_url"]);
            apart(&[&format!("[A video: {}]", link(&said[0], &address)), &said[1]])
        }
        "table" => rows_of(block, reader, depth),
        "file" => "[A file of another service]".to_owned(),
        "call" => {
            let call = &block["call"]["v1"];
            let said = link(&name(&string(&call["name"])), &string(&call["join_url"]));
            if said.is_empty() { "[A call]".to_owned() } else { format!("[A call: {said}]") }
        }
        "divider" => String::new(),
        kind => unknown(kind, block, reader, depth),
    }
}

/// A block that we don't know: what such blocks often have, and that there was one.
fn unknown(kind: &str, block: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    if !block.is_object() {
        return String::new();
    }
    let said = ["title", "subtitle", "caption", "text", "body", "description", "details", "output"]
        .map(|field| object(&block[field], reader));
    let within = [
        rows_of(block, reader, depth),
        deep(&block["blocks"], reader, depth + 1),
        deep(&block["elements"], reader, depth + 1),
    ];
    let said: Vec<_> = said.iter().chain(&within).map(String::as_str).collect();
    let said = apart(&said);
    if said.is_empty() { format!("[Something that Muster does not know: {}]", name(kind)) } else { said }
}

/// The rows of a `table`, or of a `data_table`, which has a `caption` as well.
fn rows_of(block: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    joined(&block["rows"], |row| row_of(row, reader, depth), "\n")
}

/// The cells of a row, each in its column.
fn row_of(row: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    let cells = row.as_array().into_iter().flatten();
    let cells = cells
        .map(|cell| cell_of(cell, reader, depth).trim().replace('|', "\\|"))
        .collect::<Vec<_>>()
        .join(" | ");
    // Otherwise the second column would be the first.
    if cells.starts_with(" | ") { format!("| {cells}") } else { cells }
}

fn cell_of(cell: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    match cell["type"].as_str() {
        Some("rich_text") => rich(&cell["elements"], reader, depth).replace('\n', " "),
        _ if cell["text"].is_string() => literal(&string(&cell["text"])).replace('\n', " "),
        _ => cell["value"].as_number().map(ToString::to_string).unwrap_or_default(),
    }
}

/// A text object: `mrkdwn`, or plain.
fn object(object: &Value, reader: &mut Reader<'_>) -> String {
    match object["type"].as_str() {
        Some("mrkdwn") => reader.read(&string(&object["text"])),
        Some("rich_text") => rich(&object["elements"], reader, DEEPEST),
        // Slack escapes this as well.
        _ => literal(&unescaped(&string(if object.is_string() { object } else { &object["text"] }))),
    }
}

/// Something to look at or to press: what is written on it.
fn element(element: &Value, reader: &mut Reader<'_>) -> String {
    match element["type"].as_str().unwrap_or_default() {
        "mrkdwn" | "plain_text" => object(element, reader),
        "image" => {
            let said = [object(&element["title"], reader), string(&element["alt_text"])];
            let said = if said[0].is_empty() { &said[1] } else { &said[0] };
            let address = first(element, &["image_url"]);
            let address = if address.is_empty() { string(&element["slack_file"]["url"]) } else { address };
            format!("[An image: {}]", link(said, &address))
        }
        "" => String::new(),
        _ => {
            let label = object(&element["text"], reader);
            let label = if label.is_empty() { object(&element["placeholder"], reader) } else { label };
            let address = string(&element["url"]);
            let options = joined(&element["options"], |option| object(&option["text"], reader), ", ");
            let chosen = chosen(element, reader);
            let options = match (options.is_empty(), chosen.is_empty()) {
                (_, true) => options,
                (true, false) => chosen,
                (false, false) => format!("{options}; chosen: {chosen}"),
            };
            match (label.is_empty(), options.is_empty()) {
                (true, true) => String::new(),
                (false, true) => format!("[{}]", link(&label, &address)),
                (true, false) => format!("[{options}]"),
                (false, false) => format!("[{label}: {options}]"),
            }
        }
    }
}

/// What is chosen before somebody chooses.
fn chosen(element: &Value, reader: &mut Reader<'_>) -> String {
    let simple = [
        "initial_date",
        "initial_time",
        "initial_value",
        "initial_user",
        "initial_channel",
        "initial_conversation",
    ];
    let said = [
        first(element, &simple),
        moment(&element["initial_date_time"]),
        object(&element["initial_option"]["text"], reader),
        joined(&element["initial_options"], |option| object(&option["text"], reader), ", "),
    ];
    said.into_iter().find(|said| !said.is_empty()).unwrap_or_default()
}

/// <https://docs.slack.dev/reference/block-kit/blocks/rich-text-block>
fn rich(elements: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    if depth > DEEPEST + 1 {
        return too_deep(elements);
    }
    let (mut written, mut was_quote) = (String::new(), false);
    for element in elements.as_array().into_iter().flatten() {
        let inner = &element["elements"];
        let said = match element["type"].as_str().unwrap_or_default() {
            "rich_text_list" => list(element, reader),
            "rich_text_quote" => {
                inline(inner, reader).lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
            }
            "rich_text_preformatted" => fenced(typed(inner).trim_end(), ""),
            "rich_text_section" => inline(inner, reader),
            kind => unknown(kind, element, reader, depth + 1),
        };
        if !written.is_empty() {
            // The next line would go on with the quote.
            written.push_str(if was_quote { "\n\n" } else { "\n" });
        }
        written.push_str(said.trim_end_matches('\n'));
        was_quote = element["type"] == "rich_text_quote";
    }
    written
}

/// The words of code, without marks.
fn typed(elements: &Value) -> String {
    let word = |element: &Value| first(element, &["text", "url", "fallback", "value"]);
    elements.as_array().into_iter().flatten().map(word).collect()
}

fn list(list: &Value, reader: &mut Reader<'_>) -> String {
    let indent = usize::try_from(list["indent"].as_u64().unwrap_or_default()).unwrap_or_default().min(8);
    let offset = list["offset"].as_u64().unwrap_or_default();
    let is_ordered = list["style"] == "ordered";
    let items = list["elements"].as_array().into_iter().flatten().zip(offset.saturating_add(1)..);
    let item = |(item, number): (&Value, u64)| {
        let mark = if is_ordered { format!("{number}.") } else { "-".to_owned() };
        format!("{}{mark} {}", "    ".repeat(indent), inline(&item["elements"], reader).trim_end())
    };
    items.map(item).collect::<Vec<_>>().join("\n")
}

fn inline(elements: &Value, reader: &mut Reader<'_>) -> String {
    let mut said = String::new();
    for element in elements.as_array().into_iter().flatten() {
        said.push_str(&word(element, reader));
    }
    said
}

fn word(element: &Value, reader: &mut Reader<'_>) -> String {
    let text = string(&element["text"]);
    let named = |field: &str| string(&element[field]);
    match element["type"].as_str().unwrap_or_default() {
        "text" if element["style"]["code"] == true && !text.is_empty() => coded(&text),
        "text" if element["style"]["strike"] == true && !text.trim().is_empty() => {
            format!("~~{}~~", literal(&text))
        }
        "text" => literal(&text),
        "link" => link(&text, &named("url")),
        "user" if reader.is_us(&named("user_id")) => String::new(),
        "user" => format!("@{}", named("user_id")),
        "usergroup" => format!("@{}", named("usergroup_id")),
        "channel" => format!("#{}", named("channel_id")),
        "team" => format!("@{}", named("team_id")),
        "broadcast" => format!("@{}", named("range")),
        // As it stands in texts.
        "emoji" => format!(":{}:", named("name")),
        "date" => {
            let fallback = named("fallback");
            if fallback.trim().is_empty() { moment(&element["timestamp"]) } else { fallback }
        }
        "color" => named("value"),
        _ => text,
    }
}

fn moment(at: &Value) -> String {
    let at = at.as_i64().and_then(|at| jiff::Timestamp::from_second(at).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}

fn attached(attachments: &Value, of_app: bool, reader: &mut Reader<'_>, depth: usize) -> String {
    if depth > DEEPEST {
        return too_deep(attachments);
    }
    joined(attachments, |one| attachment(one, of_app, reader, depth), "\n\n")
}

fn attachment(attachment: &Value, of_app: bool, reader: &mut Reader<'_>, depth: usize) -> String {
    if is_shared(attachment) {
        return shared(attachment, depth);
    }
    let is_preview =
        ["from_url", "original_url", "app_unfurl_url"].iter().any(|field| attachment[*field].is_string());
    if is_preview && !of_app {
        return String::new();
    }
    let mut read = |field: &str| reader.read(&string(&attachment[field]));
    let (pretext, author, text) = (read("pretext"), read("author_name"), read("text"));
    let title = link(&read("title"), &string(&attachment["title_link"]));
    let footer = read("footer");
    let fields = joined(&attachment["fields"], |field| field_of(field, reader), "\n");
    let blocks = deep(&attachment["blocks"], reader, depth + 1);
    let buttons = joined(&attachment["actions"], element_of_old, " ");
    let image = first(attachment, &["image_url", "thumb_url"]);
    let image = if image.is_empty() { image } else { format!("[An image: {image}]") };
    let said = apart(&[&pretext, &author, &title, &text, &fields, &blocks, &image, &buttons, &footer]);
    if said.is_empty() { reader.read(&string(&attachment["fallback"])) } else { said }
}

/// Whether it is another message.
pub fn is_shared(attachment: &Value) -> bool {
    attachment["is_share"] == true
        || attachment["is_msg_unfurl"] == true
        || attachment["message_blocks"].is_array()
}

/// Another person's message, as its author's words. Where it names us, that stays, and is not for us.
fn shared(attachment: &Value, depth: usize) -> String {
    let reader = &mut Reader::new(&[]);
    let said = reader.read(&string(&attachment["text"]));
    let blocks = joined(
        &attachment["message_blocks"],
        |one| deep(&one["message"]["blocks"], reader, depth + 1),
        "\n\n",
    );
    let said = fuller(said, blocks);
    let of_app = attachment["bot_id"].is_string() || attachment["author_id"].is_null();
    let within = attached(&attachment["attachments"], of_app, reader, depth + 1);
    let files = joined(&attachment["files"], |file| format!("[A file: {}]", file_name(file)), "\n\n");
    let said = apart(&[&said, &within, &files]);
    let said = if said.is_empty() { reader.read(&string(&attachment["fallback"])) } else { said };
    let author = name(&first(attachment, &["author_name", "author_subname", "author_id"]));
    let author = if author.is_empty() { "someone".to_owned() } else { author };
    let channel = place(attachment);
    let place = match channel.as_str() {
        "" => String::new(),
        channel if channel.starts_with('D') && attachment["channel_id"] == channel => {
            " in a direct message".to_owned()
        }
        channel => format!(" in #{channel}"),
    };
    quote(&format!("Forwarded from {author}{place}"), &said)
}

/// Where it was: the channel's name, which may stand below it alone, or else its id.
fn place(attachment: &Value) -> String {
    let footer = string(&attachment["footer"]);
    let below =
        footer.split_once('#').and_then(|(_, name)| name.split_whitespace().next()).unwrap_or_default();
    let named = name(&first(attachment, &["channel_name"]));
    let named = if named.is_empty() { name(below) } else { named };
    if named.is_empty() { name(&string(&attachment["channel_id"])) } else { named }
}

/// A file's name or title.
pub fn file_name(file: &Value) -> String {
    let said = name(&first(file, &["name", "title"]));
    if said.is_empty() { "file".to_owned() } else { said }
}

fn field_of(field: &Value, reader: &mut Reader<'_>) -> String {
    let (title, value) = (reader.read(&string(&field["title"])), reader.read(&string(&field["value"])));
    if title.is_empty() || value.is_empty() { title + &value } else { format!("{title}: {value}") }
}

/// A button of an attachment.
fn element_of_old(action: &Value) -> String {
    let label = string(&action["text"]);
    if label.is_empty() { label } else { format!("[{}]", link(&label, &string(&action["url"]))) }
}

/// Both, or one if it has all words of the other, side by side.
pub fn fuller(one: String, other: String) -> String {
    let (words, others) = (words(&one), words(&other));
    if words.contains(&others) {
        one
    } else if others.contains(&words) {
        other
    } else {
        apart(&[&one, &other])
    }
}

/// The words of a text with a space around each, without the marks that are written in several ways.
fn words(text: &str) -> String {
    let is_between = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '*' | '_' | '~' | '`' | '\\' | '>' | '•' | '|' | '[' | ']' | '(' | ')' | '“' | '”' | '"'
            )
    };
    let words = text.split(is_between).map(|word| word.trim_matches(['.', ',', ':', ';', '!', '?', '-']));
    let mut joined = " ".to_owned();
    for word in words.filter(|word| !word.is_empty()) {
        joined.push_str(word);
        joined.push(' ');
    }
    joined
}

/// The first of these texts that says something.
fn first(value: &Value, fields: &[&str]) -> String {
    let mut said = fields.iter().map(|field| string(&value[*field]));
    said.find(|said| !said.is_empty()).unwrap_or_default()
}

fn string(value: &Value) -> String {
    value.as_str().map(|text| text.trim_matches('\0').to_owned()).unwrap_or_default()
}
