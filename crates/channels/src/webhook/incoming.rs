//! What a request says.
//!
//! ```json
//! {"id": "m1", "text": "Hello", "origin_id": "ada", "origin_name": "Ada", "thread": "t1", "title": "A question",
//!  "reply_to": "m0", "labels": ["urgent"], "metadata": {"order": 7},
//!  "attachments": [{"name": "a.pdf", "media_type": "application/pdf", "url": "https://…"}]}
//! ```
//!
//! All of it is optional, and may stand in `data` as Standard Webhooks has it. `metadata` is shown below the text, as a block of
//! JSON. A payload without `text` (an alert, an event of a code host) becomes the text itself, as such a block; a body that is
//! not JSON is the text as it is.

use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::contract::{
    Content, Event, Inbound, Origin, Proof, RawRequest, Received, Refusal, RemoteFile, Reply, Thread,
};

/// Who wrote what names nobody.
const ANYBODY: &str = "webhook";
/// Headers that name a message, the best first.
const KEYS: [&str; 3] = ["webhook-id", "idempotency-key", "x-github-delivery"];
/// The longest id, name or title that is taken.
const LONGEST_WORD: usize = 300;
/// How long JSON may become by indentation, in bytes, unless that is less than twice its length.
const INDENTED: usize = 64 * 1024;
/// How many files one message may have.
const MOST_FILES: usize = 20;
/// How many labels a message may have.
const MOST_LABELS: usize = 100;

#[derive(Default, Deserialize)]
#[serde(default)]
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
    metadata: Option<Map<String, Value>>,
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
    let json: Option<Value> = muster_json::from_slice(request.body).ok();
    let actors = json.as_ref().map(|json| actors(json, actor_paths)).unwrap_or_default();
    let payload = match &json {
        Some(json) => of_json(json)?,
        None => Payload { text: Some(of_text(request)?), ..Payload::default() },
    };
    let key = KEYS.iter().find_map(|name| request.header(name)).map(str::to_owned);
    let inbound = inbound(payload, actors, key, now);
    Ok(Received { events: vec![Event::Message(Box::new(inbound))], reply: Reply::done() })
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
        answers: None,
        origin: Origin { id: origin, place: None, name: payload.origin_name.filter(is_word) },
        authors,
        is_automatic: false,
        proof: Proof::Signed,
        thread: Thread {
            readers: Vec::new(),
            key: thread.clone(),
            refs: payload.reply_to.into_iter().filter(is_word).collect(),
            target: thread,
            title: payload.title.filter(is_word),
            is_private: false,
        },
        is_addressed: true,
        labels: payload.labels.unwrap_or_default().into_iter().filter(is_word).take(MOST_LABELS).collect(),
        text: whole(payload.text.unwrap_or_default(), payload.metadata.unwrap_or_default()),
        files: payload.attachments.unwrap_or_default().into_iter().take(MOST_FILES).map(remote).collect(),
        at: now,
    }
}

/// A text, with its metadata below it.
fn whole(text: String, metadata: Map<String, Value>) -> String {
    if metadata.is_empty() {
        return text;
    }
    let block = block(&Value::Object(metadata));
    if text.trim().is_empty() { block } else { format!("{text}\n\n{block}") }
}

/// JSON as a block of markdown. No line of it can end the block: texts in it have no line breaks.
fn block(json: &Value) -> String {
    let compact = json.to_string();
    let shown = indented(json, INDENTED.max(2 * compact.len())).unwrap_or(compact);
    format!("```json\n{shown}\n```")
}

/// JSON on lines of its own, if that is not longer than so many bytes: what is nested deeply may consist of indentation alone.
fn indented(json: &Value, most: usize) -> Option<String> {
    let mut written = vec![0; most];
    let mut room = written.as_mut_slice();
    // There is an error where no room is left.
    serde_json::to_writer_pretty(&mut room, json).ok()?;
    let left = room.len();
    written.truncate(most - left);
    String::from_utf8(written).ok()
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
fn of_json(json: &Value) -> Result<Payload, Refusal> {
    let inner = json.get("data").filter(|data| data.get("text").is_some_and(Value::is_string));
    let payload = inner.unwrap_or(json);
    if payload.get("text").is_some_and(Value::is_string) {
        return serde_json::from_value(payload.clone())
            .map_err(|error| Refusal::Malformed(format!("The payload has a wrong field: {error}").into()));
    }
    Ok(Payload { text: Some(block(json)), ..Payload::default() })
}

fn of_text(request: &RawRequest<'_>) -> Result<String, Refusal> {
    if request.header(CONTENT_TYPE.as_str()).is_some_and(|given| given.starts_with("application/json")) {
        return Err(Refusal::Malformed("The body is not JSON.".into()));
    }
    match std::str::from_utf8(request.body) {
        Ok(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        Ok(_) => Err(Refusal::Malformed("The body is empty.".into())),
        Err(_) => Err(Refusal::Malformed("The body is neither JSON nor text in UTF-8.".into())),
    }
}

/// The ids at the paths, as texts.
fn actors(json: &Value, paths: &[String]) -> Vec<String> {
    let at = |path: &String| path.split('.').try_fold(json, |value, step| step_into(value, step));
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    paths.iter().filter_map(|path| at(path).and_then(text)).filter(is_word).collect()
}

fn step_into<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => value.get(step),
    }
}

#[expect(clippy::ptr_arg, reason = "a filter of strings")]
fn is_word(text: &String) -> bool {
    !text.is_empty() && text.len() <= LONGEST_WORD && !text.chars().any(char::is_control)
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
