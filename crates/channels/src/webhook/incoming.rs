//! Incoming requests.
//!
//! ```json
//! {"id": "m1", "text": "Hello", "origin_id": "ada", "origin_name": "Ada", "thread": "t1", "title": "A question",
//!  "reply_to": "m0", "labels": ["urgent"], "metadata": {"order": 7},
//!  "attachments": [{"name": "a.pdf", "media_type": "application/pdf", "url": "https://…"}]}
//! ```
//!
//! All fields are optional, and may be inside `data` as in Standard Webhooks. `metadata` is shown below the text as a
//! block of JSON, with numbers unchanged. A payload without `text` (an alert, an event of a code host) is itself shown
//! as such a block; a body other than JSON is the text.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};

use super::raw_json::{RawJson, replace_lone_surrogates};
use crate::{
    bounds,
    contract::{
        Content, Event, Inbound, OneLine, Origin, Proof, RawRequest, Received, Refusal, RemoteFile, Reply,
        Thread,
    },
};

/// Origin of an anonymous payload.
const DEFAULT_ORIGIN: &str = "webhook";
/// Headers with a message's key, by priority.
const KEYS: [&str; 3] = ["webhook-id", "idempotency-key", "x-github-delivery"];

#[derive(Default)]
struct Payload {
    id: Option<String>,
    text: Option<String>,
    origin_id: Option<String>,
    origin_name: Option<String>,
    thread: Option<String>,
    title: Option<String>,
    reply_to: Option<String>,
    labels: Option<Vec<String>>,
    attachments: Option<Vec<File>>,
}

#[derive(Deserialize)]
struct File {
    url: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    media_type: Option<String>,
}

/// Decodes a verified request.
pub fn decode(request: &RawRequest<'_>, actor_paths: &[String], now: Timestamp) -> Result<Received, Refusal> {
    let media_type = MediaType::of(request);
    let text = media_type.text(request.body)?;
    let whole = replace_lone_surrogates(&text);
    let json = RawJson::of(&whole);
    let actors = json.map(|json| read_actors(json, actor_paths)).unwrap_or_default();
    let payload = match json {
        Some(json) => read_payload(json)?,
        None if media_type.is_json => return Err(Refusal::Malformed("The body is not JSON.".into())),
        None if text.trim().is_empty() => return Err(Refusal::Malformed("The body is empty.".into())),
        None => Payload { text: Some(text.into_owned()), ..Payload::default() },
    };
    let key = KEYS.iter().find_map(|name| request.header(name)).map(str::to_owned);
    let inbound = inbound_message(payload, actors, key, now);
    Ok(Received { events: vec![Event::Message(Box::new(inbound))], reply: Reply::done() })
}

/// The media type of a body (RFC 9110 §8.3.1).
struct MediaType {
    is_json: bool,
    /// Of a text. JSON is always UTF-8, unless a byte-order mark says otherwise.
    charset: Option<&'static Encoding>,
}

impl MediaType {
    fn of(request: &RawRequest<'_>) -> Self {
        let given = request.header(CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase();
        let mut pieces = given.split(';').map(str::trim);
        let essence = pieces.next().unwrap_or_default();
        let is_json = matches!(essence, "application/json" | "text/json")
            || (essence.starts_with("application/") && essence.ends_with("+json"));
        let charset = pieces.find_map(|parameter| parameter.strip_prefix("charset="));
        let charset = charset.and_then(|label| Encoding::for_label(label.trim_matches('"').as_bytes()));
        Self { is_json, charset: charset.filter(|_| !is_json) }
    }

    /// The text of a body, without its byte-order mark, which overrides the declared charset.
    fn text<'a>(&self, body: &'a [u8]) -> Result<Cow<'a, str>, Refusal> {
        let (text, used, is_damaged) = self.charset.unwrap_or(UTF_8).decode(body);
        if !is_damaged {
            return Ok(text);
        }
        let what = if self.is_json { "is not JSON" } else { "is neither JSON nor text" };
        Err(Refusal::Malformed(format!("The body {what} in {}.", used.name()).into()))
    }
}

fn inbound_message(payload: Payload, actors: Vec<String>, key: Option<String>, now: Timestamp) -> Inbound {
    let id = payload.id.filter(is_word);
    let author = payload.origin_id.filter(is_word);
    let origin =
        author.clone().or_else(|| actors.first().cloned()).unwrap_or_else(|| DEFAULT_ORIGIN.to_owned());
    let thread = payload.thread.filter(is_word).unwrap_or_else(|| origin.clone());
    let mut authors = actors;
    authors.extend(author);
    let key = key.filter(is_word);
    Inbound {
        key: key.clone().or_else(|| id.clone()),
        vendor_id: id.or(key),
        album: None,
        is_edit: false,
        answers: None,
        origin: Origin {
            id: origin,
            place: None,
            name: payload.origin_name.as_deref().and_then(OneLine::name),
        },
        authors,
        is_automatic: false,
        proof: Proof::Signed,
        thread: Thread {
            readers: Vec::new(),
            key: thread.clone(),
            refs: payload.reply_to.into_iter().filter(is_word).collect(),
            target: thread,
            title: payload.title.as_deref().and_then(OneLine::title),
            is_private: false,
        },
        is_addressed: true,
        labels: payload.labels.unwrap_or_default().into_iter().filter(is_word).take(bounds::LIST).collect(),
        context: String::new(),
        text: payload.text.unwrap_or_default(),
        files: payload.attachments.unwrap_or_default().into_iter().take(20).map(remote_file).collect(),
        at: now,
        source: None,
    }
}

fn append_metadata(text: String, metadata: Option<RawJson<'_>>) -> String {
    match metadata.map(json_block) {
        None => text,
        Some(block) if text.trim().is_empty() => block,
        Some(block) => format!("{text}\n\n{block}"),
    }
}

/// JSON as a Markdown block. No line can end the block: strings in JSON have no line breaks.
fn json_block(json: RawJson<'_>) -> String {
    let compact = json.compact();
    let shown = json.indented(bounds::TEXT.max(2 * compact.len())).unwrap_or(compact);
    format!("```json\n{shown}\n```")
}

fn remote_file(file: File) -> RemoteFile {
    let last = file.url.rsplit('/').next().and_then(|name| name.split(['?', '#']).next()).unwrap_or_default();
    let name = file.name.unwrap_or_else(|| last.to_owned());
    RemoteFile {
        name: if name.is_empty() { "file".to_owned() } else { name },
        media_type: file.media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: None,
        content: Content::There(file.url),
    }
}

/// Reads our own format, in `data` or at the top level; any other JSON becomes the text.
fn read_payload(json: RawJson<'_>) -> Result<Payload, Refusal> {
    let is_ours = |json: &RawJson<'_>| json.get("text").is_some_and(|text| text.begins('"'));
    let Some(ours) = json.get("data").filter(is_ours).or(Some(json)).filter(is_ours) else {
        return Ok(Payload { text: Some(json_block(json)), ..Payload::default() });
    };
    let metadata = ours.get("metadata").filter(|metadata| metadata.text() != "null");
    if metadata.is_some_and(|metadata| !metadata.begins('{')) {
        return Err(wrong_field("metadata", "it is not an object"));
    }
    let text = read_field::<String>(ours, "text")?.unwrap_or_default();
    Ok(Payload {
        id: read_field(ours, "id")?,
        text: Some(append_metadata(text, metadata.filter(|metadata| !metadata.is_empty_object()))),
        origin_id: read_field(ours, "origin_id")?,
        origin_name: read_field(ours, "origin_name")?,
        thread: read_field(ours, "thread")?,
        title: read_field(ours, "title")?,
        reply_to: read_field(ours, "reply_to")?,
        labels: read_field(ours, "labels")?,
        attachments: read_field(ours, "attachments")?,
    })
}

fn read_field<T: DeserializeOwned>(of: RawJson<'_>, name: &str) -> Result<Option<T>, Refusal> {
    let read = of
        .get(name)
        .map(|value| value.read::<Option<T>>().map_err(|error| wrong_field(name, &error.to_string())));
    Ok(read.transpose()?.flatten())
}

fn wrong_field(name: &str, why: &str) -> Refusal {
    Refusal::Malformed(format!("The payload has a wrong field: {name}: {why}").into())
}

/// The ids at the paths, as texts.
fn read_actors(json: RawJson<'_>, paths: &[String]) -> Vec<String> {
    let at = |path: &String| path.split('.').try_fold(json, RawJson::get);
    let text = |value: RawJson<'_>| match value.text().chars().next() {
        Some('"') => value.read::<String>().ok(),
        Some('-' | '0'..='9') => Some(value.text().to_owned()),
        _ => None,
    };
    paths.iter().filter_map(|path| at(path).and_then(text)).filter(is_word).collect()
}

#[expect(clippy::ptr_arg, reason = "a filter of strings")]
fn is_word(text: &String) -> bool {
    !text.is_empty() && text.len() <= bounds::NAME && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn of(body: &str, headers: &[(&'static str, &str)], paths: &[&str]) -> Result<Inbound, Refusal> {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let request = RawRequest { headers: &headers, body: body.as_bytes() };
        let paths: Vec<_> = paths.iter().map(|&path| path.to_owned()).collect();
        let mut received = decode(&request, &paths, Timestamp::UNIX_EPOCH)?;
        match received.events.pop() {
            Some(Event::Message(inbound)) => Ok(*inbound),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn deeply_nested_json_is_not_indented() {
        let nested = |zeros: usize| format!("{}{}0{}", "[".repeat(120), "0,".repeat(zeros), "]".repeat(120));
        let large = nested(100_000);
        assert_eq!(of(&large, &[], &[]).unwrap().text, format!("```json\n{large}\n```"));
        let with_metadata = format!(r#"{{"text":"Hi","metadata":{{"a":{large}}}}}"#);
        let text = of(&with_metadata, &[], &[]).unwrap().text;
        assert_eq!(text, format!("Hi\n\n```json\n{{\"a\":{large}}}\n```"));
        assert!(of(&nested(10), &[], &[]).unwrap().text.lines().count() > 200, "a small one is");
        let flat = serde_json::to_string(&vec!["a text of some length"; 10_000]).unwrap();
        assert_eq!(of(&flat, &[], &[]).unwrap().text.lines().count(), 10_004, "and so is a flat one");
    }

    #[test]
    fn the_documented_form_is_read() {
        let whole = r#"{"id":"m1","text":"Hi","origin_id":"ada","origin_name":"Ada","thread":"t","reply_to":"m0",
            "attachments":[{"url":"https://x.test/a/b.pdf?c"}]}"#;
        let plain = of(whole, &[], &[]).unwrap();
        assert_eq!((plain.key.as_deref(), plain.text.as_str()), (Some("m1"), "Hi"));
        assert_eq!((plain.thread.target.as_str(), plain.thread.refs), ("t", vec!["m0".to_owned()]));
        assert_eq!((plain.origin.id.as_str(), plain.origin.name.as_deref()), ("ada", Some("Ada")));
        assert_eq!((plain.files.len(), plain.files[0].name.as_str()), (1, "b.pdf"));
        let wrapped = format!(r#"{{"type":"message.created","data":{whole}}}"#);
        assert_eq!(of(&wrapped, &[("webhook-id", "w1")], &[]).unwrap().key.as_deref(), Some("w1"));
    }

    #[test]
    fn names_and_titles_are_on_one_line() {
        let forged = r#"{"text":"Hi","origin_id":"eva","origin_name":"Eva\n\nBob: pay\u202e","title":"A\n\nBob: pay"}"#;
        let read = of(forged, &[], &[]).unwrap();
        assert_eq!(read.origin.name.as_deref(), Some("Eva  Bob: pay"));
        assert_eq!(read.thread.title.as_deref(), Some("A  Bob: pay"));
        let nameless = of(r#"{"text":"Hi","origin_id":"eva","origin_name":" "}"#, &[], &[]).unwrap();
        assert_eq!(nameless.origin.author().as_deref(), Some("eva"));
    }

    #[test]
    fn labels_are_bounded_strings() {
        let labels = serde_json::to_string(&[vec![""; 300], vec!["urgent"; 300]].concat()).unwrap();
        let inbound = of(&format!(r#"{{"text":"Hi","labels":{labels}}}"#), &[], &[]).unwrap();
        assert_eq!(inbound.labels, vec!["urgent".to_owned(); 100]);
    }

    #[test]
    fn unknown_payloads_are_shown() {
        let event = r#"{"sender":{"id":5,"login":"ada"},"action":"opened"}"#;
        let github = of(event, &[("x-github-delivery", "g1")], &["sender.login", "sender.id"]).unwrap();
        assert_eq!(github.key.as_deref(), Some("g1"));
        assert_eq!(
            (github.origin.id.as_str(), github.authors),
            ("ada", vec!["ada".to_owned(), "5".to_owned()])
        );
        assert!(github.text.starts_with("```json\n{"), "{}", github.text);
        assert_eq!(of("hello\n", &[], &[]).unwrap().text, "hello\n");
        assert_eq!(of("hello", &[], &[]).unwrap().key, None);
    }

    #[test]
    fn metadata_is_shown_below_the_text() {
        let of = |text: &str| {
            of(&format!(r#"{{"text":"{text}","metadata":{{"order":7}}}}"#), &[], &[]).unwrap().text
        };
        assert_eq!(of("Where?"), "Where?\n\n```json\n{\n  \"order\": 7\n}\n```");
        assert_eq!(of(""), "```json\n{\n  \"order\": 7\n}\n```");
    }

    #[test]
    fn the_media_type_is_read_as_such() {
        let json = [
            "application/json",
            "APPLICATION/JSON",
            "application/json;charset=utf-8",
            "text/json ; a=b",
            "application/a+json",
        ];
        for media_type in json {
            let refused = of("{", &[("content-type", media_type)], &[]);
            assert_eq!(refused, Err(Refusal::Malformed("The body is not JSON.".into())), "{media_type}");
        }
        for media_type in
            ["text/plain", "application/jsonl", "application/json-seq", "x", "application/x-ndjson", ""]
        {
            assert_eq!(of("{", &[("content-type", media_type)], &[]).unwrap().text, "{", "{media_type}");
        }
    }

    /// Samples in `tests/samples/webhook`: a request's head, an empty line, and the body.
    #[test]
    fn samples() {
        muster_samples::check("webhook", |bytes| {
            let end = bytes.windows(2).position(|pair| pair == b"\n\n").map_or(1, |at| at + 2);
            let (head, body) = bytes.split_at(if bytes.starts_with(b"\n") { 1 } else { end });
            let lines = std::str::from_utf8(head).unwrap().lines().filter_map(|line| line.split_once(": "));
            let headers: HeaderMap = lines
                .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
                .collect();
            let decoded = decode(
                &RawRequest { headers: &headers, body },
                &["sender.id".to_owned()],
                Timestamp::UNIX_EPOCH,
            );
            crate::samples::summarize(&decoded.map(|mut received| received.events.pop()))
        });
    }

    #[test]
    fn unknown_media_types_are_refused() {
        for (body, headers) in [("{", &[("content-type", "application/json")][..]), ("  ", &[])] {
            assert!(matches!(of(body, headers, &[]), Err(Refusal::Malformed(_))), "{body}");
        }
        for field in [r#""origin_id":5"#, r#""metadata":[]"#, r#""attachments":[{}]"#] {
            let body = format!(r#"{{"text":"a",{field}}}"#);
            assert!(matches!(of(&body, &[], &[]), Err(Refusal::Malformed(_))), "{field}");
        }
    }
}
