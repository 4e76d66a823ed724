//! Tests of the transport for GitHub against the fake GitHub, and of signed requests.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::http::HeaderMap;
use futures::{FutureExt, future::ready};
use jiff::{Timestamp, ToSpan};
use muster_channels::{
    ActionCall, Attachment, Attention, CodeHostConfig, CodeHostLogin, CodeHostRules, Config, Cursor, Event,
    Failure, GithubApp, GithubInstallation, Inbound, Link, Network, Part, RawRequest, Refusal, Scope,
    Transport, open, read_installation,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    discord::{listen, outwait},
    fakes::{
        self,
        github::{CLIENT, KEY, PERSON, SECRET, Shared, commented, refusal},
    },
    support::{SinkCall, TestSink, open_network, part, text},
};

async fn github() -> (Arc<dyn Transport>, Shared) {
    let (address, fake) = fakes::github::github().await;
    (installation(7, Some(address)), fake)
}

pub fn installation(id: i64, at: Option<SocketAddr>) -> Arc<dyn Transport> {
    with(id, &open_network(at), rules())
}

fn rules() -> CodeHostRules {
    CodeHostRules {
        login: Some("muster".to_owned()),
        repos: Vec::new(),
        events: Vec::new(),
        labels: Vec::new(),
        attention: Attention::All,
        has_payload: false,
    }
}

fn with(id: i64, network: &Network, rules: CodeHostRules) -> Arc<dyn Transport> {
    let app = GithubApp { id: CLIENT.to_owned(), key: KEY.into(), webhook_secret: SECRET.into() };
    let person: muster_channels::oauth::TokenSource =
        Arc::new(|| ready(Ok::<SecretString, Failure>(PERSON.into())).boxed());
    let login = CodeHostLogin::Installation(GithubInstallation { app, id, person });
    open(Config::CodeHost(Box::new(CodeHostConfig { login, rules })), network)
}

/// The next message, with its cursor.
async fn next(calls: &mut UnboundedReceiver<SinkCall>) -> (Inbound, Option<Cursor>) {
    loop {
        if let SinkCall::Admitted(mut events, cursor) = calls.recv().await.unwrap()
            && let Some(Event::Message(message)) = events.pop()
        {
            return (*message, cursor);
        }
    }
}

#[tokio::test]
async fn the_published_vector_is_verified() {
    let headers = |signature: &str| -> HeaderMap {
        [("x-hub-signature-256".parse().unwrap(), signature.parse().unwrap())].into_iter().collect()
    };
    let right = headers("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17");
    let read =
        |headers: &HeaderMap, body: &[u8]| read_installation(&SECRET.into(), &RawRequest { headers, body });
    // It is not JSON, but its signature is right.
    assert!(matches!(read(&right, b"Hello, World!"), Err(Refusal::Malformed(_))));
    assert_eq!(read(&right, b"Hello, World"), Err(Refusal::BadSignature));
    assert_eq!(read(&HeaderMap::new(), b"{}"), Err(Refusal::Unsigned));
}

#[tokio::test]
async fn only_an_authorization_that_reaches_it_proves_an_installation() {
    let (address, fake) = fakes::github::github().await;
    let app = installation(7, Some(address));
    let identity = app.probe().await.unwrap();
    assert_eq!((identity.handle.as_deref(), identity.warnings), (Some("muster"), Vec::<String>::new()));
    assert_eq!(identity.self_ids, ["muster[bot]", "app/70"]);
    let offered: Vec<_> = app.choices(None).await.unwrap().into_iter().map(|choice| choice.id).collect();
    assert_eq!(offered, ["acme/shop"]);
    let refused = async |app: &dyn Transport| {
        let Err(Failure::Credentials(cause)) = app.probe().await else { panic!() };
        cause.to_string()
    };
    let why = refused(&*installation(8, Some(address))).await;
    assert!(why.ends_with("does not list installation 8. It lists: 7 (acme)."), "{why}");
    let network = open_network(Some(address));
    let other = with(7, &network, CodeHostRules { repos: vec!["acme/other".to_owned()], ..rules() });
    assert!(refused(&*other).await.contains("does not reach acme/other"));
    // A repository that Ada does not reach.
    fake.lock().unwrap().repositories = 2;
    assert!(refused(&*app).await.contains("List the repositories"));
    let listed = with(7, &network, CodeHostRules { repos: vec!["Acme/Shop".to_owned()], ..rules() });
    listed.probe().await.unwrap();
}

#[tokio::test]
async fn what_github_could_not_deliver_is_fetched_once() {
    let (app, fake) = github().await;
    {
        let mut fake = fake.lock().unwrap();
        for n in 0..120 {
            fake.happens("issue_comment", &commented(100 + n, &n.to_string()), 502);
        }
        fake.happens("issue_comment", &commented(300, "delivered"), 200);
        let mut other = commented(301, "of others");
        other["installation"]["id"] = json!(8);
        fake.happens("issue_comment", &other, 502);
        fake.happens("push", &json!({ "installation": { "id": 7 } }), 502);
    }
    let (sink, mut calls) = TestSink::new(999);
    let cursor = listen(&*app, None, &sink, async {
        for n in 0..120 {
            assert_eq!(next(&mut calls).await.0.text, n.to_string());
        }
        loop {
            if let Some(SinkCall::Admitted(_, Some(cursor))) = calls.recv().await {
                return cursor;
            }
        }
    })
    .await;
    // After a restart, only the last minute comes again.
    let at = fake.lock().unwrap().at;
    let app = installation(7, at);
    fake.lock().unwrap().asked.clear();
    fake.lock().unwrap().happens("issue_comment", &commented(400, "new"), 0);
    let (sink, mut calls) = TestSink::new(999);
    listen(&*app, Some(cursor), &sink, async {
        loop {
            if next(&mut calls).await.0.text == "new" {
                return;
            }
        }
    })
    .await;
    let fetched =
        fake.lock().unwrap().asked.iter().filter(|(asked, _)| asked.contains("deliveries/")).count();
    assert!(fetched < 70, "{fetched}");
}

#[tokio::test]
async fn a_removed_installation_ends_the_channel() {
    let (app, fake) = github().await;
    let changed = |action: &str| json!({ "action": action, "installation": { "id": 7 } });
    // Now it has a repository that Ada does not reach.
    {
        let mut fake = fake.lock().unwrap();
        fake.repositories = 2;
        fake.happens("installation_repositories", &changed("added"), 200);
    }
    let ended = app.listen(None, &TestSink::new(9).0).await;
    assert!(matches!(ended, Err(Failure::Credentials(_))), "{ended:?}");
    {
        let mut fake = fake.lock().unwrap();
        fake.repositories = 1;
        fake.is_suspended = true;
        fake.happens("installation", &changed("suspend"), 200);
    }
    let at = fake.lock().unwrap().at;
    let app = installation(7, at);
    let ended = app.listen(None, &TestSink::new(9).0).await;
    assert!(matches!(ended, Err(Failure::Credentials(_))), "{ended:?}");
    let refused = app.send(&part(&text("x"), "acme/shop#12")).await;
    assert!(
        matches!(&refused, Err(Failure::Credentials(why)) if why.as_str().contains("suspended")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_suspension_that_ended_does_not_end_the_channel() {
    let (app, fake) = github().await;
    {
        let mut fake = fake.lock().unwrap();
        fake.happens("installation", &json!({ "action": "suspend", "installation": { "id": 7 } }), 200);
        fake.happens("issue_comment", &commented(100, "later"), 502);
    }
    let (sink, mut calls) = TestSink::new(9);
    let read = listen(&*app, None, &sink, async { next(&mut calls).await.0.text }).await;
    assert_eq!(read, "later");
}

#[tokio::test]
async fn an_outage_is_shown_and_outlasted() {
    let (address, fake) = fakes::github::github().await;
    let mut network = open_network(Some(address));
    // Five minutes ahead, so that GitHub refuses our tokens: it takes GitHub's own time.
    network.clock = || Timestamp::now() + 5.minutes();
    let app = with(7, &network, rules());
    app.send(&part(&text("x"), "acme/shop#12")).await.unwrap();
    network.clock = || Timestamp::now() - 5.minutes();
    let app = with(7, &network, rules());
    app.probe().await.unwrap();
    fake.lock().unwrap().hangs = Some("GET app/hook");
    let (sink, mut calls) = TestSink::new(9);
    let down = async {
        loop {
            if let Some(SinkCall::Link(Link::Down(cause))) = calls.recv().await {
                return cause.to_string();
            }
        }
    };
    let is_asked = || fake.lock().unwrap().asked.iter().any(|(asked, _)| asked.starts_with("GET app/hook"));
    let down = outwait(listen(&*app, None, &sink, down), is_asked).await;
    assert!(down.contains("GitHub did not answer"), "{down}");
}

#[tokio::test]
async fn a_comment_without_an_answer_is_found() {
    let (app, fake) = github().await;
    let said = text("x");
    let sending = Part { id: "C-1_2", ..part(&said, "acme/shop#12") };
    assert_eq!(app.reconcile(&sending).await, Ok(None));
    fake.lock().unwrap().hangs = Some("POST repos/");
    let lost = outwait(app.send(&sending), || !fake.lock().unwrap().comments.is_empty()).await;
    assert!(matches!(lost, Err(Failure::Unknown(_))), "{lost:?}");
    fake.lock().unwrap().hangs = None;
    let found = app.reconcile(&sending).await.unwrap().unwrap();
    assert_eq!(found.vendor_id.as_deref(), Some("acme/shop/issues/comments/2000"));
    assert_eq!(app.reconcile(&Part { id: "C-1_3", ..sending }).await, Ok(None));
}

#[tokio::test]
async fn a_token_is_used_until_it_is_refused() {
    let (app, fake) = github().await;
    let said = text("x");
    for _ in 0..3 {
        app.send(&part(&said, "acme/shop#12")).await.unwrap();
    }
    assert_eq!(fake.lock().unwrap().issued, 1);
    // GitHub has revoked it.
    fake.lock().unwrap().issued += 1;
    app.send(&part(&said, "acme/shop#12")).await.unwrap();
    let fake = fake.lock().unwrap();
    assert_eq!((fake.issued, fake.comments.len()), (3, 4));
}

#[tokio::test]
async fn errors_map_to_failures() {
    let (app, fake) = github().await;
    let said = text("x");
    let failure = async |status: u16, message: &str, header: Option<(&'static str, String)>| {
        let (status, said_by_github) = refusal(status, message);
        fake.lock().unwrap().answers.push_back((status, said_by_github, header));
        app.send(&part(&said, "acme/shop#12")).await.unwrap_err()
    };
    let wait = |failure: Failure| match failure {
        Failure::RateLimited { wait, scope: Scope::Channel, .. } => wait,
        other => panic!("{other:?}"),
    };
    let secondary =
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    assert_eq!(wait(failure(403, secondary, None).await), Duration::from_secs(60));
    let after = Some(("retry-after", "120".to_owned()));
    assert_eq!(wait(failure(403, secondary, after.clone()).await), Duration::from_secs(120));
    assert_eq!(wait(failure(429, "Too many requests", after).await), Duration::from_secs(120));
    assert!(matches!(
        failure(403, "Resource not accessible by integration", None).await,
        Failure::TargetGone(_)
    ));
    assert!(matches!(failure(410, "This issue was deleted", None).await, Failure::TargetGone(_)));
    assert!(matches!(failure(422, "Validation Failed", None).await, Failure::Refused(_)));
    let lost = failure(502, "Server Error", None).await;
    assert!(matches!(lost, Failure::Unknown(_)));
    assert!(!format!("{lost:?}").contains("canary"));
    let limited = json!({ "errors": [{ "type": "RATE_LIMITED", "message": "API rate limit exceeded" }] });
    fake.lock().unwrap().answers.push_back((200, limited, None));
    let discussed = app.send(&part(&said, "acme/shop~3/D_kwDO")).await.unwrap_err();
    assert_eq!(wait(discussed), Duration::from_secs(60));
    for target in ["acme/shop", "../../user#1", "acme/shop#1?x"] {
        let refused = app.send(&part(&said, target)).await;
        assert!(matches!(refused, Err(Failure::Refused(_))), "{target}");
    }
    let files = [Attachment { name: "a".into(), media_type: "text/plain".into(), content: "a".into() }];
    let refused = app.send(&Part { files: &files, ..part(&said, "acme/shop#12") }).await;
    assert!(matches!(refused, Err(Failure::Refused(_))));
}

#[tokio::test]
async fn a_conversation_ends_with_its_repository() {
    let (address, fake) = fakes::github::github().await;
    let listed = CodeHostRules { repos: vec!["Acme/Shop".to_owned()], ..rules() };
    let app = with(7, &open_network(Some(address)), listed);
    let said = text("x");
    app.send(&part(&said, "acme/shop#12")).await.unwrap();
    let refused = app.send(&part(&said, "acme/other#12")).await;
    assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    assert_eq!(fake.lock().unwrap().comments.len(), 1);
}

#[tokio::test]
async fn comments_have_no_effects() {
    let (app, fake) = github().await;
    let said = text("@acme/ops: this fixes #3\n/close");
    app.send(&part(&said, "acme/shop#12")).await.unwrap();
    let body = fake.lock().unwrap().comments[0]["body"].clone();
    assert_eq!(body, "@\u{2060}acme/ops: this fixes \u{2060}#3\n\u{2060}/close\n\n<!-- muster:d-1 -->");
}

#[tokio::test]
async fn actions_stay_in_their_place() {
    let (app, fake) = github().await;
    let act = async |name: &str, arguments: Value, received: &str| {
        let received = [received.to_owned()];
        let call = ActionCall {
            id: "d-2",
            name,
            arguments: &arguments,
            target: "acme/shop#12",
            received: &received,
        };
        app.act(&call).await
    };
    for path in ["acme/shop/../../user", "acme/shop?x", "<x>"] {
        let refused = act("react", json!({ "emoji": "👀" }), path).await;
        assert!(matches!(refused, Err(Failure::Refused(_))), "{path}");
    }
    let refused = act("react", json!({ "emoji": "🪗" }), "acme/shop/issues/12").await;
    assert!(matches!(refused, Err(Failure::Refused(_))));
    assert!(fake.lock().unwrap().asked.is_empty());
    let comments = json!([{ "path": "a.rs", "line": 1, "text": "fixes #3" }]);
    act("review", json!({ "request_changes": true, "comments": comments }), "").await.unwrap();
    let review = fake.lock().unwrap().bodies("POST repos/acme/shop/pulls/12/reviews").remove(0);
    assert_eq!(
        (&review["event"], &review["body"]),
        (&json!("REQUEST_CHANGES"), &json!("Changes are needed."))
    );
    assert_eq!(review["comments"][0]["body"], "fixes \u{2060}#3");
}
