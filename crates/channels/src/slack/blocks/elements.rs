//! Images and interactive elements of blocks.

use serde_json::Value;

use super::{first_text, join_texts, read_text_object, text_of, unknown::gather_texts};
use crate::slack::mrkdwn::{Reader, format_date, format_link};

/// Whether this is an interactive element.
pub fn is_element(kind: &str) -> bool {
    ["button", "buttons", "select", "picker", "_input", "checkboxes", "overflow"]
        .iter()
        .any(|end| kind.ends_with(end))
}

/// The label of an image or an interactive element.
pub fn read_element(element: &Value, reader: &mut Reader<'_>, depth: usize) -> String {
    match element["type"].as_str().unwrap_or_default() {
        "mrkdwn" | "plain_text" => read_text_object(element, reader),
        "image" => {
            let said = [read_text_object(&element["title"], reader), text_of(&element["alt_text"])];
            let said = if said[0].is_empty() { &said[1] } else { &said[0] };
            let address = first_text(element, &["image_url"]);
            let address = if address.is_empty() { text_of(&element["slack_file"]["url"]) } else { address };
            format!("[An image: {}]", format_link(said, &address))
        }
        "" => String::new(),
        _ => {
            let label = read_text_object(&element["text"], reader);
            let label =
                if label.is_empty() { read_text_object(&element["placeholder"], reader) } else { label };
            let address = text_of(&element["url"]);
            let options = [
                read_options(&element["options"], reader),
                read_option_groups(&element["option_groups"], reader),
            ];
            let options = options.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join("; ");
            let chosen = read_selection(element, reader);
            let options = match (options.is_empty(), chosen.is_empty()) {
                (_, true) => options,
                (true, false) => chosen,
                (false, false) => format!("{options}; chosen: {chosen}"),
            };
            match (label.is_empty(), options.is_empty()) {
                (true, true) => gather_texts(element, reader, depth + 1),
                (false, true) => format!("[{}]", format_link(&label, &address)),
                (true, false) => format!("[{options}]"),
                (false, false) => format!("[{label}: {options}]"),
            }
        }
    }
}

/// The options, with their descriptions.
fn read_options(options: &Value, reader: &mut Reader<'_>) -> String {
    let mut option = |option: &Value| {
        let said = format_link(&read_text_object(&option["text"], reader), &text_of(&option["url"]));
        let more = read_text_object(&option["description"], reader);
        if more.is_empty() { said } else { format!("{said} ({more})") }
    };
    join_texts(options, |one| option(one), ", ")
}

fn read_option_groups(groups: &Value, reader: &mut Reader<'_>) -> String {
    let mut group = |group: &Value| {
        let (label, options) =
            (read_text_object(&group["label"], reader), read_options(&group["options"], reader));
        if label.is_empty() { options } else { format!("{label}: {options}") }
    };
    join_texts(groups, |one| group(one), "; ")
}

/// The preselected options.
fn read_selection(element: &Value, reader: &mut Reader<'_>) -> String {
    let simple = [
        "initial_date",
        "initial_time",
        "initial_value",
        "initial_user",
        "initial_channel",
        "initial_conversation",
    ];
    let said = [
        first_text(element, &simple),
        read_moment(&element["initial_date_time"]),
        read_text_object(&element["initial_option"]["text"], reader),
        join_texts(&element["initial_options"], |option| read_text_object(&option["text"], reader), ", "),
    ];
    said.into_iter().find(|said| !said.is_empty()).unwrap_or_default()
}

fn read_moment(at: &Value) -> String {
    format_date(at.as_i64(), "", "")
}
