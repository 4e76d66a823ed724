//! What people see of a message beside its text: blocks (<https://docs.slack.dev/reference/block-kit/blocks>), attachments
//! (<https://docs.slack.dev/messaging/formatting-message-text#attachments>), and messages of others that it shares. Any field may be
//! missing or of another type: apps write them, and Slack adds some.

use serde_json::Value;

use super::mrkdwn::{Reader, dated, link, literal, unescaped};
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
            apart(&[&said, &fields, &element(&block["accessory"], reader, depth)])
        }
        "markdown" => string(&block["text"]),
        "image" => element(block, reader, depth),
        "context" | "actions" | "context_actions" => {
            joined(&block["elements"], |one| element(one, reader, depth), " ")
        }
        "input" => {
            let (label, hint) = (object(&block["label"], reader), object(&block["hint"], reader));
            apart(&[&label, &element(&block["element"], reader, depth), &hint])
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

/// What people read first of a block, in this order.
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
/// What stands below the rest.
const LAST: [&str; 3] = ["sources", "actions", "footer"];
/// Seen only after something is pressed, or never.
const UNSEEN: [&str; 4] = ["confirm", "filter", "metadata", "style"];
/// What lines of rich text are made of.
const INLINE: [&str; 10] =
    ["text", "link", "user", "usergroup", "channel", "team", "broadcast", "emoji", "date", "color"];

/// A block that we don't know: all that we know within it, or that there was one.
fn unknown(kind: &str, block: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    if !block.is_object() {
        return String::new();
    }
    let said = gathered(block, reader, depth);
    if said.is_empty() { format!("[Something that Muster does not know: {}]", name(kind)) } else { said }
}

/// The words of all that we know within something.
fn gathered(thing: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    let Some(fields) = thing.as_object() else { return String::new() };
    if depth > DEEPEST {
        return "[Deeper levels are left out]".to_owned();
    }
    let named = |fields: &[&'static str]| -> Vec<_> {
        fields.iter().map(|field| &thing[*field]).filter(|value| !value.is_null()).collect()
    };
    let is_other = |field: &&str| [&FIRST[..], &LAST, &UNSEEN].iter().all(|known| !known.contains(field));
    let mut others: Vec<_> = fields.iter().filter(|(field, _)| is_other(&field.as_str())).collect();
    others.sort_by_key(|(field, _)| field.as_str());
    let (buttons, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .filter(|(_, value)| value.is_object() || value.is_array())
        .partition(|(field, value)| is_element(field) && value["type"].is_null() && value.is_object());
    let others = others.into_iter().map(|(_, value)| value);
    // Of things without a type, such as the lines of a chart.
    let called = if thing["type"].is_null() { object(&thing["name"], reader) } else { String::new() };
    let mut said = vec![called];
    for value in named(&FIRST).into_iter().chain(others).chain(named(&LAST)) {
        said.push(if value.is_string() { object(value, reader) } else { nested(value, reader, depth + 1) });
    }
    let buttons = buttons.iter().map(|(_, button)| object(&button["text"], reader));
    let buttons: Vec<_> = buttons.filter(|said| !said.is_empty()).map(|said| format!("[{said}]")).collect();
    said.push(buttons.join(" "));
    let mut said: Vec<_> = said.into_iter().filter(|said| !said.trim().is_empty()).collect();
    let address = first(thing, &["url", "title_url"]);
    match said.first_mut() {
        Some(words) => *words = link(words, &address),
        None if !address.is_empty() => said.push(address),
        None => {}
    }
    let state = name(&first(thing, &["status", "level"]));
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

/// What a field of such a block holds.
fn nested(value: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    let Some(items) = value.as_array() else {
        return part(value, reader, depth).unwrap_or_else(|| gathered(value, reader, depth));
    };
    let kind = items.iter().find_map(|item| item["type"].as_str()).unwrap_or_default();
    if INLINE.contains(&kind) {
        return inline(value, reader);
    }
    let item = |item: &Value| match item {
        Value::Array(_) => row_of(item, reader, depth),
        _ if item["type"].is_null() => gathered(item, reader, depth),
        _ => part(item, reader, depth).unwrap_or_else(|| block(item, reader, depth)),
    };
    let between = if kind.is_empty() {
        "\n"
    } else if is_element(kind) {
        " "
    } else {
        "\n\n"
    };
    joined(value, item, between)
}

/// A part of a block that is not a block itself.
fn part(value: &Value, reader: &mut Reader<'_>, depth: usize) -> Option<String> {
    match value["type"].as_str().unwrap_or_default() {
        "mrkdwn" | "plain_text" | "raw_text" => Some(object(value, reader)),
        "rich_text" => Some(rich(&value["elements"], reader, depth)),
        "url" => Some(link(&string(&value["text"]), &string(&value["url"]))),
        kind if is_element(kind) || value["image_url"].is_string() => Some(element(value, reader, depth)),
        _ => None,
    }
}

/// Whether this is something to press or to choose.
fn is_element(kind: &str) -> bool {
    ["button", "buttons", "select", "picker", "_input", "checkboxes", "overflow"]
        .iter()
        .any(|end| kind.ends_with(end))
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
        _ if cell["value"].is_number() => cell["value"].to_string(),
        _ => nested(cell, reader, depth + 1).replace('\n', " "),
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
fn element(element: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
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
            let options = [options(&element["options"], reader), groups(&element["option_groups"], reader)];
            let options = options.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join("; ");
            let chosen = chosen(element, reader);
            let options = match (options.is_empty(), chosen.is_empty()) {
                (_, true) => options,
                (true, false) => chosen,
                (false, false) => format!("{options}; chosen: {chosen}"),
            };
            match (label.is_empty(), options.is_empty()) {
                (true, true) => gathered(element, reader, depth + 1),
                (false, true) => format!("[{}]", link(&label, &address)),
                (true, false) => format!("[{options}]"),
                (false, false) => format!("[{label}: {options}]"),
            }
        }
    }
}

/// What may be chosen, with what stands below each.
fn options(options: &Value, reader: &mut Reader<'_>) -> String {
    let mut option = |option: &Value| {
        let said = link(&object(&option["text"], reader), &string(&option["url"]));
        let more = object(&option["description"], reader);
        if more.is_empty() { said } else { format!("{said} ({more})") }
    };
    joined(options, |one| option(one), ", ")
}

fn groups(groups: &Value, reader: &mut Reader<'_>) -> String {
    let mut group = |group: &Value| {
        let (label, options) = (object(&group["label"], reader), options(&group["options"], reader));
        if label.is_empty() { options } else { format!("{label}: {options}") }
    };
    joined(groups, |one| group(one), "; ")
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
    let word = |element: &Value| match element["type"].as_str() {
        Some("date") => date(element),
        _ => first(element, &["text", "url", "fallback", "value"]),
    };
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

/// The styles of words, and their marks. The first is around the others.
const STYLES: [(&str, &str); 3] = [("strike", "~~"), ("bold", "**"), ("italic", "_")];

fn inline(elements: &Value, reader: &mut Reader<'_>) -> String {
    let elements = elements.as_array().into_iter().flatten();
    let words: Vec<_> = elements.map(|element| (word(element, reader), &element["style"])).collect();
    styled(&words, &STYLES)
}

/// Words that have a style side by side are marked together.
fn styled(words: &[(String, &Value)], styles: &[(&str, &str)]) -> String {
    let Some(((style, mark), others)) = styles.split_first() else {
        return words.iter().map(|(word, _)| word.as_str()).collect();
    };
    let has = |styles: &Value| styles[*style] == true;
    let mut said = String::new();
    for run in words.chunk_by(|(_, one), (_, other)| has(one) == has(other)) {
        let inner = styled(run, others);
        if has(run[0].1) {
            inner.split_inclusive('\n').for_each(|line| put_marked(line, mark, &mut said));
        } else {
            said.push_str(&inner);
        }
    }
    said
}

/// A mark beside a space is none.
fn put_marked(line: &str, mark: &str, said: &mut String) {
    let words = line.trim();
    let (before, after) = (line.len() - line.trim_start().len(), line.trim_end().len());
    if words.is_empty() {
        said.push_str(line);
    } else {
        said.extend([&line[..before], mark, words, mark, &line[after..]]);
    }
}

fn word(element: &Value, reader: &mut Reader<'_>) -> String {
    let text = string(&element["text"]);
    let named = |field: &str| string(&element[field]);
    match element["type"].as_str().unwrap_or_default() {
        "text" if element["style"]["code"] == true && !text.is_empty() => coded(&text),
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
        "date" => date(element),
        "color" => named("value"),
        "" => text,
        kind => {
            let said = first(element, &["text", "title", "name", "fallback"]);
            let said = link(&said, &named("url"));
            if said.is_empty() {
                format!("[Something that Muster does not know: {}]", name(kind))
            } else {
                said
            }
        }
    }
}

fn date(element: &Value) -> String {
    let fallback = string(&element["fallback"]);
    dated(element["timestamp"].as_i64(), fallback.trim(), &string(&element["url"]))
}

fn moment(at: &Value) -> String {
    dated(at.as_i64(), "", "")
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
    if is_preview(attachment) && !of_app {
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

/// Whether it shows what a link leads to.
pub fn is_preview(attachment: &Value) -> bool {
    ["from_url", "original_url", "app_unfurl_url"].iter().any(|field| attachment[*field].is_string())
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
    let said = seen(said, blocks);
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

/// What people see of a message with this text and these blocks: Slack shows the blocks. What only the text says is kept.
pub fn seen(text: String, blocks: String) -> String {
    let is_all_in_blocks = words(&blocks, false).contains(&words(&text, false));
    if is_all_in_blocks && !blocks.is_empty() { blocks } else { fuller(text, blocks) }
}

/// Both, or one if it has all words of the other, side by side, with the same struck and the same less than nothing.
pub fn fuller(one: String, other: String) -> String {
    let (words, others) = (words(&one, true), words(&other, true));
    if words.contains(&others) {
        one
    } else if others.contains(&words) {
        other
    } else {
        apart(&[&one, &other])
    }
}

/// The words of a text with a space around each, without the marks that are written in several ways. `is_exact` tells struck words
/// and what is less than nothing from others.
fn words(text: &str, is_exact: bool) -> String {
    let is_between = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '*' | '_' | '~' | '`' | '\\' | '>' | '•' | '|' | '[' | ']' | '(' | ')' | '“' | '”' | '"'
            )
    };
    let mut joined = " ".to_owned();
    for (nth, part) in text.split("~~").enumerate() {
        let is_struck = is_exact && nth % 2 == 1;
        for word in part.split(is_between) {
            let bare = word.trim_matches(['.', ',', ':', ';', '!', '?', '-']);
            if bare.is_empty() {
                continue;
            }
            if is_struck {
                joined.push('~');
            }
            if is_exact && word.starts_with('-') {
                joined.push('-');
            }
            joined.push_str(bare);
            joined.push(' ');
        }
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
