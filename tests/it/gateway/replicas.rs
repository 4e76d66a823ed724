//! The gateway across replicas: wherever a host is connected, commands reach it, a cut reaches it, and only its newest
//! connection counts. And what the gateway writes to the log.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use muster::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ConversationId,
    },
    core::{
        Core, Event, News,
        access::Caller,
        config::{Log, LogFormat},
        events,
    },
    domain::hosts::wake_connections,
    service::Service,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    gateway::{
        hosted,
        logs::{asked, batch},
        started, with_host,
    },
    harness::{
        Actor, Socket, TestApp,
        gateway::{Host, Line},
        until,
    },
};

/// Another replica, which serves.
struct Replica {
    core: Arc<Core>,
    base: String,
}

impl Replica {
    async fn start(app: &TestApp) -> Self {
        let core = app.replica(None).await;
        let router = Service::build(Arc::clone(&core)).unwrap().router();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = Arc::clone(&core);
        let until = tokio_util::sync::CancellationToken::new();
        core.tasks
            .spawn(async move { muster::api::middleware::serve(listener, router, &serving, until).await });
        for core in [&app.core, &core] {
            core.tasks.spawn_last(events::relay(Arc::clone(core)));
        }
        hears(app, &core, &app.core).await;
        hears(app, &app.core, &core).await;
        Self { core, base }
    }

    /// The host, when it connects here.
    fn of(&self, host: &Host) -> Host {
        Host { base: self.base.clone(), ..host.clone() }
    }

    fn actor(&self, actor: &Actor) -> Actor {
        actor.at(&self.base).with_bearer(actor.bearer())
    }
}

/// Waits until `one` hears what `other` tells.
async fn hears(app: &TestApp, one: &Core, other: &Core) {
    let org = app.scope().org;
    let mut news = one.events.subscribe(org, &Caller::System);
    let event = Event::new(org, ChangeOp::Updated, RecordKind::Skill, 1_i64);
    loop {
        other.events.publish(event);
        let heard = timeout(Duration::from_millis(50), news.next()).await;
        if heard.is_ok_and(|heard| heard.unwrap().0 == News::Changed(event)) {
            return;
        }
    }
}

fn delta((agent, generation): (i64, i64), conversation: i64, offset: i64) -> serde_json::Value {
    json!({
        "frame": "DELTA", "agent_id": agent, "generation": generation, "conversation_id": conversation,
        "message": "1.2", "thinking": false, "offset": offset, "text": "x",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_command_reaches_its_host_on_another_replica() {
    let (app, agent, host) = hosted().await;
    let there = Replica::start(&app).await;
    let mut line = there.of(&host).connect().await;
    let mut took = Vec::new();
    for seq in 1..=20 {
        app.execute("UPDATE agents SET status = 'STOPPED' WHERE id = $1", vec![agent.into()]).await;
        let began = Instant::now();
        app.start_agent(agent).await;
        assert_eq!(line.wait_for("COMMAND").await["seq"], seq);
        took.push(began.elapsed());
        line.send(json!({ "frame": "RECEIVED", "through": seq })).await;
    }
    took.sort_unstable();
    eprintln!(
        "from the request here to the command there, with the request's own time: median {:?}",
        took[10]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_of_two_sockets_the_older_one_writes_nothing() {
    let (app, agent, host) = hosted().await;
    let generation = app.start_agent(agent).await;
    let there = Replica::start(&app).await;
    let mut old = host.connect().await;
    assert_eq!(old.wait_for("COMMAND").await["seq"], 1);
    let mut new = there.of(&host).connect().await;
    // Its own replica has not told the old one yet, or has: nothing of what it says counts.
    let event = old.event((agent, generation), started());
    let _ = old.try_send(event).await;
    let _ = old.try_send(json!({ "frame": "RECEIVED", "through": 1 })).await;
    old.refused("SUPERSEDED").await;
    let server = "SELECT event_seq + command_ack FROM servers WHERE id = $1";
    assert_eq!(app.one::<i64>(server, vec![host.server.into()]).await, 0);
    assert_eq!(app.launch_of(agent).await.1, "SPAWNING");
    assert_eq!(new.wait_for("COMMAND").await["seq"], 1);
    new.reports((agent, generation), started()).await;
    assert_eq!(app.launch_of(agent).await.1, "RUNNING");
    // And back again.
    let mut newest = Host { journal: [0, 1], ..host }.connect().await;
    new.refused("SUPERSEDED").await;
    assert_eq!(newest.wait_for("COMMAND").await["seq"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_new_token_cuts_off_on_another_replica() {
    let (app, host) = with_host().await;
    let there = Replica::start(&app).await;
    let mut line = there.of(&host).connect().await;
    app.provisioning_token(host.server).await;
    line.refused("TOKEN").await;
}

#[tokio::test]
async fn a_cut_that_the_replica_was_not_told_of_is_found_by_the_round() {
    let (app, host) = with_host().await;
    let mut line = host.connect().await;
    wake_connections(&app.core).await.unwrap();
    assert!(line.is_quiet().await);
    let cut = "UPDATE servers SET host_epoch = host_epoch + 1, host_token_hash = NULL WHERE id = $1";
    app.execute(cut, vec![host.server.into()]).await;
    assert!(line.is_quiet().await);
    wake_connections(&app.core).await.unwrap();
    line.refused("TOKEN").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_watched_text_is_seen_on_another_replica() {
    const WATCH: &str =
        "subscription($o: Id!, $c: Id!) { messageDeltas(orgId: $o, conversationId: $c) { offset text } }";
    let (app, agent) = TestApp::with_agent().await;
    let (host, conversation) = (app.host_of(agent).await, app.conversation(agent).await);
    let generation = app.start_agent(agent).await;
    let there = Replica::start(&app).await;
    let mut line: Line = host.connect().await;
    let are_watched =
        |core: &Core| core.events.deltas.is_watched(app.scope().org, ConversationId(conversation));
    assert!(!are_watched(&app.core));
    let mut viewer = Socket::of(&there.actor(&app.viewer)).await;
    viewer.subscribe("1", WATCH, json!({ "o": app.org, "c": conversation })).await;
    until("a watcher is known", async || are_watched(&app.core)).await;
    let mut took = Vec::new();
    for offset in 0..20 {
        let began = Instant::now();
        line.send(delta((agent, generation), conversation, offset)).await;
        let expected = json!({ "offset": offset, "text": "x" });
        assert_eq!(viewer.next().await["payload"]["data"]["messageDeltas"], expected);
        took.push(began.elapsed());
    }
    took.sort_unstable();
    eprintln!("from the host here to the viewer there: median {:?}", took[10]);
    assert!(are_watched(&there.core));
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_log_is_seen_on_another_replica() {
    const WATCH: &str =
        "subscription($o: Id!, $a: Id!) { agentLogs(orgId: $o, id: $a) { position lines { text } } }";
    let (app, agent, host) = hosted().await;
    let there = Replica::start(&app).await;
    let mut line = host.connect().await;
    // Each viewer gets the end of the log, the second one too.
    for id in ["1", "2"] {
        let mut viewer = Socket::of(&there.actor(&app.viewer)).await;
        viewer.subscribe(id, WATCH, json!({ "o": app.org, "a": agent })).await;
        assert_eq!(asked(&mut line).await["agent_id"], agent);
        line.send(batch(agent, 7, id)).await;
        let expected = json!({ "position": 7, "lines": [{ "text": id }] });
        assert_eq!(viewer.next().await["payload"]["data"]["agentLogs"], expected);
    }
}

/// Everything that was logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_frame_and_no_token_is_logged() {
    let (logged, log) =
        (Logged::default(), Log { filter: "trace,h2=off".to_owned(), format: LogFormat::Json });
    let writer = logged.clone();
    let subscriber = muster::core::telemetry::subscriber(&log, move || writer.clone(), false).unwrap();
    tracing::subscriber::set_global_default(subscriber)
        .expect("run with cargo-nextest: one process per test");
    let (app, agent) = TestApp::with_agent().await;
    let own = json!({ "modelCredentialType": "API_KEY", "modelCredentialProvider": "anthropic",
        "modelCredential": "canary-key", "credentialChoice": "OWN" });
    app.sets_agent(agent, own).await;
    let host = app.host_of(agent).await;
    let generation = app.start_agent(agent).await;
    let mut line = host.connect().await;
    line.send(json!({
        "frame": "ASK", "id": 1, "agent_id": agent, "generation": generation, "wanted": { "kind": "LAUNCH" },
    }))
    .await;
    let told = line.wait_for("TOLD").await;
    assert_eq!(told["given"]["model_access"]["key"], "canary-key", "{told}");
    line.reports((agent, generation), json!({ "kind": "AUTH_REQUIRED", "detail": "canary-text" })).await;
    line.send(json!({ "frame": "EVENT", "seq": "canary-frame" })).await;
    line.send(json!({ "frame": "LOAD", "cpu_pct": "canary-load" })).await;
    line.send(json!(["canary-end"])).await;
    line.refused("MALFORMED").await;
    let text = String::from_utf8_lossy(&logged.0.lock().unwrap()).into_owned();
    assert!(text.contains("host.connected") && text.contains("host.offence"), "it was captured");
    assert!(!text.contains("canary-"), "a frame was logged");
    assert!(!text.contains(&host.token), "a token was logged");
}
