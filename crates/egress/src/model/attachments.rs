//! Content that a question adds beyond its own bytes: referenced files, answers and addresses that the provider reads,
//! and pictures, whose bytes say little about their cost.

use serde::de::Error;

use super::visitor::{JsonVisitor, visit};
use crate::{bounds, fields};

/// The largest context window of priced models, in tokens: an upper bound for a short question with a long reference.
const WINDOW: i64 = 1_048_576;

/// Fields (as normalized by [`fields::plain`]) whose text refers to content that the provider stores or fetches.
const REFERENCES: [&str; 15] = [
    "cachedcontent",
    "connectorid",
    "container",
    "containerid",
    "conversation",
    "conversationid",
    "fileid",
    "fileids",
    "filesearchstorenames",
    "fileuri",
    "gcsuri",
    "previousresponseid",
    "serverurl",
    "vectorstoreid",
    "vectorstoreids",
];
/// Fields with an address, or with inline content as `data:`.
const ADDRESSES: [&str; 8] =
    ["audiourl", "documenturl", "filedata", "fileurl", "imageurl", "uri", "url", "videourl"];
/// Fields whose object is referenced by id.
const KEPT: [&str; 3] = ["audio", "conversation", "prompt"];
/// Fields with a media type.
const MEDIA: [&str; 2] = ["mediatype", "mimetype"];
/// Objects that the provider passes to the model as text: tool inputs and their schemas.
const TEXT: [&str; 13] = [
    "args",
    "arguments",
    "input",
    "inputschema",
    "metadata",
    "outputschema",
    "parameters",
    "parametersjsonschema",
    "properties",
    "response",
    "responsejsonschema",
    "responseschema",
    "schema",
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachments {
    /// Content of unknown size.
    anything: bool,
    /// Number of pictures.
    pictures: i64,
    /// Sound, which has another price than text.
    pub sound: bool,
}

impl Attachments {
    /// Scans a question. One that can't be scanned may add anything.
    pub fn scan(question: &str) -> Self {
        let mut found = Self::default();
        if visit(question, &mut found, Position { name: Name::Other, is_nested: false }).is_err() {
            found.anything = true;
        }
        found
    }

    /// Upper bound of added tokens. A picture counts 50,000, as with the most expensive model.
    pub fn tokens(self) -> i64 {
        if self.anything { WINDOW } else { self.pictures.saturating_mul(50_000).min(WINDOW) }
    }

    fn media(&mut self, kind: &str) {
        let kind = kind.trim().to_ascii_lowercase();
        match kind.split('/').next().unwrap_or_default() {
            "image" => self.pictures += 1,
            "text" => {}
            _ if kind == "application/json" => {}
            class => {
                self.sound |= class == "audio";
                self.anything = true;
            }
        }
    }

    fn address(&mut self, text: &str) {
        match text.trim_start().split_once(':') {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("data") => {
                let kind = rest.split([';', ',']).next().unwrap_or_default();
                self.media(if kind.is_empty() { "text/plain" } else { kind });
            }
            _ => self.anything |= !text.trim().is_empty(),
        }
    }
}

/// Meaning of a field's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Reference,
    Address,
    Kept,
    Media,
    Id,
    Type,
    Sound,
    Text,
    Other,
}

impl Name {
    fn of(name: &str, is_nested: bool) -> Self {
        if name.len() > bounds::NAME {
            return Self::Other;
        }
        let name = fields::plain(name);
        let is_in = |names: &[&str]| names.contains(&name.as_str());
        match name.as_str() {
            // At the top level some interfaces put the whole question there.
            _ if is_nested && is_in(&TEXT) => Self::Text,
            "metadata" => Self::Text,
            "id" => Self::Id,
            "type" => Self::Type,
            "inputaudio" => Self::Sound,
            "urlcontext" => Self::Reference,
            _ if is_in(&KEPT) => Self::Kept,
            _ if is_in(&REFERENCES) => Self::Reference,
            _ if is_in(&ADDRESSES) => Self::Address,
            _ if is_in(&MEDIA) => Self::Media,
            _ => Self::Other,
        }
    }
}

/// Position of a value.
#[derive(Clone, Copy)]
pub struct Position {
    name: Name,
    is_nested: bool,
}

impl JsonVisitor for Attachments {
    type Position = Position;

    fn text<E: Error>(&mut self, position: Position, text: &str) -> Result<(), E> {
        match position.name {
            Name::Reference | Name::Kept => self.anything |= !text.is_empty(),
            Name::Address => self.address(text),
            Name::Media => self.media(text),
            Name::Type if text == "item_reference" || text.starts_with("web_fetch") => self.anything = true,
            _ => {}
        }
        Ok(())
    }

    fn object(&mut self, position: Position) -> bool {
        match position.name {
            Name::Sound => (self.sound, self.anything) = (true, true),
            Name::Reference => self.anything = true,
            _ => {}
        }
        position.name != Name::Text
    }

    fn field<E: Error>(&mut self, object: Position, name: &str) -> Result<Position, E> {
        let name = match Name::of(name, object.is_nested) {
            Name::Id if object.name == Name::Kept => Name::Reference,
            name => name,
        };
        Ok(Position { name, is_nested: true })
    }

    fn item(&self, list: Position) -> Position {
        Position { is_nested: true, ..list }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(question: &str) -> i64 {
        Attachments::scan(question).tokens()
    }

    #[test]
    fn a_reference_may_fill_the_window() {
        let content = |part: &str| format!(r#"{{"messages":[{{"role":"user","content":[{part}]}}]}}"#);
        for part in [
            r#"{"type":"file","file":{"file_id":"file-7"}}"#,
            r#"{"type":"input_file","file_id":"file-7"}"#,
            r#"{"type":"input_file","File_Id":"file-7"}"#,
            r#"{"type":"input_file","file_\u0069d":"file-7"}"#,
            r#"{"type":"input_file","file_url":"https://h.example/a.pdf"}"#,
            r#"{"type":"image_url","image_url":{"url":"https://h.example/a.png"}}"#,
            r#"{"type":"input_image","image_url":"https://h.example/a.png"}"#,
            r#"{"type":"image","source":{"type":"url","url":"https://h.example/a.png"}}"#,
            r#"{"type":"document","source":{"type":"file","file_id":"file_7"}}"#,
            r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}}"#,
            r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,x"}}"#,
            r#"{"fileData":{"fileUri":"files/7"}}"#,
            r#"{"file_data":{"file_uri":"gs://b/7"}}"#,
            r#"{"inlineData":{"mimeType":"video/mp4","data":"x"}}"#,
            r#"{"type":"item_reference","id":"msg_7"}"#,
            r#"{"type":"container_upload","file_id":"file_7"}"#,
            r#"{"role":"assistant","audio":{"id":"audio_7"}}"#,
            r#"{"type":"input_audio","input_audio":{"data":"x","format":"mp3"}}"#,
        ] {
            assert_eq!(tokens(&content(part)), WINDOW, "{part}");
        }
        for field in [
            r#""previous_response_id":"resp_7""#,
            r#""conversation":"conv_7""#,
            r#""conversation":{"id":"conv_7"}"#,
            r#""prompt":{"id":"pmpt_7"}"#,
            r#""cachedContent":"cachedContents/7""#,
            r#""input":[{"type":"item_reference","id":"msg_7"}]"#,
            r#""input":[{"content":[{"type":"input_file","file_id":"file-7"}]}]"#,
            r#""mcp_servers":[{"type":"url","url":"https://h.example/mcp"}]"#,
            r#""tools":[{"type":"file_search","vector_store_ids":["vs_7"]}]"#,
            r#""tools":[{"urlContext":{}}]"#,
            r#""tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]"#,
        ] {
            assert_eq!(tokens(&format!("{{{field}}}")), WINDOW, "{field}");
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(tokens(&deep), WINDOW, "too deep to scan");
    }

    #[test]
    fn plain_content_adds_nothing() {
        for field in [
            r#""messages":[{"role":"user","content":"https://h.example/a.png file_id"}]"#,
            r#""messages":[{"content":[{"type":"tool_use","name":"fetch","input":{"url":"https://h.example"}}]}]"#,
            r#""contents":[{"parts":[{"functionCall":{"name":"f","args":{"file_id":"7"}}}]}]"#,
            r#""contents":[{"parts":[{"functionResponse":{"name":"f","response":{"url":"https://h.example"}}}]}]"#,
            r#""tools":[{"name":"f","input_schema":{"properties":{"url":{"type":"string"},"file_id":{"type":"string"}}}}]"#,
            r#""previous_response_id":null,"conversation":null,"file_ids":[]"#,
            r#""input":"https://h.example","metadata":{"url":"x"}"#,
            r#""audio":{"voice":"alloy"},"messages":[]"#,
            r#""messages":[{"content":[{"source":{"type":"text","media_type":"text/plain","data":"x"}}]}]"#,
        ] {
            assert_eq!(Attachments::scan(&format!("{{{field}}}")), Attachments::default(), "{field}");
        }
    }

    #[test]
    fn pictures_and_sound_are_seen() {
        let inline = r#"{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,x"}},
            {"source":{"type":"base64","media_type":"image/png","data":"x"}},{"inlineData":{"mimeType":"IMAGE/jpeg"}}]}]}"#;
        assert_eq!(tokens(inline), 3 * 50_000);
        for sound in [r#"{"input_audio":{"data":"x"}}"#, r#"{"inlineData":{"mime_type":"audio/wav"}}"#] {
            assert!(
                Attachments::scan(&format!("{{\"messages\":[{{\"content\":[{sound}]}}]}}")).sound,
                "{sound}"
            );
        }
    }
}
