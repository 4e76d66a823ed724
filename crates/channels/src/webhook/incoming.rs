//! What a request says.
//!
//! ```json
//! {"id": "m1", "text": "Hello", "origin_id": "ada", "origin_name": "Ada", "thread": "t1", "title": "A question",
//!  "reply_to": "m0", "labels": ["urgent"], "metadata": {"order": 7},
//!  "attachments": [{"name": "a.pdf", "media_type": "application/pdf", "url": "https://…"}]}
//! ```
//!
//! All of it is optional, and may stand in `data` as Standard Webhooks has it. `metadata` is shown below the text, as a block of
//! JSON, with its numbers as they were sent. A payload without `text` (an alert, an event of a code host) becomes the text
//! itself, as such a block; a body that is not JSON is the text as it is.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};

use super::source::{Source, without_halves};
use crate::{
    bounds,
    contract::{
        Content, Event, Inbound, OneLine, Origin, Proof, RawRequest, Received, Refusal, RemoteFile, Reply,
        Thread,
    },
};

/// Who wrote what names nobody.
const ANYBODY: &str = "webhook";
/// Headers that name a message, the best first.
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

/// Decodes a request that was verified.
pub fn decode(request: &RawRequest<'_>, actor_paths: &[String], now: Timestamp) -> Result<Received, Refusal> {
    let media_type = MediaType::of(request);
    let text = media_type.text(request.body)?;
    let whole = without_halves(&text);
    let json = Source::of(&whole);
    let actors = json.map(|json| actors(json, actor_paths)).unwrap_or_default();
    let payload = match json {
        Some(json) => of_json(json)?,
        None if media_type.is_json => return Err(Refusal::Malformed("The body is not JSON.".into())),
        None if text.trim().is_empty() => return Err(Refusal::Malformed("The body is empty.".into())),
        None => Payload { text: Some(text.into_owned()), ..Payload::default() },
    };
    let key = KEYS.iter().find_map(|name| request.header(name)).map(str::to_owned);
    let inbound = inbound(payload, actors, key, now);
    Ok(Received { events: vec![Event::Message(Box::new(inbound))], reply: Reply::done() })
}

/// What a body is said to be (RFC 9110 §8.3.1).
struct MediaType {
    is_json: bool,
    /// Of a text. JSON is UTF-8, whatever is said, unless its first bytes say otherwise.
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

    /// The text of a body, without the mark of its byte order, which counts more than what is said.
    fn text<'a>(&self, body: &'a [u8]) -> Result<Cow<'a, str>, Refusal> {
        let (text, used, is_damaged) = self.charset.unwrap_or(UTF_8).decode(body);
        if !is_damaged {
            return Ok(text);
        }
        let what = if self.is_json { "is not JSON" } else { "is neither JSON nor text" };
        Err(Refusal::Malformed(format!("The body {what} in {}.", used.name()).into()))
    }
}

fn inbound(payload: Payload, actors: Vec<String>, key: Option<String>, now: Timestamp) -> Inbound {
    let id = payload.id.filter(is_word);
    let author = payload.origin_id.filter(is_word);
    let origin = author.clone().or_else(|| actors.first().cloned()).unwrap_or_else(|| ANYBODY.to_owned());
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
        files: payload.attachments.unwrap_or_default().into_iter().take(20).map(remote).collect(),
        at: now,
        source: None,
    }
}

/// A text, with its metadata below it.
fn with_metadata(text: String, metadata: Option<Source<'_>>) -> String {
    match metadata.map(block) {
        None => text,
        Some(block) if text.trim().is_empty() => block,
        Some(block) => format!("{text}\n\n{block}"),
    }
}

/// JSON as a block of markdown. No line of it can end the block: texts in it have no line breaks.
fn block(json: Source<'_>) -> String {
    let compact = json.compact();
    let shown = json.indented(bounds::TEXT.max(2 * compact.len())).unwrap_or(compact);
    format!("```json\n{shown}\n```")
}

fn remote(file: File) -> RemoteFile {
    let last = file.url.rsplit('/').next().and_then(|name| name.split(['?', '#']).next()).unwrap_or_default();
    let name = file.name.unwrap_or_else(|| last.to_owned());
    RemoteFile {
        name: if name.is_empty() { "file".to_owned() } else { name },
        media_type: file.media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: None,
        content: Content::There(file.url),
    }
}

/// Our own form, in `data` or by itself; anything else is shown as it is.
fn of_json(json: Source<'_>) -> Result<Payload, Refusal> {
    let is_ours = |json: &Source<'_>| json.get("text").is_some_and(|text| text.begins('"'));
    let Some(ours) = json.get("data").filter(is_ours).or(Some(json)).filter(is_ours) else {
        return Ok(Payload { text: Some(block(json)), ..Payload::default() });
    };
    let metadata = ours.get("metadata").filter(|metadata| metadata.text() != "null");
    if metadata.is_some_and(|metadata| !metadata.begins('{')) {
        return Err(wrong("metadata", "it is not an object"));
    }
    let text = field::<String>(ours, "text")?.unwrap_or_default();
    Ok(Payload {
        id: field(ours, "id")?,
        text: Some(with_metadata(text, metadata.filter(|metadata| !metadata.is_empty_object()))),
        origin_id: field(ours, "origin_id")?,
        origin_name: field(ours, "origin_name")?,
        thread: field(ours, "thread")?,
        title: field(ours, "title")?,
        reply_to: field(ours, "reply_to")?,
        labels: field(ours, "labels")?,
        attachments: field(ours, "attachments")?,
    })
}

fn field<T: DeserializeOwned>(of: Source<'_>, name: &str) -> Result<Option<T>, Refusal> {
    let read =
        of.get(name).map(|value| value.read::<Option<T>>().map_err(|error| wrong(name, &error.to_string())));
    Ok(read.transpose()?.flatten())
}

fn wrong(name: &str, why: &str) -> Refusal {
    Refusal::Malformed(format!("The payload has a wrong field: {name}: {why}").into())
}

/// The ids at the paths, as texts.
fn actors(json: Source<'_>, paths: &[String]) -> Vec<String> {
    let at = |path: &String| path.split('.').try_fold(json, Source::get);
    let text = |value: Source<'_>| match value.text().chars().next() {
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
    fn deeply_nested_json_is_not_indented_where_that_makes_it_many_times_longer() {
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
    fn our_own_form() {
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
    fn labels_are_words_and_not_many() {
        let labels = serde_json::to_string(&[vec![""; 300], vec!["urgent"; 300]].concat()).unwrap();
        let inbound = of(&format!(r#"{{"text":"Hi","labels":{labels}}}"#), &[], &[]).unwrap();
        assert_eq!(inbound.labels, vec!["urgent".to_owned(); 100]);
    }

    #[test]
    fn what_others_send_is_shown() {
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

    /// The samples of `tests/samples/webhook`: a request's head, an empty line, and its body.
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
            crate::samples::of(&decoded.map(|mut received| received.events.pop()))
        });
    }

    #[test]
    fn what_is_neither_is_refused() {
        for (body, headers) in [("{", &[("content-type", "application/json")][..]), ("  ", &[])] {
            assert!(matches!(of(body, headers, &[]), Err(Refusal::Malformed(_))), "{body}");
        }
        for field in [r#""origin_id":5"#, r#""metadata":[]"#, r#""attachments":[{}]"#] {
            let body = format!(r#"{{"text":"a",{field}}}"#);
            assert!(matches!(of(&body, &[], &[]), Err(Refusal::Malformed(_))), "{field}");
        }
    }
}
