//! The gateway: how a host joins, says hello, and is cut off.

mod commands_and_events;
mod confirmed;
mod guard;
mod load_history;
mod logs;
mod messages;
mod replicas;
mod servers;
mod unconfirmed;

use std::time::Duration;

use muster::{core::resource_limits::Resource, domain::hosts};
use serde_json::{Value, json};

use crate::{
    agents::backups::BACK_UP,
    harness::{
        Answer, TestApp,
        gateway::{Host, Line, dial, host_token, join, machine},
        until,
    },
};

impl Line {
    /// Reports an event, and waits until it is stored. Returns its number.
    async fn reports(&mut self, of: (i64, i64), what: Value) -> i64 {
        let seq = self.report(of, what).await;
        self.stored(seq).await;
        seq
    }
}

/// A stopped agent, and the host of its server.
async fn hosted() -> (TestApp, i64, Host) {
    let (app, agent) = TestApp::with_agent().await;
    let host = app.host_of(agent).await;
    (app, agent, host)
}

/// A host that has joined.
async fn with_host() -> (TestApp, Host) {
    let app = TestApp::start().await;
    let host = app.joined(app.server().await).await;
    (app, host)
}

/// The event of an agent that is up.
fn started() -> Value {
    json!({ "kind": "STARTED", "container_id": "c", "program": null, "model": null })
}

async fn delete_server(app: &TestApp, server: i64) -> Answer {
    let query = "mutation($o: Id!, $s: Id!) { deleteServer(orgId: $o, id: $s) }";
    app.owner.gql(query, json!({ "o": app.org, "s": server })).await
}

async fn server_of(app: &TestApp, agent: i64) -> i64 {
    app.one("SELECT server_id FROM agents WHERE id = $1", vec![agent.into()]).await
}

async fn status(app: &TestApp, server: i64) -> String {
    app.one("SELECT status FROM servers WHERE id = $1", vec![server.into()]).await
}

async fn epoch(app: &TestApp, server: i64) -> i64 {
    app.one("SELECT host_epoch FROM servers WHERE id = $1", vec![server.into()]).await
}

/// Why the server's host was refused, as people see it: code, reason and time.
async fn refusal(app: &TestApp, server: i64) -> Value {
    let query = "query($o: Id!, $i: Id!) { server(orgId: $o, id: $i) { refusal { code reason at } } }";
    app.viewer.gql(query, json!({ "o": app.org, "i": server })).await.data()["server"]["refusal"].clone()
}

/// Waits until nothing of hosts is held.
async fn all_given_back(app: &TestApp) {
    let held = || app.core.resource_limits.limit(Resource::Hosts).total() + app.core.hosts.connected().len();
    until("all are given back", async || held() == 0).await;
}

#[tokio::test]
async fn sizes_of_a_machine_that_no_client_could_read_are_unknown() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let mut machine = machine("machine-1");
    (machine["cpu_cores"], machine["memory_mb"], machine["disk_mb"]) =
        (i64::MAX.into(), (1_i64 << 31).into(), (-1).into());
    join(&app.anonymous, &app.provisioning_token(server).await, &host_token(), &machine).await.expect(200);
    let query = "query($o: Id!, $i: Id!) { server(orgId: $o, id: $i) { hostname cpuCores memoryMb diskMb } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "i": server })).await.data();
    let known =
        json!({ "hostname": "machine-1.example", "cpuCores": null, "memoryMb": null, "diskMb": null });
    assert_eq!(shown["server"], known);
}

#[tokio::test]
async fn a_provisioning_token_is_exchanged_once_by_one_machine() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let provisioning = app.provisioning_token(server).await;
    let (token, first) = (host_token(), machine("machine-1"));
    let joined = join(&app.anonymous, &provisioning, &token, &first).await.expect(200);
    assert_eq!((&joined["organization_id"], &joined["server_id"]), (&json!(app.org), &json!(server)));
    let shown = app.viewer.gql(
        "query($o: Id!, $i: Id!) { server(orgId: $o, id: $i) { status hostname os arch cpuCores memoryMb diskMb version } }",
        json!({ "o": app.org, "i": server }),
    );
    let expected = json!({
        "status": "PENDING", "hostname": "machine-1.example", "os": "linux", "arch": "x86_64", "cpuCores": 4,
        "memoryMb": 8192, "diskMb": 100_000, "version": "0.1.0",
    });
    assert_eq!(shown.await.data()["server"], expected);
    // The first response may have been lost, so the host joins again.
    assert_eq!(join(&app.anonymous, &provisioning, &token, &first).await.expect(200), joined);
    let lines =
        "SELECT actor_kind || ' ' || COALESCE(ip, '-') FROM audit_lines WHERE operation = 'joinServer'";
    assert_eq!(app.column::<String>(lines).await, ["SYSTEM 127.0.0.1"]);
    // Another machine, or the same one with another token, is refused with the name of the first.
    for (token, machine) in [(host_token(), machine("machine-2")), (host_token(), first.clone())] {
        let refused = join(&app.anonymous, &provisioning, &token, &machine).await;
        assert_eq!(refused.problem(), (409, "CONFLICT"));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("machine-1.example") && detail.contains("regenerate"), "{detail}");
    }
    // A new token lets another machine in.
    let renewed = app.provisioning_token(server).await;
    assert_eq!(join(&app.anonymous, &provisioning, &token, &first).await.problem(), (401, "UNAUTHENTICATED"));
    join(&app.anonymous, &renewed, &host_token(), &machine("machine-2")).await.expect(200);
}

#[tokio::test]
async fn of_two_machines_that_join_at_once_one_wins() {
    let app = TestApp::start().await;
    let provisioning = app.provisioning_token(app.server().await).await;
    let tries = (0..6).map(|n| {
        let (anonymous, provisioning) = (&app.anonymous, &provisioning);
        async move { join(anonymous, provisioning, &host_token(), &machine(&format!("m{n}"))).await.status }
    });
    let mut answers = futures::future::join_all(tries).await;
    answers.sort_unstable();
    assert_eq!(answers, [200, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn joining_is_refused_with_what_to_do() {
    let app = TestApp::start().await;
    let (server, machine) = (app.server().await, machine("m"));
    let expired = app.provisioning_token(server).await;
    app.clock.advance(Duration::from_hours(25));
    let refused = join(&app.anonymous, &expired, &host_token(), &machine).await;
    assert_eq!(refused.problem(), (401, "TOKEN_EXPIRED"));
    assert!(refused.body["detail"].as_str().unwrap().contains("Regenerate"));
    let deleted = app.provisioning_token(server).await;
    delete_server(&app, server).await.data();
    let unknown = [deleted, "mst_prov_x".to_owned(), host_token(), app.owner.bearer().to_owned()];
    for token in unknown {
        let refused = join(&app.anonymous, &token, &host_token(), &machine).await;
        assert_eq!(refused.problem(), (401, "UNAUTHENTICATED"));
    }
    let good = app.provisioning_token(app.server().await).await;
    for token in ["", "mst_host_short", app.owner.bearer()] {
        let refused = join(&app.anonymous, &good, token, &machine).await;
        assert_eq!(refused.violations()[0].0, "/host_token");
        assert!(!refused.text.contains("mst_host_short"));
    }
    let refused = join(&app.anonymous, &good, &host_token(), &json!({ "id": "a b" })).await;
    assert_eq!(refused.violations()[0].0, "/machine/id");
    let bearer = app.anonymous.with_bearer(&good);
    let refused = bearer.post("/gateway/join", json!({ "host_token": ["mst_host_canary"] })).await;
    assert_eq!(refused.problem(), (400, "MALFORMED_REQUEST"));
    assert!(!refused.text.contains("canary"));
    let large = json!({ "host_token": "x".repeat(100_000) });
    assert_eq!(bearer.post("/gateway/join", large).await.problem(), (413, "PAYLOAD_TOO_LARGE"));
}

#[tokio::test]
async fn strangers_pay_for_joining_and_for_bad_tokens() {
    let app = TestApp::start_with(|config| {
        config.rate_limits.enabled = true;
        config.rate_limits.anonymous_per_minute = 5;
    })
    .await;
    let host = app.joined(app.server().await).await;
    for _ in 0..4 {
        assert_eq!(join(&app.anonymous, &host_token(), &host_token(), &machine("m")).await.status, 401);
    }
    let refused = join(&app.anonymous, &host_token(), &host_token(), &machine("m")).await;
    assert_eq!(refused.problem(), (429, "RATE_LIMITED"));
    assert_eq!(dial(&app.base, Some(&host_token())).await.err(), Some(429));
    app.clock.advance(Duration::from_mins(1));
    // A good token costs nothing in the end, a bad one does.
    for _ in 0..10 {
        host.connect().await;
        all_given_back(&app).await;
    }
    for _ in 0..5 {
        assert_eq!(dial(&app.base, Some(&host_token())).await.err(), Some(401));
    }
    assert_eq!(dial(&app.base, None).await.err(), Some(429));
    // Strangers at its address don't lock out a host that was here before.
    host.connect().await;
}

#[tokio::test]
async fn a_handshake_needs_a_hosts_token_in_the_header() {
    let (app, host) = with_host().await;
    let in_url = format!("{}/gateway?token={}", app.base.replace("http", "ws"), host.token);
    let refused = tokio_tungstenite::connect_async(in_url).await.err().unwrap();
    assert!(refused.to_string().contains("401"), "{refused}");
    for token in [None, Some(app.owner.bearer()), Some("mst_host_x")] {
        assert_eq!(dial(&app.base, token).await.err(), Some(401));
    }
    host.connect().await;
}

#[tokio::test]
async fn a_host_that_says_hello_is_online_and_learns_what_should_run() {
    let (app, agent, host) = hosted().await;
    let line = host.connect().await;
    let welcome = &line.welcome;
    assert_eq!(
        (&welcome["version"], &welcome["events"], &welcome["agents"]),
        (&json!(1), &json!(0), &json!([]))
    );
    assert_eq!(welcome["time"], app.clock.now().0);
    assert_eq!(welcome["epoch"], epoch(&app, host.server).await);
    assert_eq!(status(&app, host.server).await, "ONLINE");
    let shown = app.viewer.gql(
        "query($o: Id!, $i: Id!) { server(orgId: $o, id: $i) { runtime protocolVersion lastSeenAt } }",
        json!({ "o": app.org, "i": host.server }),
    );
    let expected =
        json!({ "runtime": "PROCESS", "protocolVersion": 1, "lastSeenAt": app.clock.now().to_string() });
    assert_eq!(shown.await.data()["server"], expected);
    drop(line);
    all_given_back(&app).await;

    // An agent is in the list from when the host has its launch, and until it has stopped.
    let generation = app.start_agent(agent).await;
    let mut line = host.connect().await;
    assert_eq!(line.welcome["agents"], json!([]), "its launch is on the way");
    assert_eq!(line.wait_for("COMMAND").await["command"]["kind"], "LAUNCH");
    drop(line);
    let host = Host { journal: [1, 0], ..host };
    let expected = json!([{ "agent_id": agent, "generation": generation }]);
    assert_eq!(host.connect().await.welcome["agents"], expected);
    for (status, is_wanted) in
        [("RUNNING", true), ("PAUSED", true), ("STOPPING", true), ("STOPPED", false), ("ERROR", false)]
    {
        app.execute("UPDATE agents SET status = $1 WHERE id = $2", vec![status.into(), agent.into()]).await;
        let agents = host.connect().await.welcome["agents"].clone();
        assert_eq!(agents, if is_wanted { expected.clone() } else { json!([]) }, "{status}");
    }
}

#[tokio::test]
async fn a_hello_is_refused_with_the_reason() {
    let (app, host) = with_host().await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut hello = host.hello();
        change(&mut hello);
        hello
    };
    let newer = host.is_refused(with(&|hello| hello["versions"] = json!([7, 9])), "VERSION").await;
    let reason = newer["reason"].as_str().unwrap();
    assert!(reason.contains("7 to 9") && reason.contains("Upgrade Muster"), "{reason}");
    let at = app.clock.now().to_string();
    let shown = |code: &str, frame: &Value| json!({ "code": code, "reason": frame["reason"], "at": at });
    assert_eq!(refusal(&app, host.server).await, shown("VERSION", &newer));
    host.is_refused(with(&|hello| hello["machine"]["id"] = json!("another")), "TOKEN").await;
    assert_eq!(
        refusal(&app, host.server).await,
        shown("VERSION", &newer),
        "nothing to mend for those who look"
    );
    for known in ["commands", "acknowledged"] {
        let forgotten = host.is_refused(with(&|hello| hello[known] = json!(5)), "RESTORED").await;
        let reason = forgotten["reason"].as_str().unwrap();
        assert!(
            reason.contains("older backup") && reason.contains("muster host rejoin"),
            "{known}: {reason}"
        );
        assert_eq!(forgotten["retry_after"], Value::Null);
        assert_eq!(refusal(&app, host.server).await, shown("RESTORED", &forgotten));
    }
    host.is_refused(json!({ "frame": "RECEIVED", "through": 0 }), "MALFORMED").await;
    host.is_refused(json!("HELLO"), "MALFORMED").await;
    assert_eq!((status(&app, host.server).await.as_str(), epoch(&app, host.server).await), ("PENDING", 1));
    // Commands that the host has acknowledged, and events that it has reported, must still be in its journal.
    for (column, journal) in [("command_ack", [3, 9]), ("event_seq", [9, 3])] {
        app.execute("UPDATE servers SET command_seq = 9, command_ack = 0, event_seq = 0", vec![]).await;
        app.execute(&format!("UPDATE servers SET {column} = 4"), vec![]).await;
        let host = Host { journal, ..host.clone() };
        let lost = host.is_refused(host.hello(), "JOURNAL_LOST").await;
        assert!(lost["reason"].as_str().unwrap().contains("muster host rejoin"), "{lost}");
        assert_eq!(refusal(&app, host.server).await, shown("JOURNAL_LOST", &lost));
        let _line = Host { journal: [4, 4], ..host.clone() }.connect().await;
        assert_eq!(refusal(&app, host.server).await, Value::Null);
    }
}

#[tokio::test]
async fn people_see_that_two_hosts_share_a_folder() {
    let (app, host) = with_host().await;
    let mut first = host.connect().await;
    let second = host.connect().await;
    let told = first.refused("SUPERSEDED").await;
    drop(first);
    let shown = async || refusal(&app, host.server).await["reason"] == told["reason"];
    until("it shows", shown).await;
    // The first one has heard why, and stays away. The second one is the only one from its next connection on.
    drop(second);
    all_given_back(&app).await;
    let _alone = host.connect().await;
    assert_eq!(refusal(&app, host.server).await, Value::Null);
}

#[tokio::test]
async fn a_new_token_ends_what_is_shown_of_the_old_host() {
    let (app, host) = with_host().await;
    let mut changes = app.core.events.subscribe(app.scope().org, &muster::core::access::Caller::System);
    let mut hello = host.hello();
    hello["commands"] = json!(5);
    host.is_refused(hello, "RESTORED").await;
    let Some((muster::core::News::Changed(change), _)) = changes.next().await else { panic!() };
    assert_eq!((change.kind.as_str(), change.id), ("SERVER", host.server));
    assert_eq!(refusal(&app, host.server).await["code"], "RESTORED");
    app.provisioning_token(host.server).await;
    assert_eq!(refusal(&app, host.server).await, Value::Null);
}

#[tokio::test]
async fn a_host_that_says_nothing_is_refused() {
    let app = TestApp::start_with(|config| config.limits.socket_init_seconds = 1).await;
    let host = app.joined(app.server().await).await;
    assert_eq!(host.dial().await.unwrap().refused("MALFORMED").await["retry_after"], 5);
    assert_eq!((status(&app, host.server).await.as_str(), epoch(&app, host.server).await), ("PENDING", 1));
}

#[tokio::test]
async fn another_machine_gets_the_unreceived_commands() {
    let (app, agent, host) = hosted().await;
    app.start_agent(agent).await;
    let mut line = host.connect().await;
    assert_eq!(line.wait_for("COMMAND").await["seq"], 1);
    line.reports((agent, 1), json!({ "kind": "SYNCED" })).await;
    let provisioning = app.provisioning_token(host.server).await;
    line.refused("TOKEN").await;
    let other = Host { token: host_token(), machine: machine("machine-2"), ..host };
    join(&app.anonymous, &provisioning, &other.token, &other.machine).await.expect(200);
    let mut line = other.connect().await;
    assert_eq!(line.welcome["events"], 0);
    let launch = line.wait_for("COMMAND").await;
    assert_eq!((&launch["seq"], &launch["command"]["kind"]), (&json!(1), &json!("LAUNCH")));
}

#[tokio::test]
async fn a_replaced_machines_backup_fails() {
    let (app, agent) = TestApp::with_agent().await;
    app.start_agent(agent).await;
    let back_up = async || {
        app.operator.gql(BACK_UP, json!({ "o": app.org, "i": agent })).await.data();
    };
    let waiting =
        "SELECT id FROM commands WHERE kind = 'BACKUP' AND acknowledged_at IS NULL AND expires_at > ";
    let waiting = async || app.column::<i64>(&format!("{waiting}{}", app.clock.now().0)).await.len();
    // The first machine to join gets what has waited for it; the second one never connects.
    back_up().await;
    let host = app.host_of(agent).await;
    let mut line = host.connect().await;
    for kind in ["LAUNCH", "BACKUP"] {
        assert_eq!(line.wait_for("COMMAND").await["command"]["kind"], kind);
    }
    line.send(json!({ "frame": "RECEIVED", "through": 2 })).await;
    until("it is acknowledged", async || waiting().await == 0).await;
    drop(line);
    for name in ["machine-2", "machine-3"] {
        let provisioning = app.provisioning_token(host.server).await;
        join(&app.anonymous, &provisioning, &host_token(), &machine(name)).await.expect(200);
        assert_eq!(waiting().await, 0);
        back_up().await;
        assert_eq!(waiting().await, 1);
    }
    let states: Vec<String> =
        app.column("SELECT state || ' ' || COALESCE(error, '') FROM agent_backups ORDER BY id").await;
    let failed = "FAILED The server's machine was replaced before it finished.";
    assert_eq!(states, [failed, failed, "PENDING "]);
}

#[tokio::test]
async fn a_new_token_or_a_deletion_cuts_the_host_off() {
    let (app, host) = with_host().await;
    let mut line = host.connect().await;
    app.provisioning_token(host.server).await;
    line.refused("TOKEN").await;
    assert_eq!(host.dial().await.err(), Some(401));
    assert_eq!(status(&app, host.server).await, "OFFLINE");
    let host = app.joined(host.server).await;
    let mut line = host.connect().await;
    delete_server(&app, host.server).await.data();
    line.refused("TOKEN").await;
    assert_eq!(host.dial().await.err(), Some(401));
    all_given_back(&app).await;
}

#[tokio::test]
async fn a_server_is_offline_once_its_host_was_away_a_moment() {
    let (app, host) = with_host().await;
    let never = app.server().await;
    app.execute("UPDATE servers SET status = 'ONLINE' WHERE id = $1", vec![never.into()]).await;
    drop(host.connect().await);
    all_given_back(&app).await;
    app.clock.advance(Duration::from_secs(4));
    assert_eq!(hosts::mark_offline(&app.core).await.unwrap(), 0, "it may be back in a moment");
    // It is.
    let mut line = host.connect().await;
    app.clock.advance(Duration::from_secs(40));
    hosts::refresh_presence(&app.core).await.unwrap();
    app.clock.advance(Duration::from_secs(44));
    assert_eq!(hosts::mark_offline(&app.core).await.unwrap(), 0);
    // A dead replica says nothing.
    app.clock.advance(Duration::from_secs(2));
    assert_eq!(hosts::mark_offline(&app.core).await.unwrap(), 1);
    assert_eq!([status(&app, host.server).await, status(&app, never).await], ["OFFLINE", "ONLINE"]);
    assert!(line.is_quiet().await);
    // Only the clock went forward: the host is still connected.
    assert_eq!(hosts::refresh_presence(&app.core).await.unwrap(), 1);
    assert_eq!(status(&app, host.server).await, "ONLINE");
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(hosts::mark_offline(&app.core).await.unwrap(), 0);
    drop(line);
    all_given_back(&app).await;
    app.clock.advance(Duration::from_secs(6));
    assert_eq!(hosts::mark_offline(&app.core).await.unwrap(), 1);
    assert_eq!(hosts::refresh_presence(&app.core).await.unwrap(), 0, "no host is connected");
    assert_eq!(status(&app, host.server).await, "OFFLINE");
    host.connect().await;
    assert_eq!(status(&app, host.server).await, "ONLINE");
}

#[tokio::test]
async fn a_stopping_service_sends_its_hosts_to_another_replica() {
    let (app, host) = with_host().await;
    let mut line = host.connect().await;
    app.core.tasks.stopping.cancel();
    assert_eq!(line.refused("STOPPING").await["retry_after"], 1);
    all_given_back(&app).await;
}
