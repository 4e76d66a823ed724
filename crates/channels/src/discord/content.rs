//! What a message shows beside its text.

use serde_json::Value;

use super::text::to_markdown;
use crate::quoting::{bracket_name, join_paragraphs, quote};

/// The text that an app writes in embeds and components. Those of people are previews of links.
pub fn app_text(raw: &Value, of_app: bool) -> String {
    if !of_app {
        return String::new();
    }
    let mut said: Vec<String> = list(&raw["embeds"]).map(embed_text).collect();
    collect_texts(&raw["components"], &mut said);
    join_paragraphs(&said.iter().map(String::as_str).collect::<Vec<_>>())
}

fn embed_text(embed: &Value) -> String {
    let fields =
        list(&embed["fields"]).map(|field| format!("{}: {}", text(&field["name"]), text(&field["value"])));
    let parts = [
        text(&embed["author"]["name"]),
        text(&embed["title"]),
        text(&embed["url"]),
        text(&embed["description"]),
        fields.collect::<Vec<_>>().join("\n"),
        text(&embed["footer"]["text"]),
    ];
    join_paragraphs(&parts.each_ref().map(String::as_str))
}

/// The texts of components, which may be nested: as deep as JSON is read.
fn collect_texts(components: &Value, to: &mut Vec<String>) {
    for component in list(components) {
        to.push(text(&component["content"]));
        collect_texts(&component["components"], to);
    }
}

/// Notes about stickers and polls.
pub fn notes(raw: &Value) -> String {
    let name = |value: &Value| bracket_name(value.as_str().unwrap_or_default());
    let stickers = list(&raw["sticker_items"])
        .map(|sticker| format!("[A sticker came with this message: {}]", name(&sticker["name"])));
    let poll = raw.get("poll").filter(|poll| poll.is_object()).map(|poll| {
        let answers =
            list(&poll["answers"]).map(|answer| format!("- {}", text(&answer["poll_media"]["text"])));
        let question = name(&poll["question"]["text"]);
        quote(&format!("A poll came with this message: {question}"), &answers.collect::<Vec<_>>().join("\n"))
    });
    stickers.chain(poll).collect::<Vec<_>>().join("\n\n")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    to_markdown(value.as_str().unwrap_or_default(), &[], &[])
}
