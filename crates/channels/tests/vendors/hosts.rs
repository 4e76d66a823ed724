//! GitLab and Gitea, after their documentation: hooks that Muster sets up, their signatures, comments and reviews.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use muster_channels::{
    ActionCall, Attention, CodeHostAccount, CodeHostConfig, CodeHostLogin, CodeHostRules, Config, Failure,
    RawRequest, Refusal, Software, Transport, open,
};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::support::{Seen, message, open_network, part, serve, text};

const SECRET: &str = "the-hooks-secret";
const HOOK: &str = "https://muster.test/webhooks/code_host/slug1";

/// A host, and the requests: method, path and body.
async fn host() -> (SocketAddr, Seen<(String, Value)>) {
    let seen = Seen::<(String, Value)>::default();
    let answer = move |State(seen): State<Seen<(String, Value)>>,
                       method: Method,
                       uri: Uri,
                       headers: HeaderMap,
                       body: String| async move {
        if headers["authorization"] != "Bearer canary" {
            return (StatusCode::UNAUTHORIZED, Json(json!({ "message": "401 Unauthorized" })));
        }
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        let request = format!("{method} {}", uri.path());
        let mut seen = seen.lock().unwrap();
        let mut hooks =
            seen.iter().filter(|(asked, _)| asked.starts_with("POST") && asked.ends_with("/hooks"));
        let hook = hooks.next_back().map(|(_, hook)| {
            let url = hook["url"].as_str().or(hook["config"]["url"].as_str()).unwrap();
            let state = if url.contains("outage") { "disabled" } else { "executable" };
            json!({ "id": 3, "url": url, "config": { "url": url }, "alert_status": state })
        });
        let said = match request.rsplit('/').next().unwrap() {
            "user" => json!({ "id": 7, "login": "muster", "username": "muster" }),
            "hooks" if method == Method::POST => json!({ "id": 3 }),
            "13" => json!({ "diff_refs": { "base_sha": "b", "start_sha": "s", "head_sha": "h" } }),
            "hooks" => hook.into_iter().collect(),
            "draft_notes" if body["position"]["new_line"] == 99 => {
                return (StatusCode::BAD_REQUEST, Json(json!({ "message": "400 Bad request" })));
            }
            _ => json!({ "id": 80 }),
        };
        seen.push((request, body));
        (StatusCode::OK, Json(said))
    };
    let address = serve(Router::new().fallback(answer).with_state(Arc::clone(&seen))).await;
    (address, seen)
}

fn account(software: Software, at: SocketAddr, token: &str) -> Arc<dyn Transport> {
    let login = CodeHostLogin::Account(CodeHostAccount {
        software,
        url: format!("http://{at}/").parse().unwrap(),
        token: token.into(),
        webhook_secret: SECRET.into(),
        slug: Some("slug1".to_owned()),
    });
    let rules = CodeHostRules {
        login: Some("muster".to_owned()),
        repos: vec!["acme/shop".to_owned()],
        events: Vec::new(),
        labels: Vec::new(),
        attention: Attention::Involved,
        has_payload: false,
    };
    open(Config::CodeHost(Box::new(CodeHostConfig { login, rules })), &open_network(None))
}

fn requests(seen: &Seen<(String, Value)>) -> Vec<String> {
    seen.lock().unwrap().drain(..).map(|(request, _)| request).collect()
}

fn headers(all: &[(&str, String)]) -> HeaderMap {
    all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

#[tokio::test]
async fn gitlab_signs_with_the_token_that_muster_sets() {
    let (address, seen) = host().await;
    let gitlab = account(Software::Gitlab, address, "canary");
    assert_eq!(gitlab.probe().await.unwrap().self_ids, ["muster"]);
    for _ in 0..2 {
        assert!(gitlab.register(Some(HOOK)).await.unwrap());
    }
    let hook = seen.lock().unwrap()[2].1.clone();
    assert_eq!((&hook["url"], &hook["token"]), (&json!(HOOK), &json!(SECRET)));
    let (hooks, user) = ("/api/v4/projects/acme%2Fshop/hooks", "GET /api/v4/user");
    let expected = [user.to_owned(), format!("GET {hooks}"), format!("POST {hooks}"), format!("GET {hooks}")];
    assert_eq!(requests(&seen), expected);
    let body = json!({
        "object_kind": "note", "user": { "id": 5, "username": "ada" },
        "project": { "id": 9, "path_with_namespace": "acme/shop" }, "issue": { "iid": 12, "title": "It breaks" },
        "object_attributes": { "id": 80, "note": "@muster look", "noteable_type": "Issue" },
    });
    let (body, now) = (body.to_string(), Timestamp::now());
    let receive = |headers: &HeaderMap, body: &str| {
        gitlab.receive(&RawRequest { headers, body: body.as_bytes() }, now).map(|received| received.events)
    };
    let at = now.as_second();
    let library = Webhook::new(hook["signing_token"].as_str().unwrap()).unwrap();
    let signature = library.sign("m1", at, body.as_bytes()).unwrap();
    let signed = headers(&[
        ("webhook-id", "m1".to_owned()),
        ("webhook-timestamp", at.to_string()),
        ("webhook-signature", signature),
    ]);
    let events = receive(&signed, &body).unwrap();
    assert_eq!(message(&events).text, "look");
    assert_eq!(message(&events).thread.target, "acme/shop#12");
    assert_eq!(receive(&signed, &format!("{body} ")), Err(Refusal::BadSignature));
    // An older GitLab.
    let token = |token: &str| headers(&[("x-gitlab-token", token.to_owned())]);
    assert_eq!(receive(&token(SECRET), &body).unwrap().len(), 1);
    assert_eq!(receive(&token("another"), &body), Err(Refusal::BadSignature));
    assert_eq!(receive(&HeaderMap::new(), &body), Err(Refusal::Unsigned));
}

#[tokio::test]
async fn gitea_signs_the_body() {
    let (address, seen) = host().await;
    let gitea = account(Software::Gitea, address, "canary");
    gitea.register(Some(HOOK)).await.unwrap();
    assert_eq!(seen.lock().unwrap()[1].1["config"]["secret"], SECRET);
    // The service moved.
    gitea.register(Some("https://new.test/webhooks/code_host/slug1")).await.unwrap();
    let hooks = "/api/v1/repos/acme/shop/hooks";
    let moved = [format!("GET {hooks}"), format!("DELETE {hooks}/3"), format!("POST {hooks}")];
    assert_eq!(requests(&seen)[2..], moved);
    gitea.register(Some(HOOK)).await.unwrap();
    gitea.register(None).await.unwrap();
    assert_eq!(requests(&seen).last().unwrap(), "DELETE /api/v1/repos/acme/shop/hooks/3");
    // By Node.js: createHmac("sha256", "the-hooks-secret").update("{}").digest("hex")
    let signature = "8c69fa3b89fbaec455dfe64cc47ff8b8069e9d5141b2c4e7c8de7434aa8dc8f2";
    let receive = |signature: &str| {
        let headers =
            headers(&[("x-gitea-signature", signature.to_owned()), ("x-gitea-event", "push".to_owned())]);
        gitea.receive(&RawRequest { headers: &headers, body: b"{}" }, Timestamp::now())
    };
    assert_eq!(receive(signature).unwrap().events, []);
    assert_eq!(receive(&signature.replace('0', "1")), Err(Refusal::BadSignature));
    assert_eq!(receive(&BASE64_STANDARD.encode(SECRET)), Err(Refusal::BadSignature));
}

#[tokio::test]
async fn a_hook_that_gitlab_disabled_is_replaced() {
    let (address, seen) = host().await;
    let gitlab = account(Software::Gitlab, address, "canary");
    for _ in 0..2 {
        gitlab.register(Some("https://outage.test/webhooks/code_host/slug1")).await.unwrap();
    }
    let hooks = "/api/v4/projects/acme%2Fshop/hooks";
    let replaced = [format!("GET {hooks}"), format!("DELETE {hooks}/3"), format!("POST {hooks}")];
    assert_eq!(requests(&seen)[2..], replaced);
}

#[tokio::test]
async fn a_review_that_fails_leaves_no_drafts() {
    let (address, seen) = host().await;
    let gitlab = account(Software::Gitlab, address, "canary");
    let at = |line: u64| json!({ "path": "a.rs", "line": line, "text": "Why?" });
    let arguments = json!({ "comments": [at(7), at(99)] });
    let target = "acme/shop!13";
    let call = ActionCall { id: "d-2", name: "review", arguments: &arguments, target, received: &[] };
    assert!(matches!(gitlab.act(&call).await, Err(Failure::Refused(_))));
    let drafts = "/api/v4/projects/acme%2Fshop/merge_requests/13/draft_notes";
    assert_eq!(requests(&seen)[1..], [format!("POST {drafts}"), format!("DELETE {drafts}/80")]);
}

#[tokio::test]
async fn each_host_has_its_own_paths() {
    let said = text("On it");
    for (software, comment, target) in [
        (Software::Gitlab, "POST /api/v4/projects/acme%2Fshop/merge_requests/13/notes", "acme/shop!13"),
        (Software::Gitea, "POST /api/v1/repos/acme/shop/issues/13/comments", "acme/shop#13"),
    ] {
        let (address, seen) = host().await;
        let host = account(software, address, "canary");
        let receipt = host.send(&part(&said, target)).await.unwrap();
        let received = [receipt.vendor_id.unwrap()];
        let act = async |name: &str, arguments: Value| {
            let call = ActionCall { id: "d-2", name, arguments: &arguments, target, received: &received };
            host.act(&call).await.unwrap();
        };
        act("react", json!({ "emoji": "🎉" })).await;
        act("review", json!({ "comments": [{ "path": "a.rs", "line": 7, "text": "Why?" }] })).await;
        let (asked, bodies): (Vec<_>, Vec<_>) = seen.lock().unwrap().drain(..).unzip();
        assert_eq!(asked[0], comment);
        if software == Software::Gitlab {
            let request = "/api/v4/projects/acme%2Fshop/merge_requests/13";
            let expected = [
                format!("POST {request}/notes/80/award_emoji"),
                format!("GET {request}"),
                format!("POST {request}/draft_notes"),
                format!("POST {request}/draft_notes/bulk_publish"),
            ];
            assert_eq!(asked[1..], expected);
            assert_eq!((&bodies[1]["name"], &bodies[3]["position"]["new_line"]), (&json!("tada"), &json!(7)));
        } else {
            let repo = "/api/v1/repos/acme/shop";
            let expected = [
                format!("POST {repo}/issues/comments/80/reactions"),
                format!("POST {repo}/pulls/13/reviews"),
            ];
            assert_eq!(asked[1..], expected);
            assert_eq!(
                (&bodies[1]["content"], &bodies[2]["comments"][0]["new_position"]),
                (&json!("hooray"), &json!(7))
            );
        }
        let stranger = account(software, address, "another");
        assert!(matches!(stranger.probe().await, Err(Failure::Credentials(_))));
        assert!(matches!(stranger.register(Some(HOOK)).await, Err(Failure::Credentials(_))));
    }
}
