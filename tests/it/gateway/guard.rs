//! The gateway against hosts that lie, flood, or don't read; their permitted questions; reports of their load; text for
//! live viewers.

use std::time::Duration;

use futures::{FutureExt, SinkExt};
use muster::core::resource_limits::Resource;
use muster_protocol::{HostEvent, spending::ModelCall};
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    agents::backups::BACK_UP,
    gateway::started,
    harness::{
        self, Socket, TestApp,
        gateway::{Host, Line},
        spending::CALL,
        until,
    },
};

/// A server with a running agent, its host, and a connection.
async fn running(app: &TestApp) -> (i64, i64, Host, Line) {
    let agent = app.agent().await;
    let host = app.host_of(agent).await;
    let generation = app.start_agent(agent).await;
    let mut line = host.connect().await;
    line.wait_for("COMMAND").await;
    (agent, generation, host, line)
}

#[tokio::test]
async fn a_host_can_report_about_its_own_agents_only() {
    let app = TestApp::start().await;
    let (_, _, host, mut line) = running(&app).await;
    let (neighbour, theirs) = (app.agent().await, app.other_agent().await);
    let conversation = app.conversation(neighbour).await;
    let mut viewer = Socket::of(&app.viewer).await;
    watch(&app, &mut viewer, conversation).await;
    for agent in [neighbour, theirs] {
        app.execute("UPDATE agents SET status = 'SPAWNING' WHERE id = $1", vec![agent.into()]).await;
        line.reports((agent, 0), started()).await;
        assert_eq!(app.launch_of(agent).await.1, "SPAWNING");
    }
    // A launch that has not happened is as foreign as an agent of another.
    line.report((neighbour, 7), started()).await;
    line.refused("FOREIGN").await;

    let mut line = Host { journal: [1, 3], ..host.clone() }.connect().await;
    for id in 1..3 {
        line.send(ask(id, (theirs, 0), json!({ "kind": "LAUNCH" }))).await;
        let told = line.wait_for("TOLD").await;
        assert_eq!((&told["id"], &told["given"]["kind"]), (&json!(id), &json!("REFUSED")));
    }
    line.send(delta((neighbour, 0), conversation, 0, "a lie")).await;
    line.refused("FOREIGN").await;
    viewer.settled().await;
    let touched =
        "SELECT CAST(COUNT(*) AS BIGINT) FROM agents WHERE id IN ($1, $2) AND container_id IS NOT NULL";
    assert_eq!(app.one::<i64>(touched, vec![neighbour.into(), theirs.into()]).await, 0);
}

/// Moves an agent that has stopped to a new server, which it answers.
async fn moved(app: &TestApp, agent: i64) -> i64 {
    let server = app.server().await;
    app.sets_agent(agent, json!({ "serverId": server })).await;
    server
}

#[tokio::test]
async fn a_moved_agents_late_backup_is_not_foreign() {
    let app = TestApp::start().await;
    let (agent, generation, _, mut line) = running(&app).await;
    let made = app.operator.gql(BACK_UP, json!({ "o": app.org, "i": agent })).await.data();
    let backup = made["backupAgent"]["id"].as_i64().unwrap();
    app.execute("UPDATE agents SET status = 'STOPPED' WHERE id = $1", vec![agent.into()]).await;
    moved(&app, agent).await;
    let reports = [
        json!({ "kind": "BACKED_UP", "backup_id": backup, "bytes": 1, "sha256": "ab".repeat(32), "error": null }),
        json!({ "kind": "RESTORED", "backup_id": backup, "error": null }),
    ];
    for what in [&reports[..], &reports[..]].concat() {
        line.reports((agent, generation), what).await;
    }
    assert_eq!(app.column::<String>("SELECT state FROM agent_backups").await, ["FAILED"]);
    // Of an agent that was never there.
    let neighbour = app.agent().await;
    for what in [&reports[..], &reports[..1]].concat() {
        line.report((neighbour, 0), what).await;
    }
    line.refused("FOREIGN").await;
}

#[tokio::test]
async fn what_a_launch_has_spent_counts_after_its_agent_was_moved() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": 10 * CALL })).await;
    let (agent, generation, _, mut line) = running(&app).await;
    line.reports((agent, generation), started()).await;
    let launch = harness::Host { app: &app, agent, generation };
    let lease = launch.leases().await.unwrap();
    assert_eq!(app.leased().await, (CALL, 0));
    launch.act("stop").await;
    let ended = json!({ "kind": "ENDED", "reason": "STOPPED", "code": 0, "signal": null, "detail": null });
    line.reports((agent, generation), ended).await;
    assert_eq!(app.launch_of(agent).await.1, "STOPPED");
    moved(&app, agent).await;
    // The gate hears out the calls that were open.
    let call = |input| {
        let call = ModelCall { lease_id: Some(lease.id), ..launch.call(None, input, 0) };
        json!(HostEvent::ModelCalled(call))
    };
    let returned = json!({ "kind": "LEASE_RETURNED", "lease_id": lease.id });
    for (what, leased) in [
        (call(1000), (CALL - 3000, 3000)),
        (call(2000), (CALL - 9000, 9000)),
        (returned.clone(), (0, 9000)),
        // Once more, and the connection is still there.
        (returned, (0, 9000)),
    ] {
        line.reports((agent, generation), what).await;
        assert_eq!(app.leased().await, leased);
    }
    // A launch that was to come, and a host that never had the agent.
    line.report((agent, generation + 1), call(4000)).await;
    let third = app.server().await;
    let mut other = app.joined(third).await.connect().await;
    for _ in 0..3 {
        other.report((agent, generation), call(4000)).await;
    }
    other.refused("FOREIGN").await;
    line.reports((agent, generation), started()).await;
    assert_eq!(app.launch_of(agent).await, (generation, "STOPPED".to_owned()), "nothing else counts");
    assert_eq!(app.leased().await, (0, 9000));
}

#[tokio::test]
async fn invalid_frames_are_counted_and_end_the_connection() {
    let app = TestApp::start().await;
    let (agent, generation, host, mut line) = running(&app).await;
    line.socket.send(Message::text("{")).await.unwrap();
    line.socket.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    line.reports((agent, generation), started()).await;
    line.send(json!({ "frame": "EVENT", "seq": "canary-in-a-frame" })).await;
    let refused = line.refused("MALFORMED").await;
    assert!(!refused.to_string().contains("canary"), "{refused}");
    // HELLO is sent once, and what was not sent can't be acknowledged.
    let host = Host { journal: [1, 1], ..host };
    let mut line = host.connect().await;
    line.send(host.hello()).await;
    line.send(json!({ "frame": "RECEIVED", "through": 1_000 })).await;
    line.send(json!({ "frame": "WELCOME" })).await;
    line.refused("MALFORMED").await;
}

#[tokio::test]
async fn a_frame_that_is_too_large_ends_the_connection() {
    let app = TestApp::start().await;
    let (agent, generation, _, mut line) = running(&app).await;
    let text = json!({ "kind": "AUTH_REQUIRED", "detail": "x".repeat(1 << 20) });
    let event = line.event((agent, generation), text);
    // The service may close before it has read everything.
    let _ = line.socket.send(Message::text(event.to_string())).await;
    loop {
        let frame = line.next().await;
        if !frame["closed"].is_null() {
            break;
        }
        assert!(frame["code"] == "MALFORMED", "{frame}");
    }
    let line = app.core.resource_limits.limit(Resource::Hosts);
    until("the place is given back", async || line.total() == 0).await;
}

#[tokio::test]
async fn a_host_has_few_connections_and_its_bytes_count() {
    let app = TestApp::start().await;
    let (agent, generation, host, mut line) = running(&app).await;
    let mut silent = Vec::new();
    for _ in 0..7 {
        silent.push(host.dial().await.unwrap());
    }
    assert_eq!(host.dial().await.err(), Some(429));
    let bodies = app.core.resource_limits.limit(Resource::Bodies);
    // Nothing can be stored meanwhile.
    let writing = app.scope().begin().await.unwrap();
    writing.connection().execute_unprepared("UPDATE servers SET name = name").await.unwrap();
    let text = json!({ "kind": "AUTH_REQUIRED", "detail": "x".repeat(100_000) });
    for _ in 0..60 {
        line.report((agent, generation), text.clone()).await;
    }
    until("the window is full", async || bodies.total() > 3_900_000).await;
    // One more waits for its place in the window.
    assert!(bodies.total() <= (4 << 20) + 101_000, "{}", bodies.total());
    drop(writing);
    line.stored(60).await;
    assert_eq!(bodies.total(), 0);
}

#[tokio::test]
async fn a_host_that_reads_nothing_is_sent_little_and_closed() {
    let app = TestApp::start_with(|config| config.limits.write_timeout_seconds = 1).await;
    let (agent, generation, _, mut line) = running(&app).await;
    let long = "x".repeat(400_000);
    app.execute("UPDATE agents SET description = $1 WHERE id = $2", vec![long.into(), agent.into()]).await;
    // Each answer is that large, and none is read.
    for id in 0..200 {
        let ask = ask(id, (agent, generation), json!({ "kind": "LAUNCH" }));
        if line.socket.send(Message::text(ask.to_string())).await.is_err() {
            break;
        }
    }
    let hosts = app.core.resource_limits.limit(Resource::Hosts);
    until("it is closed", async || hosts.total() == 0).await;
    let answers = app.core.resource_limits.limit(Resource::Answers);
    until("its answers are given back", async || answers.total() == 0).await;
}

fn ask(id: i64, (agent, generation): (i64, i64), wanted: Value) -> Value {
    let mut ask = json!({ "frame": "ASK", "id": id, "agent_id": agent, "generation": generation });
    ask["wanted"] = wanted;
    ask
}

#[tokio::test]
async fn a_plan_is_only_for_the_current_launch() {
    let app = TestApp::start().await;
    let (agent, generation, host, mut line) = running(&app).await;
    line.send(ask(7, (agent, generation), json!({ "kind": "LAUNCH" }))).await;
    let told = line.wait_for("TOLD").await;
    assert_eq!((&told["id"], &told["given"]["kind"]), (&json!(7), &json!("LAUNCH")), "{told}");
    assert_eq!(told["given"]["image"], "registry.example/agent:1");
    line.send(ask(8, (agent, generation - 1), json!({ "kind": "LAUNCH" }))).await;
    assert_eq!(line.wait_for("TOLD").await["given"]["kind"], "REFUSED");
    for status in ["STOPPED", "STOPPING", "ERROR"] {
        app.execute("UPDATE agents SET status = $1 WHERE id = $2", vec![status.into(), agent.into()]).await;
        line.send(ask(9, (agent, generation), json!({ "kind": "LAUNCH" }))).await;
        let told = line.wait_for("TOLD").await;
        assert!(told["given"]["reason"].as_str().unwrap().contains(status), "{told}");
    }
    // An old connection learns nothing, even before it knows that it is old.
    app.execute("UPDATE agents SET status = 'RUNNING' WHERE id = $1", vec![agent.into()]).await;
    app.execute("UPDATE servers SET host_epoch = host_epoch + 1 WHERE id = $1", vec![host.server.into()])
        .await;
    line.send(ask(10, (agent, generation), json!({ "kind": "LAUNCH" }))).await;
    let refused = line.next().await;
    assert_eq!((&refused["frame"], &refused["code"]), (&json!("REFUSED"), &json!("SUPERSEDED")));
}

async fn load(app: &TestApp, line: &mut Line, server: i64, ram: f64) {
    app.clock.advance(Duration::from_secs(6));
    line.send(json!({ "frame": "LOAD", "cpu_pct": 10.0, "ram_pct": ram, "load": [8.0, 2.0, 1.0], "uptime_seconds": 60 }))
        .await;
    let stored = || app.one::<i64>("SELECT last_seen_at FROM servers WHERE id = $1", vec![server.into()]);
    until("the reading is stored", async || stored().await == app.clock.now().0).await;
}

#[tokio::test]
async fn a_high_load_is_one_alert_and_recovers() {
    let app = TestApp::start().await;
    app.sets(json!({ "serverAlertRamPct": 90 })).await;
    let (_, _, host, mut line) = running(&app).await;
    let server = host.server;
    let mut heard = app.core.events.subscribe(app.scope().org, &muster::core::access::Caller::System);
    let status = || app.one::<String>("SELECT status FROM servers WHERE id = $1", vec![server.into()]);
    let alerts =
        || app.column::<String>("SELECT body FROM approvals WHERE kind = 'SERVER_ALERT' ORDER BY id");
    for ram in [95.0, 50.0, 95.0, 95.0] {
        load(&app, &mut line, server, ram).await;
    }
    assert!(alerts().await.is_empty() && heard.next().now_or_never().is_none(), "measurements are no news");
    let ram: f64 = app.one("SELECT ram_pct FROM servers WHERE id = $1", vec![server.into()]).await;
    assert!((ram - 95.0).abs() < 0.01);
    for _ in 0..3 {
        load(&app, &mut line, server, 96.0).await;
    }
    until("it is DEGRADED", async || status().await == "DEGRADED").await;
    assert_eq!(alerts().await.len(), 1);
    assert!(alerts().await[0].contains("90.0 %"), "{:?}", alerts().await);
    // The news come a moment after the commit.
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let Some((muster::core::News::Changed(event), _)) = heard.next().await else { panic!("no news") };
        kinds.push(event.kind.as_str());
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["APPROVAL", "SERVER"]);
    assert!(heard.next().now_or_never().is_none(), "and nothing else");
    for _ in 0..3 {
        load(&app, &mut line, server, 20.0).await;
    }
    until("it is ONLINE", async || status().await == "ONLINE").await;
    // The alert is still open, so no connection opens a second one.
    let mut line = Host { journal: [1, 0], ..host }.connect().await;
    for _ in 0..3 {
        load(&app, &mut line, server, 96.0).await;
    }
    until("it is DEGRADED", async || status().await == "DEGRADED").await;
    assert_eq!(alerts().await.len(), 1);
}

#[tokio::test]
async fn readings_are_stored_every_few_seconds() {
    let app = TestApp::start().await;
    let (agent, generation, host, mut line) = running(&app).await;
    load(&app, &mut line, host.server, 10.0).await;
    app.clock.advance(Duration::from_secs(4));
    line.send(json!({ "frame": "LOAD", "ram_pct": 99.0 })).await;
    line.reports((agent, generation), started()).await;
    let ram = || app.one::<f64>("SELECT ram_pct FROM servers WHERE id = $1", vec![host.server.into()]);
    assert!(ram().await < 11.0);
    app.clock.advance(Duration::from_secs(2));
    line.send(json!({ "frame": "LOAD", "ram_pct": 1e300 })).await;
    until("the next one is stored", async || ram().await > 99.9).await;
}

const WATCH: &str = "subscription($o: Id!, $c: Id!) { messageDeltas(orgId: $o, conversationId: $c) { message offset text thinking } }";

async fn watch(app: &TestApp, viewer: &mut Socket, conversation: i64) {
    viewer.subscribe("1", WATCH, json!({ "o": app.org, "c": conversation })).await;
    let (org, conversation) = (app.scope().org, muster::base::ids::ConversationId(conversation));
    until("a subscriber watches", async || app.core.events.deltas.is_watched(org, conversation)).await;
}

fn delta((agent, generation): (i64, i64), conversation: i64, offset: usize, text: &str) -> Value {
    json!({
        "frame": "DELTA", "agent_id": agent, "generation": generation, "conversation_id": conversation,
        "message": "1.2", "thinking": false, "offset": offset, "text": text,
    })
}

#[tokio::test]
async fn text_that_is_being_written_goes_to_those_who_may_see_it() {
    let app = TestApp::start().await;
    let (agent, generation, _, mut line) = running(&app).await;
    let (conversation, other) = (app.conversation(agent).await, app.conversation(agent).await);
    let gone = app.person("VIEWER", true).await;
    let (mut viewer, mut leaver) = (Socket::of(&app.viewer).await, Socket::of(&gone).await);
    watch(&app, &mut viewer, conversation).await;
    watch(&app, &mut leaver, conversation).await;
    until("both watch", async || app.core.resource_limits.limit(Resource::Subscriptions).total() == 2).await;
    line.send(delta((agent, generation), other, 0, "not here")).await;
    line.send(delta((agent, generation), conversation, 0, "Hello")).await;
    line.send(delta((agent, generation), conversation, 5, ", world")).await;
    for (offset, text) in [(0, "Hello"), (5, ", world")] {
        let expected = json!({ "message": "1.2", "offset": offset, "text": text, "thinking": false });
        assert_eq!(viewer.next().await["payload"]["data"]["messageDeltas"], expected);
    }
    // A member who loses the right gets no more text, as in every subscription.
    app.execute("DELETE FROM members WHERE user_id = $1", vec![gone.user.unwrap().into()]).await;
    app.forget_sessions();
    loop {
        let next = leaver.next().await;
        if next["payload"]["errors"].is_array() {
            assert_eq!(next["payload"]["errors"][0]["extensions"]["code"], "NOT_A_MEMBER", "{next}");
            break;
        }
    }
    assert_eq!(leaver.next().await["type"], "complete");
    let mut stranger = Socket::of(&app.stranger).await;
    stranger.subscribe("1", WATCH, json!({ "o": app.org, "c": conversation })).await;
    assert_eq!(stranger.next().await["payload"]["errors"][0]["extensions"]["code"], "NOT_A_MEMBER");
    stranger.subscribe("2", WATCH, json!({ "o": app.other_org, "c": conversation })).await;
    while stranger.next().await["payload"]["errors"][0]["extensions"]["code"] != "NOT_FOUND" {}
    // Nothing of it is kept.
    assert_eq!(app.one::<i64>("SELECT CAST(COUNT(*) AS BIGINT) FROM messages", vec![]).await, 0);
    line.send(delta((agent, generation), conversation, 0, &"x".repeat(5_000))).await;
    line.refused("MALFORMED").await;
}
