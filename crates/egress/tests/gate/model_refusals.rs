//! Refusals and compressed answers of providers: people are informed, and the agent never gets the key.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use muster_protocol::{HostEvent, event::Usage};
use serde_json::{Value, json};

use crate::{
    model::{lease, metered, reported},
    servers::{Handler, Server, body, plainly},
    support::{World, send},
};

#[tokio::test]
async fn a_provider_refusal_is_passed_on_and_reported() {
    let server = Server::start(plainly(|request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap();
        let (status, after) = if asked["model"] == "busy" { (429, "30") } else { (401, "0") };
        let text = json!({ "error": { "message": "Not with the key canary." } });
        Response::builder().status(status).header("retry-after", after).body(body(text.to_string())).unwrap()
    }))
    .await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    for _ in 0..3 {
        assert_eq!(
            world.post("/model/chat/completions", &json!({ "model": "m" })).await.0,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(
            world.post("/model/chat/completions", &json!({ "model": "busy" })).await.0,
            StatusCode::TOO_MANY_REQUESTS
        );
    }
    let reports = world.host.reports.lock().unwrap();
    let told: Vec<&HostEvent> =
        reports.iter().filter(|report| !matches!(report, HostEvent::ModelCalled(_))).collect();
    assert_eq!(told.len(), 2, "each once: {told:?}");
    assert!(told.iter().all(|report| !format!("{report:?}").contains("canary")));
    assert!(matches!(told[0], HostEvent::AuthRequired { detail } if detail.contains("Not with the key")));
    let limited = HostEvent::Limited {
        credential_id: Some(7),
        model: "busy".to_owned(),
        until: Some(1_700_000_030_000),
        detail: "Not with the key ******.".to_owned(),
    };
    assert_eq!(told[1], &limited);
    drop(reports);
    assert!(world.host.calls().iter().all(|call| call.usage == Usage::default()), "nothing was spent");
}

#[tokio::test]
async fn a_limit_is_reported_again_after_a_successful_call() {
    let server = Server::start(plainly(|request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap();
        let status = if asked["model"] == "busy" { 429 } else { 200 };
        Response::builder().status(status).header("retry-after", "600").body(body("{}")).unwrap()
    }))
    .await;
    let mut world = World::new();
    world.model("openai", server.port, "canary").apply();
    for model in ["busy", "busy", "free", "busy"] {
        world.post("/model/chat/completions", &json!({ "model": model })).await;
    }
    let reports = world.host.reports.lock().unwrap();
    let limited = reports.iter().filter(|report| matches!(report, HostEvent::Limited { .. }));
    assert_eq!(limited.count(), 2, "{reports:?}");
}

/// As long as a real one: shorter keys count as placeholders.
const KEY: &str = "sk-CANARY/MODEL-KEY";

/// Repeats the key in every place: in headers, in JSON and plain, and split across the pieces of a stream.
fn telltale(status: u16) -> Handler {
    plainly(move |request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let said = format!("bad key Bearer {KEY} or sk-CANARY\\/MODEL-KEY");
        let answer = Response::builder().status(status).header("x-debug", format!("key={KEY}"));
        if asked["stream"] == true {
            let events = format!("data: {{\"error\":\"{said}\"}}\n\ndata: [DONE]\n\n");
            let pieces: Vec<_> = events
                .as_bytes()
                .chunks(5)
                .map(|piece| Ok(Frame::data(Bytes::from(piece.to_vec()))))
                .collect();
            let body = StreamBody::new(futures::stream::iter(pieces)).boxed_unsync();
            return answer.header("content-type", "text/event-stream").body(body).unwrap();
        }
        answer.body(body(format!("{{\"error\":{{\"message\":\"{said}\"}}}}"))).unwrap()
    })
}

#[tokio::test]
async fn no_answer_carries_the_key() {
    for status in [200, 400, 401, 403, 404, 429, 500, 529] {
        let server = Server::start(telltale(status)).await;
        let mut world = World::new();
        world.model("openai", server.port, KEY).apply();
        for (path, stream) in [
            ("/model/chat/completions", false),
            ("/model/chat/completions", true),
            ("/model/v1/messages", false),
            ("/model/v1/messages/count_tokens", false),
            ("/model/v1/models", false),
        ] {
            let question = json!({ "model": "m", "stream": stream }).to_string();
            let request = if path.ends_with("models") { Request::get(path) } else { Request::post(path) };
            let answer = send(&world.socket(), request.body(Full::from(question)).unwrap()).await;
            assert_eq!(answer.status().as_u16(), status, "{path}");
            assert_eq!(answer.headers()["x-debug"], "key=*******************");
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                text.contains("bad key Bearer ****") && !text.contains("MODEL-KEY"),
                "{status} {path}: {text}"
            );
        }
        let reports = format!("{:?}", world.host.reports.lock().unwrap());
        assert!(!reports.contains("MODEL-KEY"), "{reports}");
    }
}

#[tokio::test]
async fn a_compressed_answer_is_refused_and_counts_as_reserved() {
    let server = Server::start(plainly(|request| {
        let status = if request.body().starts_with(b"{\"model\":\"bad\"") { 400 } else { 200 };
        let answer = Response::builder().status(status).header("content-encoding", "gzip");
        answer.body(body(&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..])).unwrap()
    }))
    .await;
    let world = metered(&server, "*");
    world.host.leases.lock().unwrap().push_back(lease(1, None, Some(1_000_000)));
    let ask = async |model: &str| {
        world.post("/model/chat/completions", &json!({ "model": model, "max_tokens": 700 })).await
    };
    let (status, words) = ask("m").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert!(words.contains("is compressed"), "{words}");
    let call = reported(&world, 1).await.remove(0);
    assert_eq!((call.status, call.usage.output), (Some(200), Some(700)), "the provider was paid");
    assert_eq!(ask("bad").await, (StatusCode::BAD_REQUEST, String::new()), "it could hide the key");
    assert_eq!(world.get("/model/v1/models").await.0, StatusCode::BAD_GATEWAY);
}
