//! The gate's latency and throughput. The figures are in docs/performance.md.

use std::{
    process::{Child, Command},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, future::join_all};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::rt::TokioIo;
use muster_shim::args::Gate;
use serde_json::json;
use tokio::net::TcpStream;

use crate::{
    servers::{Server, body, plainly},
    support::World,
    tools::shim,
};

/// The agent's end of the gate, on a port of this machine.
struct Relay(Child, u16);

impl Relay {
    async fn start(world: &World) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let gate = Gate { socket: world.socket(), port };
        let args = ["gate".into(), gate.socket.clone().into_os_string(), port.to_string().into()];
        let child = Command::new(shim()).args(args).args(["--", "sleep", "600"]).spawn().unwrap();
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self(child, port)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

async fn sender(port: u16) -> Sender {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn question(path: &str) -> Request<Full<Bytes>> {
    let json = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "x".repeat(2000) }] });
    Request::post(path).header("host", "127.0.0.1").body(Full::from(json.to_string())).unwrap()
}

/// Median time from a question to its complete answer, of 500 in sequence.
async fn median(sender: &mut Sender, path: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..500 {
        sender.ready().await.unwrap();
        let begun = Instant::now();
        let answer = sender.send_request(question(path)).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.unwrap();
        times.push(begun.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: cargo nextest run --release -p muster-egress --run-ignored only --no-capture"]
async fn added_latency() {
    let server = Server::start(plainly(|_| {
        let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
        Response::builder().header("content-type", "text/event-stream").body(body(usage)).unwrap()
    }))
    .await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    let relay = Relay::start(&world).await;
    let (mut direct, mut through) = (sender(server.port).await, sender(relay.1).await);
    let direct = median(&mut direct, "/chat/completions").await;
    let through = median(&mut through, "/model/chat/completions").await;
    let added = through.saturating_sub(direct);
    println!("median: {direct:?} without, {through:?} with the relay and the gate: {added:?} more");
    assert!(added < Duration::from_millis(2), "{added:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_streams_at_once() {
    const STREAMS: usize = 500;
    const EVENTS: usize = 5;
    // Streams continue only once all have started.
    let all = std::sync::Arc::new(tokio::sync::Barrier::new(STREAMS));
    let server = Server::start(std::sync::Arc::new(move |_| {
        let all = std::sync::Arc::clone(&all);
        let events = futures::stream::iter(0..EVENTS).then(move |at| {
            let all = std::sync::Arc::clone(&all);
            async move {
                if at == 1 {
                    all.wait().await;
                }
                let usage = json!({ "usage": { "prompt_tokens": 1, "completion_tokens": at } });
                Ok(Frame::data(Bytes::from(format!("data: {usage}\n\n"))))
            }
        });
        let answer = Response::builder().header("content-type", "text/event-stream");
        Box::pin(std::future::ready(answer.body(StreamBody::new(events).boxed_unsync()).unwrap()))
    }))
    .await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    let relay = Relay::start(&world).await;
    let port = relay.1;
    let streams = join_all((0..STREAMS).map(|_| async move {
        let mut sender = sender(port).await;
        let answer = sender.send_request(question("/model/chat/completions")).await.unwrap();
        answer.into_body().collect().await.unwrap().to_bytes()
    }));
    let streams = tokio::time::timeout(Duration::from_secs(120), streams).await.expect("all at once");
    assert!(streams.iter().all(|stream| String::from_utf8_lossy(stream).matches("data: ").count() == EVENTS));
    let calls = world.host.calls();
    assert_eq!(calls.len(), STREAMS);
    assert!(calls.iter().all(|call| call.usage.output == Some(EVENTS as i64 - 1)));
}
