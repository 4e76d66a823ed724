//! Calls paid by a budget, with content beyond their own bytes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use http::{Response, StatusCode};
use muster_egress::LeaseOutcome;
use muster_protocol::spending::{Lease, Price};
use serde_json::{Value, json};

use crate::{
    servers::{Server, body},
    support::World,
};

/// A slow model that reads a million tokens per question. Counts parallel calls.
async fn costly(most: &Arc<AtomicUsize>) -> Server {
    let (most, under_way) = (Arc::clone(most), Arc::new(AtomicUsize::new(0)));
    Server::start(Arc::new(move |_| {
        let (most, under_way) = (Arc::clone(&most), Arc::clone(&under_way));
        Box::pin(async move {
            most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            under_way.fetch_sub(1, Ordering::SeqCst);
            let usage = json!({ "prompt_tokens": 1_000_000, "completion_tokens": 16 });
            let answer = Response::builder().header("content-type", "application/json");
            answer.body(body(json!({ "choices": [], "usage": usage }).to_string())).unwrap()
        })
    }))
    .await
}

/// A sandbox with a budget in money, in this many leases of 10,000 millionths.
fn budgeted(server: &Server, leases: i64) -> World {
    let mut world = World::new();
    world.model("openai", server.port, "canary");
    let (input, output) = (1_000_000, 5_000_000);
    let price = Price { model: "m".to_owned(), input, output, cache_read: None, cache_write: None };
    (world.plan.metered, world.plan.prices) = (true, vec![price]);
    world.apply();
    let lease = |id| Lease { id, cost_micro: Some(10_000), tokens: None, until: 1_700_000_900_000 };
    world.host.leases.lock().unwrap().extend((1..=leases).map(lease).map(LeaseOutcome::Granted));
    world
}

fn question(part: &Value) -> Value {
    json!({ "model": "m", "max_tokens": 16, "messages": [{ "role": "user", "content": [part] }] })
}

#[tokio::test]
async fn files_by_reference_are_paid_one_at_a_time() {
    let most = Arc::new(AtomicUsize::new(0));
    let server = costly(&most).await;
    let world = budgeted(&server, 3);
    let question = question(&json!({ "type": "file", "file": { "file_id": "file-7" } }));
    // More than 64 at once would be refused earlier.
    let answers = join_all((0..60).map(|_| world.post("/model/chat/completions", &question))).await;
    let passed = answers.iter().filter(|(status, _)| *status == StatusCode::OK).count();
    assert_eq!((passed, server.seen().len(), most.load(Ordering::SeqCst)), (3, 3, 1), "one for each lease");
    let refused = answers.iter().filter(|(status, _)| *status == StatusCode::PAYMENT_REQUIRED).count();
    assert_eq!(refused, 57);
}

#[tokio::test]
async fn an_unread_answer_counts_as_a_whole_window() {
    let server = Server::start(Arc::new(|_| {
        Box::pin(async {
            // An answer that hides its cost.
            Response::builder().header("content-encoding", "gzip").body(body("?")).unwrap()
        })
    }))
    .await;
    let world = budgeted(&server, 1);
    let question = question(&json!({ "type": "file", "file": { "file_id": "file-7" } }));
    assert_eq!(world.post("/model/chat/completions", &question).await.0, StatusCode::BAD_GATEWAY);
    let calls = world.host.calls();
    assert!(calls[0].usage.input.is_some_and(|tokens| tokens > 1_000_000), "{calls:?}");
    assert_eq!(calls[0].usage.output, Some(16));
}

#[tokio::test]
async fn sound_has_another_price_than_text() {
    let most = Arc::new(AtomicUsize::new(0));
    let server = costly(&most).await;
    let world = budgeted(&server, 1);
    let sound = json!({ "type": "input_audio", "input_audio": { "data": "x", "format": "mp3" } });
    let (status, words) = world.post("/model/chat/completions", &question(&sound)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{words}");
    assert!(words.contains("`audio` changes what this model costs"), "{words}");
    assert!(server.seen().is_empty());
}
