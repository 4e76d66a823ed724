//! The model proxy: the key, usage, leases, refusals of the provider.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, future::join_all};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use muster_egress::LeaseOutcome;
use muster_protocol::{
    HostEvent,
    event::Usage,
    spending::{Finished, Lease, ModelCall, Price},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    servers::{Handler, Server, body, plainly},
    support::{World, send},
};

fn answered() -> Handler {
    plainly(|request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        if asked["stream"] == true {
            let counts = asked["stream_options"]["include_usage"] == true;
            let usage = if counts { r#"{"prompt_tokens":100,"completion_tokens":20}"# } else { "null" };
            let events = format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"hi\"}}}}]}}\n\ndata: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
            );
            return Response::builder()
                .header("content-type", "text/event-stream")
                .body(body(events))
                .unwrap();
        }
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": { "cached_tokens": 40 } });
        Response::builder()
            .header("content-type", "application/json")
            .body(body(json!({ "choices": [], "usage": usage }).to_string()))
            .unwrap()
    })
}

fn price(model: &str) -> Price {
    Price {
        model: model.to_owned(),
        input: 1_000_000,
        output: 5_000_000,
        cache_read: Some(100_000),
        cache_write: None,
    }
}

/// A sandbox with this server as its model: each call needs a lease, and one model has a price.
pub fn metered(server: &Server, model: &str) -> World {
    let mut world = World::new();
    world.model("openai", server.port, "canary");
    (world.plan.metered, world.plan.prices) = (true, vec![price(model)]);
    world.apply();
    world
}

pub fn lease(id: i64, tokens: Option<i64>, cost_micro: Option<i64>) -> LeaseOutcome {
    LeaseOutcome::Granted(Lease { id, cost_micro, tokens, until: 1_700_000_900_000 })
}

#[tokio::test]
async fn the_key_is_added_outside_and_usage_is_counted() {
    let server = Server::start(answered()).await;
    let mut world = World::new();
    world.model("openai", server.port, "canary");
    world.plan.prices = vec![price("large*")];
    world.apply();
    let question = json!({ "model": "large-1", "messages": [] });
    let request = Request::post("/model/v1/chat/completions?key=placeholder")
        .header("authorization", "Bearer placeholder")
        .header("x-api-key", "placeholder")
        .header("accept-encoding", "gzip");
    let (status, text) = world.ask(request.body(Full::from(question.to_string())).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(!text.contains("canary"));
    let seen = server.seen().remove(0);
    assert_eq!(seen.uri().to_string(), "/chat/completions");
    assert_eq!(seen.headers()["authorization"], "Bearer canary");
    assert!(!seen.headers().contains_key("x-api-key"));
    assert_eq!(seen.headers()["accept-encoding"], "identity");
    let streamed = json!({ "model": "unknown", "messages": [], "stream": true });
    let (status, text) = world.post("/model/chat/completions", &streamed).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let calls = world.host.calls();
    let expected = Usage {
        input: Some(60),
        output: Some(20),
        cache_read: Some(40),
        cache_write: None,
        // 60 + 20 × 5 + 40 × 0.1
        cost_micro: Some(164),
    };
    assert_eq!((calls[0].usage, calls[0].status, calls[0].lease_id), (expected, Some(200), None));
    assert_eq!((calls[0].provider.as_str(), calls[0].model.as_str()), ("openai", "large-1"));
    let unknown = Usage { input: Some(100), output: Some(20), ..Usage::default() };
    assert_eq!(calls[1].usage, unknown, "a model without a price has an unknown cost");
}

#[tokio::test]
async fn no_call_is_made_before_it_can_be_reported() {
    let server = Server::start(answered()).await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    world.host.is_full.send_replace(true);
    let question = json!({ "model": "m", "messages": [] });
    let calls = join_all((0..20).map(|_| world.post("/model/chat/completions", &question)));
    tokio::pin!(calls);
    let all_wait = async {
        while world.host.is_full.receiver_count() < 20 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answers = &mut calls => panic!("{answers:?}"),
        () = all_wait => {}
    }
    assert!(server.seen().is_empty() && world.host.calls().is_empty());
    assert_eq!(world.get("/model/v1/models").await.0, StatusCode::OK, "what is not reported doesn't wait");
    world.host.is_full.send_replace(false);
    assert!(calls.await.iter().all(|(status, _)| *status == StatusCode::OK));
    assert_eq!(world.host.calls().len(), 20);
}

#[tokio::test]
async fn only_calls_that_can_be_counted_leave() {
    let server = Server::start(answered()).await;
    let mut world = World::new();
    world.apply();
    assert_eq!(world.get("/model/v1/models").await.0, StatusCode::FORBIDDEN, "without access");
    world.model("openai", server.port, "canary").apply();
    assert_eq!(world.get("/model/v1/models").await.0, StatusCode::OK);
    for path in ["/model/v1/embeddings", "/model/v1/files", "/model/chat/completions/../../x", "/model/"] {
        assert_eq!(world.post(path, &json!({ "model": "m" })).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let socket =
        Request::get("/model/v1/responses").header("connection", "upgrade").header("upgrade", "websocket");
    let (status, _) = world.ask(socket.body(Full::default()).unwrap()).await;
    assert_eq!(status, StatusCode::UPGRADE_REQUIRED);
    assert_eq!(server.seen().len(), 1);
    assert!(world.host.calls().is_empty(), "a list costs nothing");
}

#[tokio::test]
async fn a_question_in_another_encoding_does_not_leave() {
    let server = Server::start(answered()).await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    let question = json!({ "model": "m", "messages": [] }).to_string();
    let marked = format!("\u{feff}{question}");
    for (name, value, text) in [
        ("content-type", "application/json; charset=utf-7", &question),
        ("content-encoding", "gzip", &question),
        ("content-type", "application/json", &marked),
    ] {
        let request = Request::post("/model/chat/completions").header(name, value);
        let (status, words) = world.ask(request.body(Full::from(text.clone())).unwrap()).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{words}");
        assert!(words.contains("Muster: The "), "{words}");
    }
    assert!(server.seen().is_empty() && world.host.calls().is_empty());
}

#[tokio::test]
async fn of_twenty_calls_at_once_a_lease_for_three_lets_three_pass() {
    let go = Arc::new(Notify::new());
    let (holds, answer) = (Arc::clone(&go), answered());
    let server = Server::start(Arc::new(move |request| {
        let (holds, answer) = (Arc::clone(&holds), answer(request));
        Box::pin(async move {
            holds.notified().await;
            answer.await
        })
    }))
    .await;
    let world = metered(&server, "*");
    let question =
        json!({ "model": "m", "max_tokens": 1000, "messages": [{ "role": "user", "content": "x" }] });
    // The maximal cost of three such calls: a third of the question's bytes plus sixteen, and 1,000 output tokens.
    let bytes = question.to_string().len() as i64;
    let one = (bytes / 3 + 16) + 1000 * 5;
    world.host.leases.lock().unwrap().push_back(lease(9, None, Some(3 * one)));
    let calls = join_all((0..20).map(|_| world.post("/model/chat/completions", &question)));
    let release = async {
        while server.seen().len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Enough time for a fourth one.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let seen = server.seen().len();
        for _ in 0..20 {
            go.notify_waiters();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        seen
    };
    let (answers, seen) = tokio::join!(calls, release);
    assert_eq!(seen, 3, "seventeen are refused before a byte leaves");
    let passed = answers.iter().filter(|(status, _)| *status == StatusCode::OK).count();
    let refused: Vec<_> =
        answers.iter().filter(|(status, _)| *status == StatusCode::PAYMENT_REQUIRED).collect();
    assert_eq!((passed, refused.len(), server.seen().len()), (3, 17, 3));
    assert!(refused[0].1.contains("The budget of this month is spent."), "{}", refused[0].1);
    assert_eq!(
        world.host.questions.lock().unwrap().len(),
        2,
        "once for the lease, once to learn that nothing is left"
    );
    assert!(world.host.calls().iter().all(|call| call.lease_id == Some(9)));
}

#[tokio::test]
async fn a_new_turn_ignores_a_remembered_lease_refusal() {
    let server = Server::start(answered()).await;
    let world = metered(&server, "*");
    let question =
        json!({ "model": "m", "max_tokens": 1000, "messages": [{ "role": "user", "content": "x" }] });
    let ask = || world.post("/model/chat/completions", &question);
    assert_eq!(ask().await.0, StatusCode::PAYMENT_REQUIRED);
    world.host.leases.lock().unwrap().push_back(lease(9, None, Some(1_000_000)));
    world.gate.forget_refusal();
    assert_eq!(ask().await.0, StatusCode::OK);
    assert_eq!(world.host.questions.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn unused_lease_amounts_are_reused_and_returned_at_the_end() {
    let server = Server::start(answered()).await;
    let world = metered(&server, "dear");
    // A call reserves nearly all, and uses 80 tokens.
    world.host.leases.lock().unwrap().push_back(lease(1, Some(1200), None));
    let question = json!({ "model": "free", "max_tokens": 900 });
    for _ in 0..3 {
        assert_eq!(world.post("/model/chat/completions", &question).await.0, StatusCode::OK);
    }
    assert_eq!(world.host.questions.lock().unwrap().len(), 1);
    // A lease of money, and a model without a price.
    world.host.leases.lock().unwrap().push_back(lease(2, None, Some(1_000_000)));
    let (status, words) =
        world.post("/model/chat/completions", &json!({ "model": "free", "max_tokens": 5000 })).await;
    assert_eq!(status, StatusCode::PAYMENT_REQUIRED);
    assert!(words.contains("the model free has no price"), "{words}");
    assert!(world.host.reports.lock().unwrap().contains(&HostEvent::LeaseReturned { lease_id: 1 }));
    assert_eq!(world.post("/model/chat/completions", &json!({ "model": "dear" })).await.0, StatusCode::OK);
    let host = Arc::clone(&world.host);
    drop(world);
    assert!(host.reports.lock().unwrap().contains(&HostEvent::LeaseReturned { lease_id: 2 }));
}

#[tokio::test]
async fn the_rest_of_a_lease_returns_with_the_next_lease_request() {
    let server = Server::start(answered()).await;
    let world = metered(&server, "*");
    let ask = async |most: u64| {
        world.post("/model/chat/completions", &json!({ "model": "m", "max_tokens": most })).await.0
    };
    world.host.leases.lock().unwrap().extend([lease(1, None, Some(6000)), lease(2, None, Some(20_000))]);
    assert_eq!(ask(1000).await, StatusCode::OK);
    assert_eq!(ask(3000).await, StatusCode::OK, "its 15,000 and more are not left of the first");
    // 60 × 1 + 20 × 5 + 40 × 0.1 were.
    let taken = Finished { lease_id: 1, cost_micro: 164, tokens: 80 };
    let finished = || {
        world.host.questions.lock().unwrap().iter().map(|asked| asked.finished.clone()).collect::<Vec<_>>()
    };
    assert_eq!(finished(), [vec![], vec![taken]]);
    // A returned lease pays for nothing more, even without another lease.
    assert_eq!(ask(5000).await, StatusCode::PAYMENT_REQUIRED);
    world.gate.forget_refusal();
    assert_eq!(ask(10).await, StatusCode::PAYMENT_REQUIRED);
    let second = Finished { lease_id: 2, cost_micro: 164, tokens: 80 };
    assert_eq!(finished()[2..], [vec![second], vec![]]);
    assert!(world.host.reports.lock().unwrap().contains(&HostEvent::LeaseReturned { lease_id: 2 }));
}

#[tokio::test]
async fn a_question_is_the_same_until_a_lease_has_come() {
    let server = Server::start(answered()).await;
    let world = metered(&server, "*");
    let ask = async || {
        world.gate.forget_refusal();
        world.post("/model/chat/completions", &json!({ "model": "m", "max_tokens": 1000 })).await.0
    };
    // For the host, a lease may have been granted and its answer lost.
    assert_eq!(ask().await, StatusCode::PAYMENT_REQUIRED);
    world.host.leases.lock().unwrap().push_back(lease(1, None, Some(5100)));
    assert_eq!(ask().await, StatusCode::OK);
    assert_eq!(ask().await, StatusCode::PAYMENT_REQUIRED, "too little is left");
    let asked: Vec<i64> = world.host.questions.lock().unwrap().iter().map(|asked| asked.question).collect();
    assert_eq!(asked[0], asked[1]);
    assert_ne!(asked[1], asked[2]);
}

#[tokio::test]
async fn a_key_is_not_sent_to_another_provider() {
    let mut world = World::new();
    world.model("openai", 1, "canary");
    world.plan.model_access.as_mut().unwrap().base_url = None;
    world.apply();
    let gemini = "/model/v1beta/models/m:generateContent";
    for path in ["/model/v1/messages", "/model/v1/messages/count_tokens", gemini] {
        let (status, words) = world.post(path, &json!({ "model": "m" })).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(words.contains("key is for another interface"), "{words}");
    }
    assert_eq!(world.names.asked.load(Ordering::Relaxed), 0, "no name is resolved");
}

#[tokio::test]
async fn calls_that_may_use_more_than_a_lease_go_one_at_a_time() {
    let under_way = Arc::new(AtomicUsize::new(0));
    let (most, answer) = (Arc::new(AtomicUsize::new(0)), answered());
    let (counts, highest) = (Arc::clone(&under_way), Arc::clone(&most));
    let server = Server::start(Arc::new(move |request| {
        let (counts, highest, answer) = (Arc::clone(&counts), Arc::clone(&highest), answer(request));
        Box::pin(async move {
            highest.fetch_max(counts.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            counts.fetch_sub(1, Ordering::SeqCst);
            answer.await
        })
    }))
    .await;
    let mut world = World::new();
    world.model("openai", server.port, "canary");
    world.plan.metered = true;
    world.apply();
    // As the control plane would: 5 % of 400,000 tokens, again and again.
    world.host.leases.lock().unwrap().extend((1..=20).map(|id| lease(id, Some(20_000), None)));
    let question = json!({ "model": "m", "max_tokens": 128_000, "messages": [] });
    let answers = join_all((0..20).map(|_| world.post("/model/chat/completions", &question))).await;
    assert!(answers.iter().all(|(status, _)| *status == StatusCode::OK), "{answers:?}");
    assert_eq!((most.load(Ordering::SeqCst), server.seen().len()), (1, 20));
    let leases = world.host.questions.lock().unwrap().len();
    assert_eq!(leases, 20, "each is paid from one, and none is asked for in vain");
    // Small calls don't wait for a large one.
    world.host.leases.lock().unwrap().extend((21..40).map(|id| lease(id, Some(20_000), None)));
    let small = json!({ "model": "m", "max_tokens": 100, "messages": [] });
    let large = world.post("/model/chat/completions", &question);
    let smalls = join_all((0..10).map(|_| world.post("/model/chat/completions", &small)));
    let (large, smalls) = tokio::join!(large, smalls);
    assert!(smalls.iter().chain([&large]).all(|(status, _)| *status == StatusCode::OK));
    assert!(most.load(Ordering::SeqCst) > 1, "they are under way together");
}

/// Waits for this many requests at a server.
async fn asked(server: &Server, count: usize) {
    while server.seen().len() < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits for this many reported calls.
pub async fn reported(world: &World, count: usize) -> Vec<ModelCall> {
    let until = tokio::time::Instant::now() + Duration::from_secs(10);
    while world.host.calls().len() < count && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.host.calls()
}

#[tokio::test]
async fn hanging_up_is_no_way_to_pay_nothing() {
    let server = Server::start(Arc::new(|_| Box::pin(std::future::pending()))).await;
    let mut world = World::new();
    world.model("anthropic", server.port, "canary");
    world.plan.metered = true;
    world.apply();
    world.host.leases.lock().unwrap().push_back(lease(1, Some(100_000_000), None));
    let question = json!({ "model": "m", "max_tokens": 100_000, "messages": ["x".repeat(3000)] });
    let calls = join_all((0..64).map(|_| world.post("/model/v1/messages", &question)));
    tokio::select! {
        _ = calls => panic!("no answer"),
        () = asked(&server, 64) => {}
    }
    // The gate continues to read them, and starts no call that it could not read.
    for question in [&question, &json!({ "model": "m" })] {
        let (status, words) = world.post("/model/v1/messages", question).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{words}");
        assert!(words.contains("64 calls of this agent are under way"), "{words}");
    }
    assert_eq!((server.seen().len(), world.host.calls().len()), (64, 0));
    assert_eq!(server.seen()[0].headers()["x-api-key"], "canary");
}

#[tokio::test]
async fn an_answer_is_heard_out_after_the_agent_has_hung_up() {
    let server = Server::start(Arc::new(|request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap();
        let late = asked["model"] == "late";
        Box::pin(async move {
            if late {
                tokio::time::sleep(Duration::from_millis(1500)).await;
            }
            let events = futures::stream::iter(0..2).then(|at| async move {
                if at == 1 {
                    tokio::time::sleep(Duration::from_millis(1500)).await;
                    let usage = r#"{"prompt_tokens":100,"completion_tokens":20000}"#;
                    return Ok(Frame::data(Bytes::from(format!(
                        "data: {{\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
                    ))));
                }
                Ok(Frame::data(Bytes::from("data: {\"choices\":[]}\n\n")))
            });
            let answer = Response::builder().header("content-type", "text/event-stream");
            answer.body(StreamBody::new(events).boxed_unsync()).unwrap()
        })
    }))
    .await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    // In the middle of the answer, before its start, and with the whole gate.
    for (at, model) in ["now", "late", "now"].into_iter().enumerate() {
        let question = json!({ "model": model, "stream": true });
        let request = Request::post("/model/chat/completions").body(Full::from(question.to_string()));
        let socket = world.socket();
        tokio::select! {
            answer = send(&socket, request.unwrap()) => {
                assert_eq!(model, "now");
                answer.into_body().frame().await.unwrap().unwrap();
            }
            () = asked(&server, at + 1), if model == "late" => {}
        }
        assert_eq!(world.host.calls().len(), at, "it is not over");
        if at < 2 {
            let calls = reported(&world, at + 1).await;
            let usage = Usage { input: Some(100), output: Some(20_000), ..Usage::default() };
            assert_eq!((calls[at].usage, calls[at].status), (usage, Some(200)), "{model}");
        }
    }
    let host = Arc::clone(&world.host);
    drop(world);
    let until = tokio::time::Instant::now() + Duration::from_secs(10);
    while host.calls().len() < 3 && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        host.calls()[2].usage.output,
        Some(20_000),
        "a launch that is over pays what it has asked for"
    );
}

#[tokio::test]
async fn a_large_question_takes_no_more_memory_than_it_is_long() {
    let most = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() / 1024
    };
    let server = Server::start(plainly(|_| Response::new(body(r#"{"usage":{}}"#)))).await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    // As parsed values, each of these lists would take 24 to 72 bytes.
    let lists = "[],".repeat(7 * 1024 * 1024);
    let question = Bytes::from(format!("{{\"model\":\"m\",\"messages\":[{lists}[]]}}"));
    drop(lists);
    let before = most();
    let asked = (0..2).map(|_| {
        let request = Request::post("/model/chat/completions").body(Full::from(question.clone()));
        world.ask(request.unwrap())
    });
    assert!(join_all(asked).await.iter().all(|(status, _)| *status == StatusCode::OK));
    let grown = most() - before;
    // A few copies of 21 MiB each, some of them the server's.
    assert!(grown < 400, "{grown} MiB more");
    let mut bytes = question.to_vec();
    bytes.resize(33 * 1024 * 1024, b' ');
    let request = Request::post("/model/chat/completions").body(Full::from(bytes)).unwrap();
    assert_eq!(world.ask(request).await.0, StatusCode::BAD_REQUEST, "too long");
}

#[tokio::test]
async fn a_budget_in_money_pays_what_has_a_price() {
    let server = Server::start(answered()).await;
    let world = metered(&server, "*");
    let ask = async |field: &str, value: Value| {
        let mut question = json!({ "model": "m", "max_tokens": 10 });
        question[field] = value;
        world.post("/model/chat/completions", &question).await
    };
    world.host.leases.lock().unwrap().push_back(lease(1, None, Some(1_000_000)));
    for (field, value) in [
        ("service_tier", json!("priority")),
        ("speed", json!("fast")),
        ("modalities", json!(["audio"])),
        ("tools", json!([{ "type": "web_search_20250305", "name": "web_search" }])),
        ("cache_control", json!({ "type": "ephemeral", "ttl": "1h" })),
    ] {
        let (status, words) = ask(field, value).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(words.contains(&format!("`{field}` changes what this model costs")), "{words}");
    }
    let long = Request::post("/model/chat/completions").header("anthropic-beta", "context-1m-2025-08-07");
    let (status, words) = world.ask(long.body(Full::from(r#"{"model":"m"}"#)).unwrap()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(words.contains("`anthropic-beta` changes what this model costs"), "{words}");
    assert!(server.seen().is_empty(), "nothing has left");
    assert_eq!(ask("service_tier", json!("default")).await.0, StatusCode::OK);
    // Without a budget in money it passes, at an unknown cost.
    drop(world);
    let world = metered(&server, "*");
    world.host.leases.lock().unwrap().push_back(lease(1, Some(100_000), None));
    let question = json!({ "model": "m", "service_tier": "priority" });
    assert_eq!(world.post("/model/chat/completions", &question).await.0, StatusCode::OK);
    let usage = world.host.calls()[0].usage;
    assert_eq!((usage.output, usage.cost_micro), (Some(20), None));
}

#[tokio::test]
async fn a_model_gets_the_headers_that_its_clients_need() {
    let server = Server::start(answered()).await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    let request = Request::post("/model/chat/completions?alt=sse&fields=x")
        .header("anthropic-beta", "one")
        .header("connection", "x-listed")
        .header("x-listed", "1")
        .header("openai-beta", "two")
        .header("openai-organization", "other")
        .header("openai-project", "other")
        .header("x-http-method-override", "DELETE")
        .header("x_api_key", "own")
        .header("cookie", "a=b");
    let question = json!({ "model": "m" }).to_string();
    assert_eq!(world.ask(request.body(Full::from(question)).unwrap()).await.0, StatusCode::OK);
    let seen = server.seen().remove(0);
    assert_eq!(seen.uri().to_string(), "/chat/completions?alt=sse");
    let mut names: Vec<&str> = seen.headers().keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let expected = [
        "accept-encoding",
        "anthropic-beta",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "openai-beta",
    ];
    assert_eq!(names, expected);
}
