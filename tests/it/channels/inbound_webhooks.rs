//! Channels that carry messages in: signed requests, which become messages and turns. The other side is the official library of
//! Standard Webhooks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, body::Bytes};
use muster::core::resource_limits::Resource;
use muster_protocol::{event::TurnOutcome, plan::Part};
use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::{
    channels::connect,
    conversations::turns::write,
    harness::{PATIENCE, TestApp, is_postgres, until},
};

/// 24 bytes.
pub const INBOUND: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub const OUTBOUND: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

pub async fn app() -> TestApp {
    TestApp::start_with(|config| config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()]).await
}

/// A channel of signed requests: its id and path.
pub async fn channel(app: &TestApp, outbound_url: &str) -> (i64, String) {
    let agent = app.agent().await;
    let body = json!({
        "name": "Orders", "transport": "WEBHOOK", "agent_id": agent,
        "webhook": { "outbound_url": outbound_url, "inbound_secret": INBOUND, "outbound_secret": OUTBOUND },
    });
    let made = app.owner.post(&format!("/v1/org/{}/channel", app.org), body).await.expect(201);
    (made["id"].as_i64().unwrap(), made["inbound_path"].as_str().unwrap().to_owned())
}

/// A channel of signed requests that only receives.
pub fn inbound(agent: i64) -> Value {
    json!({
        "name": "Orders", "transport": "WEBHOOK", "agent_id": agent, "direction": "INBOUND",
        "webhook": { "inbound_secret": INBOUND },
    })
}

/// Sends a request signed by the official library.
pub async fn bring(app: &TestApp, path: &str, id: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let at = app.clock.now().unix_seconds();
    let signature = Webhook::new(INBOUND).unwrap().sign(id, at, body.as_bytes()).unwrap();
    request(app, path, (id, at, &signature), body).await
}

async fn request(
    app: &TestApp,
    path: &str,
    (id, at, signature): (&str, i64, &str),
    body: String,
) -> (u16, Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(format!("{}{path}", app.base)).body(body);
    let request = request.header("webhook-id", id).header("webhook-timestamp", at);
    let answer = request.header("webhook-signature", signature).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or_default())
}

/// Brings all at once, each with an id of its own.
async fn bring_together(app: &TestApp, path: &str, said: &[Value]) -> Vec<(u16, Value)> {
    let named: Vec<_> =
        said.iter().enumerate().map(|(n, said)| (format!("together-{n}"), said.clone())).collect();
    bring_named(app, path, &named).await
}

/// Brings all at once, with their ids. Nothing is written until each has been judged, so that they share commits. Which comes
/// first is open.
pub async fn bring_named(app: &TestApp, path: &str, said: &[(String, Value)]) -> Vec<(u16, Value)> {
    let holder = app.database.begin().await.unwrap();
    holder.execute_unprepared("UPDATE agents SET updated_at = updated_at").await.unwrap();
    // One statement finds the channel, one asks its whitelist.
    let judged = app.statements() + 2 * said.len() as u64;
    let all = said.iter().map(|(id, said)| bring(app, path, id, said));
    let release = async {
        until("all are judged", async || app.statements() >= judged).await;
        holder.commit().await.unwrap();
    };
    tokio::join!(futures::future::join_all(all), release).0
}

/// From now on, messages with this word can't be stored.
pub async fn forbid(app: &TestApp, word: &str) {
    let forbidden = if is_postgres() {
        format!(
            "ALTER TABLE messages ADD CONSTRAINT forbidden CHECK (CAST(content AS TEXT) NOT LIKE '%{word}%')"
        )
    } else {
        format!(
            "CREATE TRIGGER forbidden BEFORE INSERT ON messages WHEN NEW.content LIKE '%{word}%' \
             BEGIN SELECT RAISE(ABORT, 'forbidden'); END"
        )
    };
    app.execute(&forbidden, vec![]).await;
}

pub fn hello(text: &str) -> Value {
    json!({ "text": text, "origin_id": "ada", "origin_name": "Ada", "thread": "t1", "title": "An order" })
}

#[tokio::test]
async fn a_signed_request_becomes_a_message_and_a_turn() {
    let app = app().await;
    let (channel, path) = channel(&app, "https://hooks.example/out").await;
    let (status, taken) = bring(&app, &path, "m1", &hello("Where is my order?")).await;
    assert_eq!((status, &taken["status"]), (202, &json!("accepted")), "{taken}");
    let conversation = taken["conversation_id"].as_i64().unwrap();
    let sql = format!(
        "SELECT m.role || ' ' || m.author_name || ' ' || t.cause || ' ' || t.state || ' ' || c.title || ' ' || c.thread_key \
         FROM messages m JOIN turns t ON t.id = m.turn_id JOIN conversations c ON c.id = m.conversation_id \
         WHERE m.conversation_id = {conversation} AND m.via_channel_id = {channel}"
    );
    assert_eq!(app.column::<String>(&sql).await, ["USER Ada CHANNEL QUEUED An order t1"]);
    let contacts = app.column::<String>("SELECT name FROM contacts WHERE name = 'Ada'").await;
    assert_eq!(contacts, ["Ada"]);
    // The same conversation, the same person, the same turn.
    let (_, next) = bring(&app, &path, "m2", &hello("It is late.")).await;
    assert_eq!(next["conversation_id"], conversation);
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM identities WHERE origin_id = 'ada'").await, [1]);
    let sql = format!("SELECT COUNT(*) FROM turns WHERE conversation_id = {conversation}");
    assert_eq!(app.column::<i64>(&sql).await, [1]);
}

#[tokio::test]
async fn what_comes_twice_is_stored_once() {
    let app = app().await;
    let (_, path) = channel(&app, "https://hooks.example/out").await;
    let said = hello("Once");
    let (first, second) = tokio::join!(bring(&app, &path, "m1", &said), bring(&app, &path, "m1", &said));
    let mut statuses = [first.0, second.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 202], "{first:?} {second:?}");
    let (status, again) = bring(&app, &path, "m1", &said).await;
    assert_eq!((status, again), (200, json!({ "status": "ignored", "reason": "duplicate" })));
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM messages WHERE dedupe_key = 'm1'").await, [1]);
}

#[tokio::test]
async fn a_message_costs_few_statements_and_many_at_once_fewer_each() {
    let app = app().await;
    let (_, path) = channel(&app, "https://hooks.example/out").await;
    assert_eq!(bring(&app, &path, "first", &hello("Hello")).await.0, 202);
    let (mut reads, mut writes) = (u64::MAX, u64::MAX);
    for n in 0..8 {
        let before = (app.statements(), app.writes());
        assert_eq!(bring(&app, &path, &format!("m{n}"), &hello("It is late.")).await.0, 202);
        reads = reads.min(app.statements() - before.0);
        writes = writes.min(app.writes() - before.1);
    }
    // On PostgreSQL the other replicas are notified.
    assert!(reads <= 2 && writes <= 10 + u64::from(is_postgres()), "{reads} reads, {writes} writes");
    let (said, before) = (vec![hello("Where is it?"); 20], app.writes());
    let answers = bring_together(&app, &path, &said).await;
    assert!(answers.iter().all(|(status, _)| *status == 202), "{answers:?}");
    // One each, to find the conversation. The rest is shared in each commit, and the first one went by itself.
    let writes = app.writes() - before;
    assert!(writes <= 3 * 20, "{writes} writes");
    let seqs = app.column::<i64>("SELECT seq FROM messages ORDER BY seq").await;
    assert_eq!(seqs, (1..=29).collect::<Vec<_>>());
    // In conversations of their own they take three each: to find it, its turn, its summary.
    let own = (0..20).map(|n| {
        json!({ "text": "Mine?", "origin_id": "ada", "origin_name": "Ada", "thread": format!("own-{n}") })
    });
    let own: Vec<_> = own.collect();
    for (n, said) in own.iter().enumerate() {
        assert_eq!(bring(&app, &path, &format!("begins-{n}"), said).await.0, 202);
    }
    let own: Vec<_> = (0..).map(|n| format!("own-{n}")).zip(own).collect();
    let before = app.writes();
    let answers = bring_named(&app, &path, &own).await;
    assert!(answers.iter().all(|(status, _)| *status == 202), "{answers:?}");
    let writes = app.writes() - before;
    assert!(writes <= 4 * 20 + 10, "{writes} writes");
}

#[tokio::test]
async fn what_comes_twice_at_once_is_stored_once() {
    let app = app().await;
    let (_, path) = channel(&app, "https://hooks.example/out").await;
    assert_eq!(bring(&app, &path, "together-2", &hello("Once")).await.0, 202);
    let said = vec![hello("Once"); 5];
    let answers = bring_together(&app, &path, &said).await;
    let statuses: Vec<_> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [202, 202, 200, 202, 202]);
    assert_eq!(answers[2].1, json!({ "status": "ignored", "reason": "duplicate" }));
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM messages").await, [5]);
}

#[tokio::test]
async fn a_request_without_the_channels_signature_is_refused() {
    let app = app().await;
    let (_, path) = channel(&app, "https://hooks.example/out").await;
    let (body, at) = (hello("Let me in").to_string(), app.clock.now().unix_seconds());
    let other = Webhook::new(OUTBOUND).unwrap().sign("m1", at, body.as_bytes()).unwrap();
    assert_eq!(request(&app, &path, ("m1", at, &other), body.clone()).await.0, 401);
    let old = Webhook::new(INBOUND).unwrap().sign("m1", at - 301, body.as_bytes()).unwrap();
    assert_eq!(request(&app, &path, ("m1", at - 301, &old), body.clone()).await.0, 401);
    assert_eq!(request(&app, "/webhooks/webhook/none", ("m1", at, &other), body.clone()).await.0, 404);
    let slack = path.replace("/webhook/", "/slack/");
    assert_eq!(request(&app, &slack, ("m1", at, &other), body).await.0, 404);
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM messages").await, [0]);
}

#[tokio::test]
async fn an_unlisted_sender_is_refused_and_let_in_by_one_step() {
    let app = app().await;
    let (channel, path) = channel(&app, "https://hooks.example/out").await;
    let whitelist = format!("/v1/org/{}/channel/{channel}/whitelist", app.org);
    app.owner.post(&whitelist, json!({ "origin_id": "bob" })).await.expect(200);
    let refused = json!({ "status": "ignored", "reason": "not_whitelisted" });
    let (writes, begun) = (app.writes(), Instant::now());
    for n in 0..60 {
        assert_eq!(bring(&app, &path, &format!("m{n}"), &hello("Psst")).await, (200, refused.clone()));
    }
    // The first one asked for access; besides, what was refused is written once a second, however long this takes.
    let (writes, seconds) = (app.writes() - writes, begun.elapsed().as_secs() + 1);
    assert!(writes <= 24 + 4 * seconds, "{writes} statements in {seconds} s");
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { refused { originId originName reason count } } }";
    let variables = json!({ "o": app.org, "c": channel });
    let listed = async || app.viewer.gql(query, variables.clone()).await.data()["channel"]["refused"].clone();
    until("all are counted", async || listed().await[0]["count"] == 60).await;
    let expected =
        json!([{ "originId": "ada", "originName": "Ada", "reason": "NOT_WHITELISTED", "count": 60 }]);
    assert_eq!(listed().await, expected);
    let asked = "SELECT COUNT(*) FROM approvals WHERE kind = 'ACCESS_REQUEST' AND status = 'PENDING'";
    assert_eq!(app.column::<i64>(asked).await, [1]);
    app.owner.post(&whitelist, json!({ "origin_id": "ada" })).await.expect(200);
    assert_eq!(listed().await, json!([]));
    assert_eq!(bring(&app, &path, "m99", &hello("Thanks")).await.0, 202);
}

#[tokio::test]
async fn an_access_request_shows_the_address_before_the_name() {
    let app = app().await;
    let (channel, path) = channel(&app, "https://hooks.example/out").await;
    let whitelist = format!("/v1/org/{}/channel/{channel}/whitelist", app.org);
    app.owner.post(&whitelist, json!({ "origin_id": "bob" })).await.expect(200);
    let long = "x".repeat(200);
    let cut = format!("{}…", "x".repeat(57));
    let rows = [
        ("s1", "Ada ` # [Allow](https://evil.test)", "Ada ' # [Allow](https://evil.test)"),
        ("s2", "\u{202e}nimda\u{200b}", "nimda"),
        ("s3", &long, &cut),
    ];
    for (origin, name, _) in rows {
        let said = json!({ "text": "Psst", "origin_id": origin, "origin_name": name });
        assert_eq!(bring(&app, &path, origin, &said).await.0, 200);
    }
    let sql = "SELECT title || body FROM approvals WHERE kind = 'ACCESS_REQUEST' ORDER BY origin_id";
    until("all are asked about", async || app.column::<String>(sql).await.len() == 3).await;
    for (asked, (origin, _, shown)) in app.column::<String>(sql).await.iter().zip(rows) {
        assert!(asked.starts_with(&format!("{origin} ({shown}) wants to write to ")), "{asked}");
        assert!(asked.contains(&format!("A message of `{origin}` (`{shown}`) was refused")), "{asked}");
    }
}

#[tokio::test]
async fn letting_a_sender_in_ends_their_access_request() {
    let app = app().await;
    let (channel, path) = channel(&app, "https://hooks.example/out").await;
    let whitelist = format!("/v1/org/{}/channel/{channel}/whitelist", app.org);
    let let_in = async |origin: &str| {
        app.owner.post(&whitelist, json!({ "origin_id": origin })).await.expect(200);
    };
    let come = async |origins: &[&str]| {
        for origin in origins {
            let mut said = hello("Psst");
            said["origin_id"] = json!(origin);
            assert_eq!(bring(&app, &path, origin, &said).await.0, 200);
        }
    };
    let asked = async || {
        let sql = "SELECT origin_id || ' ' || COALESCE(outcome, status) FROM approvals \
                   WHERE kind = 'ACCESS_REQUEST' ORDER BY origin_id";
        app.column::<String>(sql).await
    };
    let_in("bob").await;
    come(&["s1", "s2", "s3"]).await;
    until("all are asked about", async || asked().await.len() == 3).await;
    let_in("s1").await;
    assert_eq!(asked().await, ["s1 WITHDRAWN", "s2 PENDING", "s3 PENDING"]);
    let_in("s2").await;
    let_in("s3").await;
    come(&["s4", "s5"]).await;
    until("the others are asked about", async || asked().await.len() == 5).await;
    let ended = ["s1 WITHDRAWN", "s2 WITHDRAWN", "s3 WITHDRAWN", "s4 PENDING", "s5 PENDING"];
    assert_eq!(asked().await, ended);
}

#[tokio::test]
async fn a_turn_says_that_another_wrote_before_it() {
    let app = app().await;
    let host = app.running_agent().await;
    let made = connect(&app, inbound(host.agent)).await;
    let path = made["inbound_path"].as_str().unwrap();
    let told = async |id: &str, said: Value| {
        bring(&app, path, id, &said).await;
        let turn = *host.given().await.last().unwrap();
        let plan = host.takes(turn).await;
        host.turn_ended(turn, TurnOutcome::Done).await;
        let authors = plan.prompt.into_iter().filter_map(|part| match part {
            Part::Text { author, .. } => author,
            _ => None,
        });
        (authors.collect::<Vec<_>>().concat(), plan.is_shared)
    };
    let of = |origin: &str, thread: &str| json!({ "text": "Keep it", "origin_id": origin, "thread": thread });
    assert_eq!(told("m1", hello("Keep my account.")).await, ("Ada".to_owned(), false));
    assert_eq!(told("m2", hello("Please.")).await, ("Ada".to_owned(), false));
    assert_eq!(
        told("m3", of("bob", "t1")).await,
        ("bob".to_owned(), true),
        "an author without a name is an id"
    );
    assert_eq!(told("m4", hello("No.")).await, ("Ada".to_owned(), true));
    assert_eq!(told("m5", of("bob", "t2")).await, ("bob".to_owned(), false), "in a conversation of his own");
}

#[tokio::test]
async fn instructions_reach_only_the_channels_conversations() {
    let app = app().await;
    let host = app.running_agent().await;
    let mut body = inbound(host.agent);
    body["instructions"] = json!("Promise no refunds.");
    let made = connect(&app, body).await;
    let path = made["inbound_path"].as_str().unwrap();
    let told = async || {
        let turn = *host.given().await.last().unwrap();
        let plan = host.takes(turn).await;
        host.turn_ended(turn, TurnOutcome::Done).await;
        plan.instructions
    };
    bring(&app, path, "m1", &hello("Where is my order?")).await;
    let first = told().await;
    assert!(first.contains("“Orders” (WEBHOOK)") && first.ends_with("\nPromise no refunds."), "{first}");
    let edit = format!("/v1/org/{}/channel/{}", app.org, made["id"]);
    app.owner.patch(&edit, json!({ "instructions": "Promise nothing." })).await.expect(200);
    bring(&app, path, "m2", &hello("It is late.")).await;
    assert!(told().await.ends_with("\nPromise nothing."));
    app.owner.patch(&edit, json!({ "instructions": null })).await.expect(200);
    bring(&app, path, "m3", &hello("Hello?")).await;
    assert_eq!(told().await, "");
    app.owner.patch(&edit, json!({ "instructions": "Promise nothing." })).await.expect(200);
    write(&app, app.conversation(host.agent).await, "In the panel").await;
    assert_eq!(told().await, "");
    app.sets_agent(host.agent, json!({ "instructions": "Be kind." })).await;
    bring(&app, path, "m4", &hello("Thank you.")).await;
    let both = told().await;
    assert!(both.starts_with("Your instructions:\nBe kind.\n\nIn this conversation"), "{both}");
    assert!(both.ends_with("\nPromise nothing."), "{both}");
}

/// Files that come with messages are in memory until these are stored, so their bytes have a bound: of many such
/// requests, those beyond the bound are asked to retry, and nothing is lost.
#[tokio::test]
async fn the_bytes_of_files_that_come_at_once_are_bounded() {
    const FILE: usize = 400 << 10;
    let app = TestApp::start_with(|config| {
        config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.limits.bodies_bytes = 3 * FILE;
    })
    .await;
    let (_, path) = channel(&app, "http://127.0.0.1:9/").await;
    // Sends all but the last byte, and that one once another one has been refused.
    let everyone = Arc::new(tokio::sync::Semaphore::new(0));
    let url = slow_file(&app, &everyone, FILE).await;
    let refused = AtomicBool::new(false);
    let bring_file = async |n: usize| {
        let mut body = hello(&format!("Message {n}"));
        body["attachments"] = json!([{ "name": "a.bin", "url": url }]);
        let status = bring(&app, &path, &format!("m{n}"), &body).await.0;
        refused.fetch_or(status != 202, Ordering::Relaxed);
        status
    };
    let most = async {
        let mut most = 0;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            most = most.max(app.core.resource_limits.limit(Resource::Bodies).total());
            if most >= FILE - 1 && refused.load(Ordering::Relaxed) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        everyone.add_permits(1_000);
        most
    };
    let all = futures::future::join_all((0..10).map(&bring_file));
    let (most, statuses) = tokio::join!(most, all);
    assert!((FILE - 1..=3 * FILE).contains(&most), "{most} bytes were held");
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert!(count(202) >= 1 && count(202) + count(429) + count(503) == 10, "{statuses:?}");
    assert!(count(202) < 10, "{statuses:?}");
    for (n, status) in statuses.iter().enumerate() {
        // The bytes of those before are given back a moment after their answer.
        let mut status = *status;
        while status != 202 {
            assert!([429, 503].contains(&status), "{status}");
            tokio::time::sleep(Duration::from_millis(10)).await;
            status = bring_file(n).await;
        }
    }
    let sizes = app.column::<i64>("SELECT CAST(SUM(size_bytes) AS BIGINT) FROM attachments").await;
    assert_eq!(sizes, [10 * i64::try_from(FILE).unwrap()]);
}

#[tokio::test]
async fn a_text_that_waits_for_its_files_is_counted() {
    const TEXT: usize = 400 << 10;
    let app = app().await;
    let (_, path) = channel(&app, "http://127.0.0.1:9/").await;
    let permits = Arc::new(tokio::sync::Semaphore::new(0));
    let mut body = hello(&"x".repeat(TEXT));
    body["attachments"] = json!([{ "name": "a.bin", "url": slow_file(&app, &permits, 1_000).await }]);
    let held = || app.core.resource_limits.limit(Resource::Bodies).total();
    let counted = async {
        until("both are counted", async || held() == TEXT + 999).await;
        permits.add_permits(1);
    };
    let (brought, ()) = tokio::join!(bring(&app, &path, "m1", &body), counted);
    assert_eq!(brought.0, 202, "{}", brought.1);
    until("they are given back", async || held() == 0).await;
}

/// A file of this length, whose last byte is sent once there is a permit.
async fn slow_file(app: &TestApp, permits: &Arc<tokio::sync::Semaphore>, length: usize) -> String {
    let permits = Arc::clone(permits);
    let answer = move || async move {
        let last = futures::stream::once(async move {
            permits.acquire().await.unwrap().forget();
            Ok::<_, std::io::Error>(Bytes::from_static(b"."))
        });
        let first = futures::stream::once(async move { Ok(Bytes::from(vec![b'.'; length - 1])) });
        axum::body::Body::from_stream(futures::StreamExt::chain(first, last))
    };
    let router = Router::new().route("/a.bin", axum::routing::get(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a.bin", listener.local_addr().unwrap());
    app.core.tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}
