//! People's messages as parts of a prompt.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    Annotations, ContentBlock, ImageContent, ResourceLink, Role, TextContent,
};
use muster_protocol::plan::Part;

/// The parts of a prompt. Files are stored in the agent's home and linked, which every agent understands; pictures are
/// also embedded for agents that accept them. With several authors, each text starts with its author's name.
pub fn blocks(
    parts: &[Part],
    is_shared: bool,
    takes_images: bool,
    keep: impl Fn(&Part) -> Option<PathBuf>,
) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    for part in parts {
        match part {
            Part::Text { author: Some(author), text } if is_shared => {
                blocks.push(text_block(format!("{author}: {text}")));
            }
            Part::Text { text, .. } => blocks.push(text_block(text.clone())),
            Part::Note { text } => blocks.push(agent_note(text.clone())),
            Part::File { filename, mime_type, size_bytes, base64 } => {
                let Some(path) = keep(part) else {
                    let text = format!(
                        "[The file {filename} ({mime_type}, {size_bytes} bytes) is not available here.]"
                    );
                    blocks.push(text_block(text));
                    continue;
                };
                if let Some(data) =
                    base64.as_ref().filter(|_| takes_images && mime_type.starts_with("image/"))
                {
                    blocks.push(ContentBlock::Image(ImageContent::new(data.clone(), mime_type.clone())));
                }
                let uri = url::Url::from_file_path(&path)
                    .map_or_else(|()| path.display().to_string(), String::from);
                let link =
                    ResourceLink::new(filename.clone(), uri).mime_type(mime_type.clone()).size(*size_bytes);
                blocks.push(ContentBlock::ResourceLink(link));
            }
        }
    }
    blocks
}

fn text_block(text: String) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// A text for the agent only, not to be shown to people.
pub fn agent_note(text: String) -> ContentBlock {
    let annotations = Annotations::new().audience(vec![Role::Assistant]);
    ContentBlock::Text(TextContent::new(text).annotations(annotations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(author: &str, text: &str) -> Part {
        Part::Text { author: Some(author.to_owned()), text: text.to_owned() }
    }

    #[test]
    fn authors_are_named_if_there_are_several() {
        let said = |parts: &[Part], is_shared| {
            serde_json::to_value(blocks(parts, is_shared, false, |_| None)).unwrap()
        };
        assert_eq!(said(&[text("Ada", "Hi")], false)[0]["text"], "Hi");
        assert_eq!(said(&[text("Ada", "Hi"), text("Bob", "Ho")], true)[1]["text"], "Bob: Ho");
        assert_eq!(said(&[text("Bob", "Ho")], true)[0]["text"], "Bob: Ho", "after Ada's turn");
    }

    #[test]
    fn a_note_is_only_for_the_agent() {
        let parts = [Part::Note { text: "Careful.".to_owned() }, text("Ada", "Hi")];
        let shown = serde_json::to_value(blocks(&parts, false, false, |_| None)).unwrap();
        assert_eq!(
            (&shown[0]["text"], &shown[0]["annotations"]["audience"]),
            (&"Careful.".into(), &serde_json::json!(["assistant"]))
        );
        assert_eq!((&shown[1]["text"], &shown[1]["annotations"]), (&"Hi".into(), &serde_json::Value::Null));
    }

    #[test]
    fn a_file_is_linked_and_a_picture_shown_to_agents_that_take_it() {
        let file = |base64: Option<&str>| Part::File {
            filename: "a b.png".to_owned(),
            mime_type: "image/png".to_owned(),
            size_bytes: 3,
            base64: base64.map(str::to_owned),
        };
        let kept = |part: &Part| {
            matches!(part, Part::File { base64: Some(_), .. }).then(|| PathBuf::from("/inbox/a b.png"))
        };
        let shown = serde_json::to_value(blocks(&[file(Some("AAAA"))], false, true, kept)).unwrap();
        assert_eq!(
            (&shown[0]["type"], &shown[1]["uri"]),
            (&"image".into(), &"file:///inbox/a%20b.png".into())
        );
        let named = serde_json::to_value(blocks(&[file(None)], false, true, kept)).unwrap();
        assert!(named[0]["text"].as_str().unwrap().contains("not available"));
    }
}
