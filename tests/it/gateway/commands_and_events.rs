//! The traffic over the gateway: commands and events, each once and in order, even when the connection is lost.

use std::time::{Duration, Instant};

use muster::domain::hosts::{MAX_UNACKNOWLEDGED, wake_connections};
use serde_json::{Value, json};

use crate::{
    gateway::{hosted, started},
    harness::{
        TestApp,
        gateway::{Host, Line},
    },
};

async fn event_seq(app: &TestApp, server: i64) -> i64 {
    app.one("SELECT event_seq FROM servers WHERE id = $1", vec![server.into()]).await
}

/// Enqueues commands for an agent, as a lost wake-up would leave them.
async fn put(app: &TestApp, agent: i64, kinds: &[&str], expires_in: i64) {
    for kind in kinds {
        let sql = "INSERT INTO commands (kind, payload, organization_id, server_id, agent_id, generation, created_at, \
                   expires_at) SELECT $1, $2, organization_id, server_id, id, launch_generation, $3, $4 FROM agents \
                   WHERE id = $5";
        let now = app.clock.now().0;
        let payload = json!({ "kind": kind });
        let values = vec![
            (*kind).to_owned().into(),
            payload.into(),
            now.into(),
            (now + expires_in).into(),
            agent.into(),
        ];
        app.execute(sql, values).await;
    }
}

/// The number and the kind of the next command.
async fn command(line: &mut Line) -> (i64, String) {
    let frame = line.wait_for("COMMAND").await;
    (frame["seq"].as_i64().unwrap(), frame["command"]["kind"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_command_reaches_a_connected_host_at_once() {
    let (app, agent) = TestApp::with_agent().await;
    let mut line = app.host_of(agent).await.connect().await;
    let mut took = Vec::new();
    for seq in 1..=20 {
        app.execute("UPDATE agents SET status = 'STOPPED' WHERE id = $1", vec![agent.into()]).await;
        let began = Instant::now();
        let generation = app.start_agent(agent).await;
        let frame = line.wait_for("COMMAND").await;
        took.push(began.elapsed());
        assert_eq!((&frame["seq"], &frame["generation"]), (&json!(seq), &json!(generation)));
        assert_eq!((&frame["agent_id"], &frame["command"]), (&json!(agent), &json!({ "kind": "LAUNCH" })));
        line.send(json!({ "frame": "RECEIVED", "through": seq })).await;
    }
    took.sort_unstable();
    eprintln!("from the request to the command, with the request's own time: median {:?}", took[10]);
}

#[tokio::test]
async fn commands_are_numbered_once_resent_and_bounded() {
    let (app, agent, mut host) = hosted().await;
    let all = MAX_UNACKNOWLEDGED + 10;
    put(&app, agent, &vec!["SYNC"; all as usize], 1_000).await;
    let mut line = host.connect().await;
    for seq in 1..=MAX_UNACKNOWLEDGED {
        assert_eq!(command(&mut line).await.0, seq);
    }
    assert!(line.is_quiet().await, "no more than {MAX_UNACKNOWLEDGED} wait for an acknowledgement");
    line.send(json!({ "frame": "RECEIVED", "through": 4 })).await;
    for seq in MAX_UNACKNOWLEDGED + 1..=MAX_UNACKNOWLEDGED + 4 {
        assert_eq!(command(&mut line).await.0, seq);
    }
    let acknowledged = "SELECT CAST(COUNT(*) AS BIGINT) FROM commands WHERE acknowledged_at IS NOT NULL";
    while app.one::<i64>(acknowledged, vec![]).await < 4 {}
    drop(line);
    // The host has more than it could acknowledge.
    host.journal = [7, 0];
    let mut line = host.connect().await;
    assert_eq!(app.one::<i64>(acknowledged, vec![]).await, 7);
    for seq in 8..=MAX_UNACKNOWLEDGED + 7 {
        assert_eq!(command(&mut line).await.0, seq);
    }
    let ids = "SELECT CAST(COUNT(DISTINCT host_seq) AS BIGINT) FROM commands";
    assert_eq!(app.one::<i64>(ids, vec![]).await, MAX_UNACKNOWLEDGED + 7);
    // An acknowledgement of what was not sent is an offence, and changes nothing.
    line.send(json!({ "frame": "RECEIVED", "through": 9_999 })).await;
    line.send(json!({ "frame": "RECEIVED", "through": 8 })).await;
    while app.one::<i64>(acknowledged, vec![]).await < 8 {}
    assert_eq!(command(&mut line).await.0, MAX_UNACKNOWLEDGED + 8);
}

#[tokio::test]
async fn an_expired_command_is_dropped_without_a_gap() {
    let (app, agent, host) = hosted().await;
    put(&app, agent, &["SYNC"], 1_000).await;
    let mut line = host.connect().await;
    assert_eq!(command(&mut line).await, (1, "SYNC".to_owned()));
    drop(line);
    put(&app, agent, &["PAUSE"], 1_000).await;
    app.clock.advance(Duration::from_secs(2));
    put(&app, agent, &["RESUME"], 1_000).await;
    muster::jobs::sweep(&app.core).await.unwrap();
    let mut line = host.connect().await;
    assert_eq!(command(&mut line).await, (1, "SYNC".to_owned()), "the host decides that it is too late");
    assert_eq!(command(&mut line).await, (2, "RESUME".to_owned()));
    // Nothing has woken the connection for this one: the job does.
    put(&app, agent, &["STOP"], 1_000).await;
    assert!(line.is_quiet().await);
    wake_connections(&app.core).await.unwrap();
    assert_eq!(command(&mut line).await, (3, "STOP".to_owned()));
}

#[tokio::test]
async fn a_stop_waits_for_its_host_however_long_that_is_away() {
    let (app, agent, host) = hosted().await;
    let running = crate::harness::Host { app: &app, agent, generation: 0 }.launched().await;
    running.started().await;
    running.act("stop").await;
    app.clock.advance(Duration::from_hours(31 * 24));
    muster::jobs::sweep(&app.core).await.unwrap();
    let mut line = host.connect().await;
    assert_eq!(line.welcome["agents"], json!([]), "it is being stopped");
    let stop = line.wait_for("COMMAND").await;
    let what = (&stop["agent_id"], &stop["generation"], &stop["command"]);
    assert_eq!(what, (&json!(agent), &json!(running.generation), &json!({ "kind": "STOP" })));
    assert_eq!(stop["deadline"], i64::MAX, "nor is it too late for the host");
}

#[tokio::test]
async fn a_stopped_organization_gets_only_ending_commands() {
    let (app, agent) = TestApp::with_agent().await;
    let mut line = app.host_of(agent).await.connect().await;
    muster::domain::emergency_stop::stop(&app.scope(), "to look at it").await.unwrap();
    put(&app, agent, &["TURN", "STOP"], 1_000).await;
    app.execute(
        "UPDATE commands SET payload = '{\"kind\":\"TURN\",\"turn_id\":1}' WHERE kind = 'TURN'",
        vec![],
    )
    .await;
    wake_connections(&app.core).await.unwrap();
    assert_eq!(command(&mut line).await, (1, "STOP".to_owned()));
    assert!(line.is_quiet().await);
    muster::domain::emergency_stop::release(&app.scope(), None).await.unwrap();
    assert_eq!(command(&mut line).await, (2, "TURN".to_owned()));
}

#[tokio::test]
async fn commands_of_other_servers_go_to_their_own_hosts() {
    let app = TestApp::start().await;
    let (one, two, theirs) = (app.agent().await, app.agent().await, app.other_agent().await);
    let mut first = app.host_of(one).await.connect().await;
    let mut second = app.host_of(two).await.connect().await;
    put(&app, theirs, &["LAUNCH"], 1_000).await;
    app.start_agent(two).await;
    assert_eq!(second.wait_for("COMMAND").await["agent_id"], two);
    assert!(first.is_quiet().await);
}

#[tokio::test]
async fn events_are_stored_with_what_they_change_and_acknowledged() {
    let (app, agent, host) = hosted().await;
    let generation = app.start_agent(agent).await;
    let mut line = host.connect().await;
    line.reports((agent, generation), started()).await;
    assert_eq!(app.launch_of(agent).await, (generation, "RUNNING".to_owned()));
    // Reports of an older launch are acknowledged, and change nothing.
    let ended = json!({ "kind": "ENDED", "reason": "EXITED", "code": 1, "signal": null, "detail": null });
    app.execute("UPDATE agents SET launch_generation = 2 WHERE id = $1", vec![agent.into()]).await;
    line.reports((agent, generation), ended.clone()).await;
    assert_eq!(app.launch_of(agent).await, (2, "RUNNING".to_owned()));
    line.reports((agent, 2), ended).await;
    assert_eq!(app.launch_of(agent).await, (2, "ERROR".to_owned()));
    assert_eq!(event_seq(&app, host.server).await, 3);
}

#[tokio::test]
async fn an_event_sent_again_is_applied_once_and_acknowledged_again() {
    let (app, agent, mut host) = hosted().await;
    let generation = app.start_agent(agent).await;
    let mut line = host.connect().await;
    let event = line.event((agent, generation), started());
    line.send(event.clone()).await;
    // The connection is lost before the acknowledgement arrives.
    while event_seq(&app, host.server).await < 1 {}
    drop(line);
    app.execute("UPDATE agents SET container_id = 'since' WHERE id = $1", vec![agent.into()]).await;
    host.journal = [0, 1];
    let mut line = host.connect().await;
    assert_eq!(line.welcome["events"], 1);
    line.send(event.clone()).await;
    line.stored(1).await;
    let next = line.event((agent, generation), json!({ "kind": "SYNCED" }));
    line.send(next).await;
    line.send(event).await;
    line.stored(2).await;
    let container: String =
        app.one("SELECT container_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(container, "since");
}

#[tokio::test]
async fn an_event_left_out_is_a_gap_and_the_connection_ends() {
    let (app, agent, host) = hosted().await;
    let mut line = host.connect().await;
    let _left_out = line.event((agent, 0), json!({ "kind": "SYNCED" }));
    line.report((agent, 0), json!({ "kind": "SYNCED" })).await;
    let refused = line.refused("GAP").await;
    assert!(refused["reason"].as_str().unwrap().contains("Event 1 "), "{refused}");
    assert_eq!((&refused["retry_after"], event_seq(&app, host.server).await), (&json!(1), 0));
}

#[tokio::test]
async fn only_the_inapplicable_event_is_left_out() {
    let (app, broken, agent) = TestApp::with_two_agents().await;
    let host = app.host_of(broken).await;
    let moved = "UPDATE agents SET server_id = $1 WHERE id = $2";
    app.execute(moved, vec![host.server.into(), agent.into()]).await;
    let forbidden = if crate::harness::is_postgres() {
        format!("ALTER TABLE agents ADD CONSTRAINT broken CHECK (id <> {broken} OR status <> 'RUNNING')")
    } else {
        format!(
            "CREATE TRIGGER broken BEFORE UPDATE ON agents WHEN NEW.id = {broken} AND NEW.status = 'RUNNING' \
             BEGIN SELECT RAISE(ABORT, 'broken'); END"
        )
    };
    app.execute(&forbidden, vec![]).await;
    let (one, two) = (app.start_agent(broken).await, app.start_agent(agent).await);
    let mut line = host.connect().await;
    let mut heard = app.core.events.subscribe(app.scope().org, &muster::core::access::Caller::System);
    line.report((broken, one), started()).await;
    let last = line.report((agent, two), started()).await;
    line.stored(last).await;
    assert_eq!(app.launch_of(broken).await.1, "SPAWNING");
    assert_eq!(app.launch_of(agent).await.1, "RUNNING");
    // An undone change is not announced either.
    assert!(matches!(heard.next().await.unwrap().0, muster::core::News::Changed(event) if event.id == agent));
}

#[tokio::test]
async fn a_request_that_is_left_out_is_refused() {
    let (app, agent, host) = hosted().await;
    let generation = app.start_agent(agent).await;
    let mut line = host.connect().await;
    assert_eq!(command(&mut line).await.1, "LAUNCH");
    line.report((agent, generation), started()).await;
    app.expects_failures();
    let asked =
        json!({ "kind": "QUESTION", "text": "?", "options": [], "multiple": false, "allow_text": true });
    for request in ["3.h1", "a\nb"] {
        let request = json!({ "kind": "ASKED", "request": request, "conversation_id": 4711, "turn_id": null, "asked": asked });
        line.report((agent, generation), request).await;
    }
    let (mut stored, mut orders) = (0, Vec::new());
    while stored < 3 || orders.is_empty() {
        let frame = line.next().await;
        match frame["frame"].as_str() {
            Some("ACK") => stored = frame["through"].as_i64().unwrap(),
            Some("COMMAND") => orders.push(frame["command"].clone()),
            _ => panic!("{frame}"),
        }
    }
    assert_eq!(orders, [json!({ "kind": "VERDICT", "request": "3.h1", "allowed": false })]);
    assert!(line.is_quiet().await, "an invalid name names nothing");
}

#[tokio::test]
async fn a_full_or_broken_database_keeps_events_with_the_host() {
    let (app, agent, mut host) = hosted().await;
    let mut line = host.connect().await;
    // A column that every transaction of events needs.
    app.execute("ALTER TABLE servers RENAME COLUMN event_seq TO gone", vec![]).await;
    app.expects_failures();
    let event = line.event((agent, 0), json!({ "kind": "SYNCED" }));
    line.send(event.clone()).await;
    assert_eq!(line.refused("UNAVAILABLE").await["retry_after"], 5);
    app.execute("ALTER TABLE servers RENAME COLUMN gone TO event_seq", vec![]).await;
    host.journal = [0, 1];
    let mut line = host.connect().await;
    line.send(event).await;
    line.stored(1).await;
}

#[tokio::test]
async fn of_two_connections_the_newer_one_writes() {
    let (app, agent, host) = hosted().await;
    let generation = app.start_agent(agent).await;
    let mut old = host.connect().await;
    assert_eq!(command(&mut old).await.0, 1);
    // The old connection does not learn of it: what it writes meets the fence.
    app.execute("UPDATE servers SET host_epoch = host_epoch + 1 WHERE id = $1", vec![host.server.into()])
        .await;
    old.report((agent, generation), started()).await;
    old.refused("SUPERSEDED").await;
    assert_eq!((event_seq(&app, host.server).await, app.launch_of(agent).await.1.as_str()), (0, "SPAWNING"));

    let mut old = host.connect().await;
    let mut new = host.connect().await;
    assert!(new.welcome["epoch"].as_i64() > old.welcome["epoch"].as_i64());
    old.refused("SUPERSEDED").await;
    new.reports((agent, generation), started()).await;
    assert_eq!(app.launch_of(agent).await.1, "RUNNING");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_events_a_second_are_durable() {
    const EVENTS: u32 = 2_000;
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let host: Host = app.host_of(agent).await;
    let generation = app.start_agent(agent).await;
    let mut line = host.connect().await;
    let message = |n: u32| {
        let content = json!({ "kind": "TEXT", "text": format!("This is message {n} of many.") });
        json!({
            "kind": "MESSAGE", "conversation_id": conversation, "turn_id": null, "key": format!("1.{n}"),
            "content": content,
        })
    };
    let synced = |_| json!({ "kind": "SYNCED" });
    let kinds: [(&str, &dyn Fn(u32) -> Value); 2] = [("SYNCED", &synced), ("MESSAGE", &message)];
    let mut stored = 0;
    for (kind, what) in kinds {
        let events: Vec<_> = (0..EVENTS).map(|n| line.event((agent, generation), what(n))).collect();
        let began = Instant::now();
        for event in events {
            line.send(event).await;
        }
        stored += i64::from(EVENTS);
        line.stored(stored).await;
        let took = began.elapsed();
        eprintln!(
            "{EVENTS} events {kind} in {took:?}: {:.0} a second",
            f64::from(EVENTS) / took.as_secs_f64()
        );
    }
    let messages: i64 = app.one("SELECT CAST(COUNT(*) AS BIGINT) FROM messages", vec![]).await;
    assert_eq!((event_seq(&app, host.server).await, messages), (stored, i64::from(EVENTS)));
}
