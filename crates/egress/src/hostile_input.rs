//! No input from agents, models or servers crashes the process, even on a stack as small as a worker's.

use http::{HeaderMap, HeaderValue};

use crate::{
    bounds, client_hello, encoding,
    fields::{Fields, each},
    forward, model, queries,
};

/// From this size on, each nest and token is tried in one form only: depth and length matter here.
const LARGE: usize = 512 * 1024;

/// Nests, repetitions and long tokens, complete and truncated, of about this size.
fn hostile(size: usize) -> Vec<Vec<u8>> {
    let nests = [("[", "]"), ("{\"a\":", "}"), ("[{\"usage\":", "}]"), ("{\"params\":[", "]}")];
    let mut all = Vec::new();
    for (open, close) in nests {
        let levels = size / (open.len() + close.len());
        let begun = open.repeat(levels);
        all.push(format!("{begun}1{}", close.repeat(levels)));
        all.push(format!("{{\"model\":\"m\",\"messages\":{begun}1{}}}", close.repeat(levels)));
        all.push(format!("data: {{\"usage\":{begun}1{}}}\n\n", close.repeat(levels)));
        all.push(begun);
    }
    for token in [
        "\"",
        "\\u0061",
        "a",
        "1",
        "%25",
        "&a=",
        ";",
        "?",
        "data:",
        "data: usage\n",
        "\r",
        "\r\n\r\n",
        "\u{feff}",
        "\0",
        ":",
        " ",
    ] {
        let repeated = token.repeat(size / token.len());
        all.push(format!("{{\"usage\":\"{repeated}\",\"model\":{repeated}}}"));
        all.push(format!("{{\"{repeated}\":1,\"usage\":{{\"prompt_tokens\":1{repeated}}}}}"));
        all.push(format!("event: endpoint\ndata: {repeated}\n\n"));
        all.push(repeated);
    }
    if size >= LARGE {
        let chosen = all.into_iter().enumerate().filter(|(nth, _)| nth % 4 == nth / 4 % 4);
        all = chosen.map(|(_, text)| text).collect();
    }
    all.push((0..size / 8).map(|name| format!("\"{name}\":0,")).collect());
    let mut all: Vec<Vec<u8>> = all.into_iter().map(String::into_bytes).collect();
    all.push([&[0x16, 3, 1, 0x40, 0][..], &vec![1; size]].concat());
    all.push([&[0x16, 3, 1, 0, 1][..], &vec![0x16; size]].concat());
    all.push(vec![0xff; size]);
    all
}

fn parse(bytes: &[u8]) {
    let head = &bytes[..bytes.len().min(bounds::TEXT)];
    let text = String::from_utf8_lossy(head);
    if let Some(fields) = Fields::read(bytes) {
        assert!(fields.write(bytes.len()).len() <= 8 * bytes.len() + 64);
        fields.misspells(&["method", "params", "usage"]);
        for name in ["usage", "params", "messages", "model"] {
            _ = (fields.value(name), fields.text(name), fields.within(name).is_some());
        }
    }
    each(bytes, |_| ());
    _ = encoding::check_body(bytes);
    forward::leads_upwards(&text);
    queries::joined(Some("a=1&b=2"), &text, Some(&text));
    if let Ok(value) = HeaderValue::from_bytes(head) {
        let names = ["content-type", "content-encoding", "retry-after", "anthropic-ratelimit-unified-reset"];
        let headers: HeaderMap =
            names.map(|name| (http::HeaderName::from_static(name), value.clone())).into_iter().collect();
        _ = encoding::check_head(&headers);
        model::read_refusal(&headers, b"");
    }
    model::read_refusal(&HeaderMap::new(), bytes);
    model::read_all(bytes);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for port in [443, 80] {
        let said = runtime.block_on(client_hello::read_first_bytes(&mut &bytes[..], "files.test", port));
        assert!(said.is_err() || port == 80, "nothing of this is a hello");
    }
}

#[test]
fn no_parser_of_the_gate_crashes_on_hostile_input() {
    for size in [1024, 16 * 1024, LARGE] {
        let all = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(move || {
            for bytes in hostile(size) {
                parse(&bytes);
            }
        });
        all.unwrap().join().unwrap();
    }
}
