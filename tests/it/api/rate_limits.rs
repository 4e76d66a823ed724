//! Rate limits: a bucket for every caller and every address, the headers that report it, and no way around it.

use std::time::Duration;

use futures::future::join_all;
use muster::core::access::token::{Token, TokenKind};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::{
    channels::inbound_webhooks::{bring, channel, hello},
    harness::{Actor, Answer, PNG, TestApp, picture},
};

async fn limited(reads: u32, writes: u32, anonymous: u32) -> TestApp {
    TestApp::start_with(|config| {
        config.rate_limits.enabled = true;
        config.rate_limits.reads_per_minute = reads;
        config.rate_limits.writes_per_minute = writes;
        config.rate_limits.anonymous_per_minute = anonymous;
    })
    .await
}

#[tokio::test]
async fn each_caller_has_a_bucket_of_their_own_that_refills() {
    let app = limited(4, 3, 50).await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    for left in (0..4).rev() {
        let answer = app.viewer.get(&path).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-policy"), "\"reads\";q=4;w=60");
        let full_in = (4 - left) * 15;
        assert_eq!(answer.header("ratelimit"), format!("\"reads\";r={left};t={full_in}"));
        assert_eq!(answer.header("retry-after"), "");
    }
    let refused = app.viewer.get(&path).await;
    assert_eq!(refused.problem(), (429, "RATE_LIMITED"));
    assert_eq!((refused.header("retry-after"), refused.header("ratelimit")), ("15", "\"reads\";r=0;t=15"));
    assert_eq!(refused.body["details"], json!({ "limit": "reads", "retry_after": 15 }));
    // Others, and other buckets of the same person.
    app.owner.get(&path).await.expect(200);
    assert_eq!(app.stranger.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
    let server = json!({ "name": "rack" });
    assert_eq!(app.viewer.post(&format!("/v1/org/{}/server", app.org), server).await.status, 403);
    app.clock.advance(Duration::from_secs(15));
    app.viewer.get(&path).await.expect(200);
    assert_eq!(app.viewer.get(&path).await.status, 429);
}

#[tokio::test]
async fn graphql_is_charged_by_operation_even_in_batches() {
    let app = limited(3, 2, 50).await;
    let query = format!("{{ agents(orgId: {}, page: 1, limit: 1) {{ total }} }}", app.org);
    let read = json!({ "query": query });
    let write = json!({ "query": format!("mutation {{ startAgent(orgId: {}, id: 1) {{ id }} }}", app.org) });
    let batch = app.operator.post("/graphql", json!([read, write, write, write, read])).await;
    assert_eq!(batch.status, 200);
    let codes: Vec<&str> = batch
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["errors"][0]["extensions"]["code"].as_str().unwrap_or("ok"))
        .collect();
    assert_eq!(codes, ["ok", "NOT_FOUND", "NOT_FOUND", "RATE_LIMITED", "ok"]);
    let alone = app.operator.post("/graphql", write).await;
    assert_eq!((alone.status, alone.code().as_str()), (429, "RATE_LIMITED"));
    assert_eq!(alone.header("retry-after"), "30");
    assert_eq!(alone.header("ratelimit-policy"), "\"writes\";q=2;w=60");
    assert_eq!(app.operator.post("/graphql", read.clone()).await.header("ratelimit"), "\"reads\";r=0;t=60");
    // An invalid document counts as a read, because parsing it took work.
    let unread = json!({ "query": "{" });
    assert_eq!(app.stranger.post("/graphql", unread).await.header("ratelimit"), "\"reads\";r=2;t=20");
    // Event streams carry the error in an event, because the headers have been sent.
    let stream = app.operator.request(Method::POST, "/graphql").header("accept", "text/event-stream");
    let events = Answer::of(stream.json(&read)).await;
    assert!(events.text.contains("RATE_LIMITED"), "{}", events.text);
}

#[tokio::test]
async fn a_request_refused_early_is_charged_too() {
    let app = limited(9, 2, 3).await;
    let get = async |actor: &Actor| {
        let mutation = [("query", "mutation { signOut }")];
        Answer::of(actor.request(Method::GET, "/graphql").query(&mutation)).await
    };
    for left in (0..3).rev() {
        let refused = get(&app.anonymous).await;
        assert_eq!((refused.status, refused.code().as_str()), (405, "METHOD_NOT_ALLOWED"));
        assert_eq!(refused.header("ratelimit"), format!("\"anonymous\";r={left};t={}", (3 - left) * 20));
    }
    for _ in 0..2 {
        let refused = get(&app.anonymous).await;
        assert_eq!((refused.status, refused.code().as_str()), (429, "RATE_LIMITED"));
    }
    assert!(get(&app.owner).await.header("ratelimit").starts_with("\"reads\";r=8;"));
    // Nothing in these is an operation.
    for (body, left) in [(json!(1), 7), (json!([]), 6)] {
        let malformed = app.owner.post("/graphql", body).await;
        assert_eq!((malformed.status, malformed.code().as_str()), (400, "MALFORMED_REQUEST"));
        assert!(malformed.header("ratelimit").starts_with(&format!("\"reads\";r={left};")), "{malformed:?}");
    }
}

#[tokio::test]
async fn a_mutation_with_a_key_is_charged_before_the_key_is_claimed() {
    let app = limited(9, 2, 3).await;
    let query = "mutation($o: Id!, $i: CreateServerInput!) { createServer(orgId: $o, input: $i) { id } }";
    let create = async |name: &str, key: &str| {
        let body = json!({ "query": query, "variables": { "o": app.org, "i": { "name": name } } });
        let request = app.owner.request(Method::POST, "/graphql").header("idempotency-key", key);
        Answer::of(request.json(&body)).await
    };
    let created = create("rack", "k").await;
    assert_eq!(created.header("ratelimit"), "\"writes\";r=1;t=30", "one charge");
    created.data();
    let reused = create("other", "k").await;
    assert_eq!((reused.status, reused.code().as_str()), (422, "IDEMPOTENCY_KEY_REUSED"));
    assert_eq!(reused.header("ratelimit"), "\"writes\";r=0;t=60");
    let before = app.writes();
    for key in ["k", "fresh"] {
        let refused = create("other", key).await;
        assert_eq!((refused.status, refused.code().as_str()), (429, "RATE_LIMITED"));
        assert_eq!(refused.header("retry-after"), "30");
    }
    assert_eq!(app.writes(), before, "the database is not asked");
}

#[tokio::test]
async fn an_endless_report_is_slowed_without_loss() {
    let app = limited(60, 100, 100).await;
    let (agent, neighbour) = (app.agent().await, app.agent().await);
    let (host, other) = (app.host_of(agent).await, app.host_of(neighbour).await);
    let synced = || json!({ "kind": "SYNCED" });
    let stored = || app.one::<i64>("SELECT event_seq FROM servers WHERE id = $1", vec![host.server.into()]);
    let mut line = host.connect().await;
    for _ in 0..70 {
        line.report((agent, 0), synced()).await;
    }
    line.stored(60).await;
    // Others have a bucket of their own.
    let mut theirs = other.connect().await;
    let seq = theirs.report((neighbour, 0), synced()).await;
    theirs.stored(seq).await;
    assert_eq!(stored().await, 60, "the clock stands still");
    app.clock.advance(Duration::from_secs(10));
    line.stored(70).await;
}

#[tokio::test]
async fn each_search_of_an_operation_is_charged() {
    let app = limited(5, 2, 50).await;
    let search = |n: usize| {
        let one = |n: usize| format!("s{n}: search(orgId: {}, q: \"a\") {{ id }}", app.org);
        (0..n).map(one).collect::<Vec<_>>().join(" ")
    };
    let ask = async |query: String| app.operator.post("/graphql", json!({ "query": query })).await;
    let three = ask(format!("{{ {} }}", search(3))).await;
    assert_eq!(three.header("ratelimit"), "\"reads\";r=2;t=36");
    three.data();
    // In a fragment too.
    let refused = ask(format!("{{ ...F }} fragment F on Query {{ {} }}", search(3))).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "RATE_LIMITED"));
    assert!(refused.body["data"].is_null(), "{}", refused.text);
}

#[tokio::test]
async fn each_search_of_the_audit_log_is_charged() {
    let app = limited(9, 2, 50).await;
    let thrice = |search: &str| {
        let one =
            |n: usize| format!("a{n}: auditLog(orgId: {}, page: 1, limit: 1{search}) {{ total }}", app.org);
        (0..3).map(one).collect::<Vec<_>>().join(" ")
    };
    let ask = async |query: String, variables: Value| {
        let answer = app.admin.post("/graphql", json!({ "query": query, "variables": variables })).await;
        let left = answer.header("ratelimit").to_owned();
        answer.data();
        left
    };
    let left = ask(format!("{{ {} }}", thrice(", search: \"q\"")), json!({})).await;
    assert!(left.starts_with("\"reads\";r=6;"), "{left}");
    let words = format!("query($s: String) {{ {} }}", thrice(", search: $s"));
    let left = ask(words.clone(), json!({ "s": "q" })).await;
    assert!(left.starts_with("\"reads\";r=3;"), "{left}");
    // Nothing is searched for.
    for (query, variables, reads) in [
        (words.clone(), json!({}), 2),
        (words, json!({ "s": null }), 1),
        (format!("{{ {} }}", thrice("")), json!({}), 0),
    ] {
        let left = ask(query, variables).await;
        assert!(left.starts_with(&format!("\"reads\";r={reads};")), "{left}");
    }
}

#[tokio::test]
async fn each_policy_that_an_operation_tries_is_charged() {
    let app = limited(9, 2, 50).await;
    let org = app.org;
    let propose = |n: usize| format!("p{n}: proposePolicy(orgId: {org}, text: \"\") {{ ok }}");
    let simulate = format!("s: simulatePolicy(orgId: {org}, text: \"\", days: 1) {{ calls }}");
    let query = format!("{{ {} {} {} {simulate} }}", propose(0), propose(1), propose(2));
    let tried = app.admin.post("/graphql", json!({ "query": query })).await;
    assert!(tried.header("ratelimit").starts_with("\"reads\";r=5;"), "{tried:?}");
    tried.data();
}

#[tokio::test]
async fn an_address_without_a_good_credential_is_always_limited() {
    let app = limited(100, 100, 4).await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    let bad = app.anonymous.with_bearer("mst_svc_nothing");
    assert_eq!(bad.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
    assert_eq!(app.anonymous.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
    let sign_in =
        json!({ "query": "mutation { signIn(email: \"a@b.example\", password: \"x\") { accessToken } }" });
    // A batch counts as many attempts as it has operations.
    let batch = app.anonymous.post("/graphql", json!([sign_in, sign_in, sign_in])).await;
    let last = &batch.body[2]["errors"][0]["extensions"]["code"];
    assert_eq!(
        (&batch.body[1]["errors"][0]["extensions"]["code"], last),
        (&json!("SIGN_IN_FAILED"), &json!("RATE_LIMITED"))
    );
    let refused = bad.get(&path).await;
    assert_eq!(refused.problem(), (429, "RATE_LIMITED"));
    assert_eq!(refused.header("ratelimit-policy"), "\"anonymous\";q=4;w=60");
    // An address's failures aren't held against callers with a good credential, and probes aren't counted.
    app.viewer.get(&path).await.expect(200);
    assert_eq!(app.stranger.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
    assert_eq!(app.anonymous.get("/health").await.status, 200);
    // No one outside is believed about their address.
    let elsewhere = bad.request(Method::GET, &path).header("x-forwarded-for", "198.51.100.9");
    assert_eq!(Answer::of(elsewhere).await.status, 429);
}

/// A service token that no one issued, which only the database can tell from a real one.
fn invented(app: &TestApp) -> Actor {
    app.anonymous.with_bearer(Token::generate(TokenKind::Service).0.expose_secret())
}

#[tokio::test]
async fn lookups_of_invented_tokens_are_limited_by_address() {
    let app = limited(100, 100, 4).await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    // All at once, so none is ahead of its charge.
    let before = app.statements();
    let flood: Vec<Actor> = (0..40).map(|_| invented(&app)).collect();
    let answers = join_all(flood.iter().map(|actor| actor.get(&path))).await;
    let heard = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((heard(401), heard(429)), (4, 36));
    assert_eq!(app.statements() - before, 4);
    let last = invented(&app).get(&path).await;
    assert_eq!((last.problem(), last.header("retry-after")), ((429, "RATE_LIMITED"), "15"));
    assert_eq!(last.header("ratelimit-policy"), "\"anonymous\";q=4;w=60");
    // The same for other entry points: a signature with a key that may be new, a picture's URL, a socket's handshake.
    let claims = "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFZERTQSIsImtpZCI6IjAxMjM0NTY3ODlhYmNkZWYifQ.e30.AAAA";
    assert_eq!(app.anonymous.with_bearer(claims).get(&path).await.status, 429);
    assert_eq!(app.anonymous.get("/avatars/agent/1?v=1").await.problem(), (429, "RATE_LIMITED"));
    assert_eq!(app.statements() - before, 4);
    // An existing picture gets its charge back.
    app.clock.advance(Duration::from_secs(15));
    let set = "mutation($i: AvatarInput!) { setViewerAvatar(input: $i) { avatarUrl } }";
    let set = app.stranger.gql(set, json!({ "i": picture(PNG) })).await.data();
    let url = set["setViewerAvatar"]["avatarUrl"].as_str().unwrap();
    for _ in 0..3 {
        assert_eq!(app.anonymous.get(url).await.status, 200);
    }
    assert_eq!(app.anonymous.get("/avatars/agent/1?v=1").await.status, 404);
    assert_eq!(app.anonymous.get(url).await.status, 429);
}

#[tokio::test]
async fn invented_tokens_from_an_address_keep_out_no_good_credential() {
    let app = limited(100, 100, 4).await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    let (known, new) = (app.token(&["agent.view"]).await, app.token(&["agent.view"]).await);
    known.get(&path).await.expect(200);
    let exhaust = async || while invented(&app).get(&path).await.status != 429 {};
    exhaust().await;
    // Known credentials are looked up again, and so are tokens that we signed, seen before or not.
    app.forget_sessions();
    known.get(&path).await.expect(200);
    app.viewer.get(&path).await.expect(200);
    assert_eq!(app.stranger.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
    // A token that this process has never seen waits its turn, and takes nothing from the next one.
    assert_eq!(new.get(&path).await.problem(), (429, "RATE_LIMITED"));
    app.clock.advance(Duration::from_secs(15));
    new.get(&path).await.expect(200);
    assert_eq!(invented(&app).get(&path).await.status, 401);
    assert_eq!(invented(&app).get(&path).await.status, 429);
    app.forget_sessions();
    new.get(&path).await.expect(200);
    // Once revoked, it counts as invented.
    app.execute("UPDATE service_tokens SET revoked_at = 1", vec![]).await;
    app.forget_sessions();
    app.clock.advance(Duration::from_secs(60));
    assert_eq!(known.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
    exhaust().await;
    app.forget_sessions();
    let before = app.statements();
    assert_eq!(known.get(&path).await.problem(), (429, "RATE_LIMITED"));
    assert_eq!(app.statements(), before);
}

#[tokio::test]
async fn a_recently_refused_credential_is_not_looked_up_again() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    let token = app.token(&["agent.view"]).await;
    app.execute("UPDATE service_tokens SET revoked_at = 1", vec![]).await;
    app.execute("UPDATE sessions SET revoked_at = 1 WHERE user_id = $1", vec![app.viewer.user.into()]).await;
    for actor in [&token, &app.viewer] {
        assert_eq!(actor.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
        let before = app.statements();
        assert_eq!(actor.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
        assert_eq!(app.statements(), before);
    }
    // Until something has changed.
    app.execute("UPDATE service_tokens SET revoked_at = NULL", vec![]).await;
    app.forget_sessions();
    token.get(&path).await.expect(200);
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_a_bucket_of_its_own() {
    let app = TestApp::start_with(|config| {
        config.rate_limits.enabled = true;
        config.rate_limits.anonymous_per_minute = 2;
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let from = async |said: &str| {
        let request = app.anonymous.request(Method::GET, "/v1/org/1/agent").header("x-forwarded-for", said);
        Answer::of(request).await.status
    };
    assert_eq!((from("198.51.100.1").await, from("198.51.100.1").await), (401, 401));
    assert_eq!(from("198.51.100.1").await, 429);
    // A client can write anything in front of what the proxy adds.
    assert_eq!(from("203.0.113.5, 198.51.100.1").await, 429);
    assert_eq!(from("198.51.100.2").await, 401);
    // A customer's IPv6 network counts as one client.
    assert_eq!((from("2001:db8:1:2::1").await, from("2001:db8:1:2:ffff::9").await), (401, 401));
    assert_eq!((from("2001:db8:1:2:5::7").await, from("2001:db8:1:3::1").await), (429, 401));
}

#[tokio::test]
async fn without_limits_nothing_is_counted_or_reported() {
    let app = TestApp::start().await;
    let answer = app.viewer.get(&format!("/v1/org/{}", app.org)).await;
    assert_eq!((answer.status, answer.header("ratelimit"), answer.header("ratelimit-policy")), (200, "", ""));
    assert_eq!(
        app.stranger.get(&format!("/v1/org/{}", app.org)).await.body.get("retry_after"),
        None::<&Value>
    );
}

#[tokio::test]
async fn signed_webhooks_have_a_rate_for_each_channel() {
    let app = TestApp::start_with(|config| {
        config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.rate_limits.enabled = true;
        config.rate_limits.writes_per_minute = 6;
    })
    .await;
    let (_, path) = channel(&app, "https://hooks.example/out").await;
    for n in 0..6 {
        assert_eq!(bring(&app, &path, &format!("m{n}"), &hello("Hello")).await.0, 202);
    }
    let (status, refused) = bring(&app, &path, "m6", &hello("Hello")).await;
    assert_eq!((status, &refused["details"]), (429, &json!({ "limit": "writes", "retry_after": 10 })));
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(bring(&app, &path, "m6", &hello("Hello")).await.0, 202);
}
