//! Rich text: <https://docs.slack.dev/reference/block-kit/blocks/rich-text-block>.

use serde_json::Value;

use super::{
    DEEPEST, first_text, note_depth, text_of,
    unknown::{note_unknown, read_unknown},
};
use crate::{
    quoting::{code_block, inline_code},
    slack::mrkdwn::{Reader, escape_literal, format_date, format_link},
};

pub fn read_rich_text(elements: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    if depth > DEEPEST + 1 {
        return note_depth(elements);
    }
    let (mut written, mut was_quote) = (String::new(), false);
    for element in elements.as_array().into_iter().flatten() {
        let inner = &element["elements"];
        let said = match element["type"].as_str().unwrap_or_default() {
            "rich_text_list" => read_list(element, reader),
            "rich_text_quote" => read_line(inner, reader)
                .lines()
                .map(|line| format!("> {line}"))
                .collect::<Vec<_>>()
                .join("\n"),
            "rich_text_preformatted" => code_block(read_code(inner).trim_end(), ""),
            "rich_text_section" => read_line(inner, reader),
            kind => read_unknown(kind, element, reader, depth + 1),
        };
        if !written.is_empty() {
            // Otherwise the next line would continue the quote.
            written.push_str(if was_quote { "\n\n" } else { "\n" });
        }
        written.push_str(said.trim_end_matches('\n'));
        was_quote = element["type"] == "rich_text_quote";
    }
    written
}

/// The text of code, without marks.
fn read_code(elements: &Value) -> String {
    let raw = |element: &Value| match element["type"].as_str() {
        Some("date") => read_date(element),
        _ => first_text(element, &["text", "url", "fallback", "value"]),
    };
    elements.as_array().into_iter().flatten().map(raw).collect()
}

fn read_list(list: &Value, reader: &mut Reader<'_>) -> String {
    let indent = usize::try_from(list["indent"].as_u64().unwrap_or_default()).unwrap_or_default().min(8);
    let offset = list["offset"].as_u64().unwrap_or_default();
    let is_ordered = list["style"] == "ordered";
    let items = list["elements"].as_array().into_iter().flatten().zip(offset.saturating_add(1)..);
    let item = |(item, number): (&Value, u64)| {
        let mark = if is_ordered { format!("{number}.") } else { "-".to_owned() };
        format!("{}{mark} {}", "    ".repeat(indent), read_line(&item["elements"], reader).trim_end())
    };
    items.map(item).collect::<Vec<_>>().join("\n")
}

/// Word styles and their marks, outermost first.
const STYLES: [(&str, &str); 3] = [("strike", "~~"), ("bold", "**"), ("italic", "_")];

pub fn read_line(elements: &Value, reader: &mut Reader<'_>) -> String {
    let elements = elements.as_array().into_iter().flatten();
    let words: Vec<_> = elements.map(|element| (read_inline(element, reader), &element["style"])).collect();
    apply_styles(&words, &STYLES)
}

/// Adjacent words of one style share their marks.
fn apply_styles(words: &[(String, &Value)], styles: &[(&str, &str)]) -> String {
    let Some(((style, mark), others)) = styles.split_first() else {
        return words.iter().map(|(word, _)| word.as_str()).collect();
    };
    let has = |styles: &Value| styles[*style] == true;
    let mut said = String::new();
    for run in words.chunk_by(|(_, one), (_, other)| has(one) == has(other)) {
        let inner = apply_styles(run, others);
        if has(run[0].1) {
            inner.split_inclusive('\n').for_each(|line| push_marked(line, mark, &mut said));
        } else {
            said.push_str(&inner);
        }
    }
    said
}

/// Marks next to a space don't count.
fn push_marked(line: &str, mark: &str, said: &mut String) {
    let words = line.trim();
    let (before, after) = (line.len() - line.trim_start().len(), line.trim_end().len());
    if words.is_empty() {
        said.push_str(line);
    } else {
        said.extend([&line[..before], mark, words, mark, &line[after..]]);
    }
}

fn read_inline(element: &Value, reader: &mut Reader<'_>) -> String {
    let text = text_of(&element["text"]);
    let named = |field: &str| text_of(&element[field]);
    match element["type"].as_str().unwrap_or_default() {
        "text" if element["style"]["code"] == true && !text.is_empty() => inline_code(&text),
        "text" => escape_literal(&text),
        "link" => format_link(&text, &named("url")),
        "user" if reader.is_us(&named("user_id")) => String::new(),
        "user" => format!("@{}", named("user_id")),
        "usergroup" => format!("@{}", named("usergroup_id")),
        "channel" => format!("#{}", named("channel_id")),
        "team" => format!("@{}", named("team_id")),
        "broadcast" => format!("@{}", named("range")),
        // The same form as in texts.
        "emoji" => format!(":{}:", named("name")),
        "date" => read_date(element),
        "color" => named("value"),
        "" => text,
        kind => {
            let said = first_text(element, &["text", "title", "name", "fallback"]);
            let said = format_link(&said, &named("url"));
            if said.is_empty() { note_unknown(kind) } else { said }
        }
    }
}

fn read_date(element: &Value) -> String {
    let fallback = text_of(&element["fallback"]);
    format_date(element["timestamp"].as_i64(), fallback.trim(), &text_of(&element["url"]))
}
