//! The samples in `tests/samples/streams`: models' answers through a complete gate, and their usage.
//!
//! A sample starts with the requested path and the status, then the headers, an empty line, and the raw body. With the
//! header `x-breaks-off` the connection ends early.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use muster_protocol::spending::{ModelCall, Price};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    model::{lease, reported},
    support::{World, send},
};

/// The question, which reserves 1,000 output tokens under a budget.
const QUESTION: &str = r#"{"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"How many of the blue jackets are left?"}]}"#;
/// Number of splits of a body in two, in addition to the whole body and single bytes.
const CUTS: usize = 12;

struct Sample<'a> {
    path: &'a str,
    status: &'a str,
    headers: Vec<&'a str>,
    body: &'a [u8],
}

impl<'a> Sample<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap();
        let mut head = std::str::from_utf8(&bytes[..end]).unwrap().lines();
        let (path, status) = head.next().unwrap().split_once(' ').unwrap();
        Self { path, status, headers: head.collect(), body: &bytes[end + 2..] }
    }

    fn provider(&self) -> &'static str {
        match self.path {
            path if path.ends_with("messages") => "anthropic",
            path if path.contains("enerateContent") => "gemini",
            _ => "openai",
        }
    }

    /// The response's bytes, with its body in these pieces.
    fn sent(&self, pieces: &[&[u8]]) -> Vec<u8> {
        let breaks_off = |header: &&&str| header.starts_with("x-breaks-off");
        let headers = self.headers.iter().filter(|header| !breaks_off(header));
        let mut sent =
            format!("HTTP/1.1 {} X\r\nconnection: close\r\ntransfer-encoding: chunked\r\n", self.status);
        headers.for_each(|header| sent.push_str(&format!("{header}\r\n")));
        let mut sent = format!("{sent}\r\n").into_bytes();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            sent.extend(
                format!("{:x}\r\n", piece.len()).bytes().chain(piece.iter().copied()).chain(*b"\r\n"),
            );
        }
        if self.headers.iter().find(breaks_off).is_none() {
            sent.extend(b"0\r\n\r\n");
        }
        sent
    }

    /// The body in pieces: whole, in bytes, and in two parts.
    fn pieces(&self) -> Vec<Vec<&'a [u8]>> {
        let body = self.body;
        let mut all = vec![vec![body], body.chunks(1).collect()];
        // A step without a common factor reaches positions of every kind.
        let places = (1..=CUTS).map(|at| at * (body.len() / CUTS + 7919) % body.len().max(1));
        all.extend(places.map(|at| vec![&body[..at], &body[at..]]));
        all
    }
}

/// A model that sends the current response on each connection.
async fn model() -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, due) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<u8>>>::default());
    let said = Arc::clone(&due);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = said.lock().unwrap().clone();
            tokio::spawn(async move {
                hear(&mut stream).await;
                stream.write_all(&answer).await.unwrap();
                stream.shutdown().await.unwrap();
                // A connection closed with unread bytes is reset.
                _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
    });
    (port, due)
}

/// Reads the question.
async fn hear(stream: &mut TcpStream) {
    let mut heard = Vec::new();
    while !heard.ends_with(b"}") {
        stream.read_buf(&mut heard).await.unwrap();
    }
}

fn world(port: u16, provider: &str, is_metered: bool) -> World {
    let mut world = World::new();
    world.model(provider, port, "a-key-of-the-tests");
    world.plan.prices = vec![Price {
        model: "*".to_owned(),
        input: 1_000_000,
        output: 10_000_000,
        cache_read: Some(100_000),
        cache_write: Some(1_250_000),
    }];
    world.plan.metered = is_metered;
    if is_metered {
        world.host.leases.lock().unwrap().push_back(lease(1, None, Some(1_000_000_000)));
    }
    world.apply();
    world
}

/// The agent's response, and the reported call.
async fn asked(world: &World, sample: &Sample<'_>) -> (Value, ModelCall) {
    let before = world.host.calls().len();
    let request = Request::post(format!("/model/{}", sample.path)).header("content-type", "application/json");
    let answer = send(&world.socket(), request.body(Full::from(QUESTION)).unwrap()).await;
    let mut got = json!({ "status": answer.status().as_u16() });
    if let Some(again) = answer.headers().get("x-should-retry") {
        got["x-should-retry"] = again.to_str().unwrap().into();
    }
    let mut body = answer.into_body();
    let (mut heard, mut is_whole) = (Vec::new(), true);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => heard.extend(frame.into_data().unwrap_or_else(|_| Bytes::new())),
            Err(_) => is_whole = false,
        }
    }
    got["gets"] = match &heard[..] {
        all if all == sample.body && is_whole => "all of it".into(),
        all if all == sample.body => "all that came, and an error".into(),
        other => Value::from(String::from_utf8_lossy(other)),
    };
    let call = reported(world, before + 1).await.swap_remove(before);
    (got, call)
}

fn counted(call: &ModelCall) -> Value {
    let usage = &call.usage;
    let classes = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache_read", usage.cache_read),
        ("cache_write", usage.cache_write),
        ("cache_hour", call.cache_hour),
        ("cost_micro", usage.cost_micro),
    ];
    classes.into_iter().filter_map(|(name, count)| Some((name.to_owned(), Value::from(count?)))).collect()
}

async fn came_of_it(bytes: &[u8]) -> Value {
    let sample = Sample::read(bytes);
    let (port, due) = model().await;
    let (free, metered) = (world(port, sample.provider(), false), world(port, sample.provider(), true));
    let mut all = Vec::new();
    for pieces in sample.pieces() {
        *due.lock().unwrap() = sample.sent(&pieces);
        let (agent, call) = asked(&free, &sample).await;
        all.push(json!({ "agent": agent, "counted": counted(&call) }));
    }
    let different = all.iter().find(|one| **one != all[0]);
    assert_eq!(different, None, "{} is not read alike in all pieces; whole: {:#}", sample.path, all[0]);
    let mut came = all.swap_remove(0);
    *due.lock().unwrap() = sample.sent(&[sample.body]);
    let (_, call) = asked(&metered, &sample).await;
    let with_budget = counted(&call);
    if with_budget != came["counted"] {
        came["counted_with_a_budget"] = with_budget;
    }
    came
}

#[test]
fn samples() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    muster_samples::check("streams", |bytes| runtime.block_on(came_of_it(bytes)));
}
